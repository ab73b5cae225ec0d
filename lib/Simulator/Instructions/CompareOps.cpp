//===- CompareOps.cpp - setp and set --------------------------------------===//

#include "Alu.h"
#include "SyncInstructions.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

enum class Cmp : uint8_t {
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  Equ,
  Neu,
  Ltu,
  Leu,
  Gtu,
  Geu,
  Num,
  Nan
};

template <typename T>
inline bool compare(Cmp cmp, T a, T b) {
  bool unordered = false;
  if constexpr (std::is_floating_point_v<T>)
    unordered = a != a || b != b;
  switch (cmp) {
  case Cmp::Eq:
    return a == b;
  case Cmp::Ne:
    return !unordered && a != b;
  case Cmp::Lt:
    return a < b;
  case Cmp::Le:
    return a <= b;
  case Cmp::Gt:
    return a > b;
  case Cmp::Ge:
    return a >= b;
  case Cmp::Equ:
    return unordered || a == b;
  case Cmp::Neu:
    return unordered || a != b;
  case Cmp::Ltu:
    return unordered || a < b;
  case Cmp::Leu:
    return unordered || a <= b;
  case Cmp::Gtu:
    return unordered || a > b;
  case Cmp::Geu:
    return unordered || a >= b;
  case Cmp::Num:
    return !unordered;
  case Cmp::Nan:
    return unordered;
  }
  return false;
}

// flags: bits 0-3 comparison, 4-5 combination (0 none, 1 and, 2 or, 3 xor),
// 6 ftz, 7 second destination, 8 half elements.
template <typename T, Cmp C>
uint32_t compareLanes(Exec &x, const Inst &I) {
  const auto *a = lanesOf<T>(x, I.ops[2]);
  const auto *b = lanesOf<T>(x, I.ops[3]);
  bool ftz = I.flags & 64;
  uint32_t r = 0;
  auto value = [&](Stored<T> s) {
    T v = decodeLane<T>(s);
    if constexpr (std::is_same_v<T, float>)
      if (ftz)
        v = flush(v);
    return v;
  };
  forLanes(x.active, [&](unsigned l) {
    r |= uint32_t(compare<T>(C, value(a[l]), value(b[l]))) << l;
  });
  return r;
}

void finishSetp(Exec &x, const Inst &I, uint32_t r) {
  unsigned combine = I.flags >> 4 & 3;
  uint32_t other = ~r;
  if (combine) {
    uint32_t c = x.pred(I.ops[4]);
    auto join = [&](uint32_t v) {
      return combine == 1 ? v & c : combine == 2 ? v | c : v ^ c;
    };
    r = join(r);
    other = join(other);
  }
  uint32_t p = (x.poison[I.ops[2].meta] | x.poison[I.ops[3].meta] |
                (combine ? x.poison[I.ops[4].meta] : 0)) &
               x.active;
  uint32_t from = 0;
  if (p)
    for (unsigned i = 2; i < 4u + (combine != 0); ++i)
      if (x.poisonOf(I.ops[i])) {
        from = x.origin[I.ops[i].meta];
        break;
      }
  x.setPred(I.ops[0], r);
  x.setPoison(I.ops[0], p, from);
  if (I.flags & 128) {
    x.setPred(I.ops[1], other);
    x.setPoison(I.ops[1], p, from);
  }
}

template <typename T, Cmp C>
void execSetp(Exec &x, const Inst &I) {
  finishSetp(x, I, compareLanes<T, C>(x, I));
}

template <typename T>
ExecFn pickSetp(Cmp c) {
  switch (c) {
  case Cmp::Eq:
    return execSetp<T, Cmp::Eq>;
  case Cmp::Ne:
    return execSetp<T, Cmp::Ne>;
  case Cmp::Lt:
    return execSetp<T, Cmp::Lt>;
  case Cmp::Le:
    return execSetp<T, Cmp::Le>;
  case Cmp::Gt:
    return execSetp<T, Cmp::Gt>;
  case Cmp::Ge:
    return execSetp<T, Cmp::Ge>;
  default:
    break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    switch (c) {
    case Cmp::Equ:
      return execSetp<T, Cmp::Equ>;
    case Cmp::Neu:
      return execSetp<T, Cmp::Neu>;
    case Cmp::Ltu:
      return execSetp<T, Cmp::Ltu>;
    case Cmp::Leu:
      return execSetp<T, Cmp::Leu>;
    case Cmp::Gtu:
      return execSetp<T, Cmp::Gtu>;
    case Cmp::Geu:
      return execSetp<T, Cmp::Geu>;
    case Cmp::Num:
      return execSetp<T, Cmp::Num>;
    case Cmp::Nan:
      return execSetp<T, Cmp::Nan>;
    default:
      break;
    }
  }
  return nullptr;
}

double halfValue(uint32_t bits, bool bfloat, bool ftz) {
  if (bfloat)
    return bfloatToFloat(bits);
  return halfToFloat(ftz && !(bits & 0x7c00) ? bits & 0x8000 : bits);
}

/// f16, bf16 and their packed forms: imm 1 bf16, 2 packed.
void execSetpHalf(Exec &x, const Inst &I) {
  uint32_t lo = 0, hi = 0;
  Cmp cmp = Cmp(I.flags & 15);
  forLanes(x.active, [&](unsigned l) {
    uint32_t a = x.r32(I.ops[2])[l], b = x.r32(I.ops[3])[l];
    auto half = [&](uint32_t bits) {
      return halfValue(bits & 0xffff, I.imm & 1, I.flags & 64);
    };
    lo |= uint32_t(compare<double>(cmp, half(a), half(b))) << l;
    if (I.imm & 2)
      hi |= uint32_t(compare<double>(cmp, half(a >> 16), half(b >> 16))) << l;
  });
  finishSetp(x, I, lo);
  if (!(I.imm & 2) || !(I.flags & 128))
    return;
  unsigned combine = I.flags >> 4 & 3;
  if (combine) {
    uint32_t c = x.pred(I.ops[4]);
    hi = combine == 1 ? hi & c : combine == 2 ? hi | c : hi ^ c;
  }
  x.setPred(I.ops[1], hi);
}

bool parseCmp(Decoding &c, Cmp &cmp, bool &unsignedForm) {
  static const std::pair<StringRef, Cmp> names[] = {
      {"eq", Cmp::Eq},   {"ne", Cmp::Ne},   {"lt", Cmp::Lt},
      {"le", Cmp::Le},   {"gt", Cmp::Gt},   {"ge", Cmp::Ge},
      {"equ", Cmp::Equ}, {"neu", Cmp::Neu}, {"ltu", Cmp::Ltu},
      {"leu", Cmp::Leu}, {"gtu", Cmp::Gtu}, {"geu", Cmp::Geu},
      {"num", Cmp::Num}, {"nan", Cmp::Nan}, {"lo", Cmp::Lt},
      {"ls", Cmp::Le},   {"hi", Cmp::Gt},   {"hs", Cmp::Ge}};
  for (const auto &[name, value] : names)
    if (c.take(name)) {
      cmp = value;
      unsignedForm =
          name == "lo" || name == "ls" || name == "hi" || name == "hs";
      return true;
    }
  return false;
}

ExecFn compareFn(Decoding &c, Cmp cmp, Type t, bool unsignedForm) {
  switch (t) {
  case Type::F32:
    return pickSetp<float>(cmp);
  case Type::F64:
    return pickSetp<double>(cmp);
  case Type::F16:
  case Type::BF16:
  case Type::F16x2:
  case Type::BF16x2:
    c.inst.imm = (t == Type::BF16 || t == Type::BF16x2 ? 1 : 0) |
                 (t == Type::F16x2 || t == Type::BF16x2 ? 2 : 0);
    return execSetpHalf;
  case Type::S16:
    return pickSetp<int16_t>(cmp);
  case Type::S32:
    return pickSetp<int32_t>(cmp);
  case Type::S64:
    return pickSetp<int64_t>(cmp);
  case Type::U16:
  case Type::B16:
    return pickSetp<uint16_t>(cmp);
  case Type::U32:
  case Type::B32:
    return pickSetp<uint32_t>(cmp);
  case Type::U64:
  case Type::B64:
    return pickSetp<uint64_t>(cmp);
  default:
    return nullptr;
  }
}

Error decodeSetp(Decoding &c) {
  Cmp cmp;
  bool unsignedForm = false;
  if (!parseCmp(c, cmp, unsignedForm))
    return c.error("expected a comparison");
  c.inst.flags = uint32_t(cmp);
  bool combine = false;
  StringRef how = c.takeAny({"and", "or", "xor"});
  if (!how.empty()) {
    combine = true;
    c.inst.flags |= (how == "and" ? 1 : how == "or" ? 2 : 3) << 4;
  }
  if (c.take("ftz"))
    c.inst.flags |= 64;
  Type t = c.takeType();
  ATTN_SIM_TRY(c.expectOps(combine ? 4 : 3, combine ? 4 : 3));
  const AstOperand &d = c.ast.ops[0];
  if (d.kind == AstOperand::Pair) {
    c.inst.flags |= 128;
    ATTN_SIM_TRY(c.dstPred(d.elems[0]));
    ATTN_SIM_TRY(c.dstPred(d.elems[1]));
  } else {
    ATTN_SIM_TRY(c.dstPred(d));
    c.none();
  }
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], t));
  if (combine)
    ATTN_SIM_TRY(c.srcPred(c.ast.ops[3]));
  ExecFn fn = compareFn(c, cmp, t, unsignedForm);
  if (!fn)
    return c.error("unknown comparison of this type");
  return c.set(fn, InstClass::Compare);
}

/// set: the comparison goes to a hidden predicate pair, then to a register.
struct SetAux {
  ExecFn compare;
  bool packed = false;
  uint32_t one = ~0u; ///< the result for true
};

void execSet(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const SetAux *>(I.aux);
  o.compare(x, I);
  uint32_t lo = x.regs[I.ops[0].off], hi = x.regs[I.ops[1].off];
  const Operand &d = I.ops[5];
  forLanes(x.active, [&](unsigned l) {
    bool a = lo >> l & 1, b = hi >> l & 1;
    x.write(d, l,
            (a ? o.one : 0) | (o.packed && b ? uint32_t(o.one) << 16 : 0));
  });
  x.setPoison(d, x.poisonOf(I.ops[0]), x.origin[I.ops[0].meta]);
}

Error decodeSet(Decoding &c) {
  Cmp cmp;
  bool unsignedForm = false;
  if (!parseCmp(c, cmp, unsignedForm))
    return c.error("expected a comparison");
  c.inst.flags = uint32_t(cmp) | 128;
  bool combine = false;
  StringRef how = c.takeAny({"and", "or", "xor"});
  if (!how.empty()) {
    combine = true;
    c.inst.flags |= (how == "and" ? 1 : how == "or" ? 2 : 3) << 4;
  }
  if (c.take("ftz"))
    c.inst.flags |= 64;
  Type to = c.takeType(), t = c.takeType();
  ATTN_SIM_TRY(c.expectOps(combine ? 4 : 3, combine ? 4 : 3));
  c.ops.push_back(c.d.newRegister(1));
  c.ops.push_back(c.d.newRegister(1));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], t));
  if (combine)
    ATTN_SIM_TRY(c.srcPred(c.ast.ops[3]));
  else
    c.none();
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], to));
  ExecFn fn = compareFn(c, cmp, t, unsignedForm);
  if (!fn || bitWidth(to) > 32)
    return c.error("unknown comparison of this type");
  auto *aux = c.makeAux<SetAux>();
  aux->compare = fn;
  aux->packed = t == Type::F16x2 || t == Type::BF16x2;
  switch (to) {
  case Type::F32:
    aux->one = 0x3f800000;
    break;
  case Type::F16:
  case Type::F16x2:
    aux->one = 0x3c00;
    break;
  case Type::BF16:
  case Type::BF16x2:
    aux->one = 0x3f80;
    break;
  default:
    aux->one = bitWidth(to) == 16 || aux->packed ? 0xffff : ~0u;
    break;
  }
  return c.set(execSet, InstClass::Compare);
}

} // namespace

void mlir::attn::sim::registerCompareOps(DecodeTable &table) {
  table["setp"] = decodeSetp;
  table["set"] = decodeSet;
}
