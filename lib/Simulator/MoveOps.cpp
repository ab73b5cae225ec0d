//===- MoveOps.cpp - Moves, selections, comparisons, address casts --------===//

#include "Alu.h"
#include <chrono>

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

template <typename T>
struct Copy {
  static T f(T a) { return a; }
};

void execMovPred(Exec &x, const Inst &I) {
  x.setPred(I.ops[0], x.pred(I.ops[1]));
  x.propagate<1>(I);
}

void execMov128(Exec &x, const Inst &I) {
  forLanes(x.active, [&](unsigned l) {
    for (unsigned i = 0; i < 4; ++i)
      x.regs[I.ops[0].off + 4 * l + i] = x.regs[I.ops[1].off + 4 * l + i];
  });
  x.propagate<1>(I);
}

/// Reads `words` 32-bit pieces of a register as one little-endian value.
void readBits(Exec &x, const Operand &o, unsigned lane, uint32_t *out) {
  switch (o.cls) {
  case RegClass::R32:
    out[0] = x.r32(o)[lane];
    break;
  case RegClass::R64:
    out[0] = uint32_t(x.r64(o)[lane]);
    out[1] = uint32_t(x.r64(o)[lane] >> 32);
    break;
  case RegClass::R128:
    for (unsigned i = 0; i < 4; ++i)
      out[i] = x.regs[o.off + 4 * lane + i];
    break;
  default:
    break;
  }
}
void writeBits(Exec &x, const Operand &o, unsigned lane, const uint32_t *in) {
  switch (o.cls) {
  case RegClass::R32:
    x.r32(o)[lane] = in[0];
    break;
  case RegClass::R64:
    x.r64(o)[lane] = in[0] | uint64_t(in[1]) << 32;
    break;
  case RegClass::R128:
    for (unsigned i = 0; i < 4; ++i)
      x.regs[o.off + 4 * lane + i] = in[i];
    break;
  default:
    break;
  }
}

/// mov.bN d, {a, b, …}: imm is the width of an element.
void execPack(Exec &x, const Inst &I) {
  unsigned bits = I.imm, n = I.numOps - 1;
  forLanes(x.active, [&](unsigned l) {
    uint32_t out[4] = {};
    for (unsigned i = 0; i < n; ++i) {
      uint64_t v = x.read(I.ops[i + 1], l);
      if (bits < 64)
        v &= (uint64_t(1) << bits) - 1;
      unsigned at = i * bits;
      out[at / 32] |= uint32_t(v << (at % 32));
      if (bits == 64)
        out[at / 32 + 1] |= uint32_t(v >> 32);
    }
    writeBits(x, I.ops[0], l, out);
  });
  uint32_t p = 0, from = 0;
  for (unsigned i = 1; i <= n; ++i)
    if (uint32_t q = x.poisonOf(I.ops[i])) {
      p |= q;
      if (!from)
        from = x.origin[I.ops[i].meta];
    }
  x.setPoison(I.ops[0], p, from);
  if (p && n == 2) {
    auto &halves = x.warp->halves[I.ops[0].meta];
    for (unsigned i = 0; i < 2; ++i)
      halves[i] = (halves[i] & ~x.active) | x.poisonOf(I.ops[1 + i]);
  }
}

/// mov.bN {a, b, …}, s: the source is the last operand.
void execUnpack(Exec &x, const Inst &I) {
  unsigned bits = I.imm, n = I.numOps - 1;
  const Operand &s = I.ops[n];
  uint32_t p = x.poisonOf(s), from = x.origin[s.meta];
  forLanes(x.active, [&](unsigned l) {
    uint32_t in[4] = {};
    readBits(x, s, l, in);
    for (unsigned i = 0; i < n; ++i) {
      unsigned at = i * bits;
      uint64_t v = in[at / 32] >> (at % 32);
      if (bits < 32)
        v &= (1u << bits) - 1;
      if (bits == 64)
        v |= uint64_t(in[at / 32 + 1]) << 32;
      x.write(I.ops[i], l, v);
    }
  });
  // Halves that were packed apart come apart again. Any other write of the
  // register changes its poison, so that the masks no longer agree.
  const auto &halves = x.warp->halves[s.meta];
  bool apart = p && n == 2 && ((halves[0] | halves[1]) & x.active) == p;
  uint32_t each[2] = {p, p};
  if (apart)
    for (unsigned i = 0; i < 2; ++i)
      each[i] = halves[i] & x.active;
  for (unsigned i = 0; i < n; ++i)
    x.setPoison(I.ops[i], apart ? each[i] : p, from);
}

/// Registers that change while a warp runs.
void execClock(Exec &x, const Inst &I) {
  uint64_t v = x.cluster.steps * 8;
  if (I.imm == 1)
    v >>= 32;
  else if (I.imm >= 2)
    v = 1000000000ull + x.cluster.steps * 4;
  if (I.imm == 3)
    v >>= 32;
  forLanes(x.active, [&](unsigned l) { x.write(I.ops[0], l, v); });
  x.setPoison(I.ops[0], 0);
}

Error decodeMov(Decoding &c) {
  Type t = c.takeType();
  if (t == Type::None)
    return c.error("expected a type");
  ATTN_SIM_TRY(c.expectOps(2, 2));
  const AstOperand &d = c.ast.ops[0], &s = c.ast.ops[1];
  if (t == Type::Pred) {
    ATTN_SIM_TRY(c.dstPred(d));
    ATTN_SIM_TRY(c.srcPred(s));
    return c.set(execMovPred, InstClass::Move);
  }
  if (d.kind == AstOperand::Vector || s.kind == AstOperand::Vector) {
    bool pack = s.kind == AstOperand::Vector;
    const AstOperand &v = pack ? s : d;
    unsigned n = v.elems.size();
    if (!n || bitWidth(t) % n || bitWidth(t) / n < 8)
      return c.error("expected elements that fill the register");
    unsigned bits = bitWidth(t) / n;
    Type elem = bits == 8    ? Type::B8
                : bits == 16 ? Type::B16
                : bits == 32 ? Type::B32
                             : Type::B64;
    c.inst.imm = bits;
    if (pack) {
      ATTN_SIM_TRY(c.dst(d, t));
      for (const AstOperand &e : v.elems)
        ATTN_SIM_TRY(c.src(e, elem));
      return c.set(execPack, InstClass::Move);
    }
    for (const AstOperand &e : v.elems)
      ATTN_SIM_TRY(c.dst(e, elem));
    ATTN_SIM_TRY(c.src(s, t));
    return c.set(execUnpack, InstClass::Move);
  }
  ATTN_SIM_TRY(c.dst(d, t));
  if (s.kind == AstOperand::Name) {
    int which = llvm::StringSwitch<int>(s.name)
                    .Cases({"%clock", "%clock64"}, 0)
                    .Case("%clock_hi", 1)
                    .Cases({"%globaltimer", "%globaltimer_lo"}, 2)
                    .Case("%globaltimer_hi", 3)
                    .Default(-1);
    if (which >= 0) {
      c.inst.imm = which;
      return c.set(execClock, InstClass::Move);
    }
    // mov.u32 %r, %tid.x may also name a 16-bit destination.
  }
  ATTN_SIM_TRY(c.src(s, t));
  switch (bitWidth(t)) {
  case 16:
  case 32:
    return c.set(exec1<uint32_t, uint32_t, Copy<uint32_t>>, InstClass::Move);
  case 64:
    return c.set(exec1<uint64_t, uint64_t, Copy<uint64_t>>, InstClass::Move);
  case 128:
    return c.set(execMov128, InstClass::Move);
  default:
    return c.error("unknown type");
  }
}

//===----------------------------------------------------------------------===//
// Selections
//===----------------------------------------------------------------------===//

template <typename T>
void execSelp(Exec &x, const Inst &I) {
  T *d = reinterpret_cast<T *>(x.regs + I.ops[0].off);
  const T *a = reinterpret_cast<const T *>(x.regs + I.ops[1].off);
  const T *b = reinterpret_cast<const T *>(x.regs + I.ops[2].off);
  uint32_t p = x.pred(I.ops[3]);
  uint32_t mask = x.active;
  if (mask == ~0u)
    for (unsigned l = 0; l < 32; ++l)
      d[l] = p >> l & 1 ? a[l] : b[l];
  else
    forLanes(mask, [&](unsigned l) { d[l] = p >> l & 1 ? a[l] : b[l]; });
  // Only the chosen operand matters.
  uint32_t pa = x.poison[I.ops[1].meta] & p, pb = x.poison[I.ops[2].meta] & ~p;
  uint32_t all = (pa | pb | x.poison[I.ops[3].meta]) & mask;
  x.setPoison(I.ops[0], all,
              all ? x.origin[I.ops[pa & mask   ? 1
                                   : pb & mask ? 2
                                               : 3]
                                 .meta]
                  : 0);
}

Error decodeSelp(Decoding &c) {
  Type t = c.takeType();
  ATTN_SIM_TRY(c.expectOps(4, 4));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], t));
  ATTN_SIM_TRY(c.srcPred(c.ast.ops[3]));
  if (bitWidth(t) != 16 && bitWidth(t) != 32 && bitWidth(t) != 64)
    return c.error("unknown type");
  return c.set(bitWidth(t) == 64 ? execSelp<uint64_t> : execSelp<uint32_t>,
               InstClass::Alu);
}

void execSlct(Exec &x, const Inst &I) {
  forLanes(x.active, [&](unsigned l) {
    uint32_t s = x.r32(I.ops[3])[l];
    bool first = I.flags ? !(bitCast<float>(s) < 0) : int32_t(s) >= 0;
    if (I.flags && bitCast<float>(s) != bitCast<float>(s))
      first = false;
    x.write(I.ops[0], l, x.read(I.ops[first ? 1 : 2], l));
  });
  x.propagate<3>(I);
}

Error decodeSlct(Decoding &c) {
  c.take("ftz");
  Type t = c.takeType(), s = c.takeType();
  ATTN_SIM_TRY(c.expectOps(4, 4));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[3], s));
  c.inst.flags = s == Type::F32;
  return c.set(execSlct, InstClass::Alu);
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

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

double halfValue(uint32_t bits, bool bfloat) {
  return bfloat ? bfloatToFloat(bits) : halfToFloat(bits);
}

/// f16, bf16 and their packed forms: imm 1 bf16, 2 packed.
void execSetpHalf(Exec &x, const Inst &I) {
  uint32_t lo = 0, hi = 0;
  Cmp cmp = Cmp(I.flags & 15);
  forLanes(x.active, [&](unsigned l) {
    uint32_t a = x.r32(I.ops[2])[l], b = x.r32(I.ops[3])[l];
    bool bf = I.imm & 1;
    lo |= uint32_t(compare<double>(cmp, halfValue(a & 0xffff, bf),
                                   halfValue(b & 0xffff, bf)))
          << l;
    if (I.imm & 2)
      hi |= uint32_t(compare<double>(cmp, halfValue(a >> 16, bf),
                                     halfValue(b >> 16, bf)))
            << l;
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
  bool toFloat = false;
  bool packed = false, bfloat = false;
};

void execSet(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const SetAux *>(I.aux);
  o.compare(x, I);
  uint32_t lo = x.regs[I.ops[0].off], hi = x.regs[I.ops[1].off];
  const Operand &d = I.ops[5];
  forLanes(x.active, [&](unsigned l) {
    bool a = lo >> l & 1, b = hi >> l & 1;
    uint32_t one = o.bfloat ? 0x3f80 : 0x3c00;
    uint32_t v;
    if (o.packed)
      v = o.toFloat ? (a ? one : 0) | (b ? one << 16 : 0)
                    : (a ? 0xffffu : 0) | (b ? 0xffff0000u : 0);
    else
      v = o.toFloat ? (a ? 0x3f800000u : 0) : (a ? ~0u : 0);
    x.write(d, l, v);
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
  aux->toFloat = to == Type::F32 || to == Type::F16x2 || to == Type::BF16x2;
  aux->packed = t == Type::F16x2 || t == Type::BF16x2;
  aux->bfloat = to == Type::BF16x2;
  return c.set(execSet, InstClass::Compare);
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// flags: 0 to generic, 1 from generic; imm2 is the window.
void execCvta(Exec &x, const Inst &I) {
  bool to = I.flags;
  forLanes(x.active, [&](unsigned l) {
    uint64_t v = x.read(I.ops[1], l);
    if (!to)
      v = I.imm2 ? (v & 0xffffffff) + I.imm2 : v;
    else
      v = I.imm2 ? v - I.imm2 : v;
    x.write(I.ops[0], l, v);
  });
  x.propagate<1>(I);
}

Error decodeCvta(Decoding &c) {
  bool to = c.take("to");
  StringRef space =
      c.takeAny({"shared", "shared::cta", "shared::cluster", "global", "local",
                 "const", "param", "param::entry"});
  if (space.empty())
    return c.error("expected a state space");
  Type t = c.takeType();
  ATTN_SIM_TRY(c.expectOps(2, 2));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], t));
  int64_t displacement = 0;
  const AstOperand &s = c.ast.ops[1];
  ATTN_SIM_TRY(c.src(s, t));
  (void)displacement;
  c.inst.flags = to;
  c.inst.imm2 = space.starts_with("shared")  ? SharedWindow
                : space == "local"           ? LocalWindow
                : space.starts_with("param") ? ParamWindow
                                             : 0;
  return c.set(execCvta, InstClass::Move);
}

void execIsSpace(Exec &x, const Inst &I) {
  uint32_t r = 0;
  forLanes(x.active, [&](unsigned l) {
    uint64_t v = x.read(I.ops[1], l);
    bool shared = v >= SharedWindow && v < SharedWindow + WindowSize;
    bool local = v >= LocalWindow && v < LocalWindow + WindowSize;
    bool param = v >= ParamWindow && v < ParamWindow + WindowSize;
    bool is = false;
    switch (I.flags) {
    case 0:
      is = shared && (v >> 24 & 0xff) == x.cta->rank;
      break;
    case 1:
      is = shared;
      break;
    case 2:
      is = local;
      break;
    case 3:
      is = !shared && !local && !param;
      break;
    case 4:
      is = param;
      break;
    }
    r |= uint32_t(is) << l;
  });
  x.setPred(I.ops[0], r);
  x.propagate<1>(I);
}

Error decodeIsSpace(Decoding &c) {
  StringRef space =
      c.takeAny({"shared", "shared::cta", "shared::cluster", "global", "local",
                 "const", "param", "param::entry"});
  c.inst.flags = llvm::StringSwitch<unsigned>(space)
                     .Cases({"shared", "shared::cta"}, 0)
                     .Case("shared::cluster", 1)
                     .Case("local", 2)
                     .Case("global", 3)
                     .Cases({"param", "param::entry"}, 4)
                     .Default(5);
  ATTN_SIM_TRY(c.expectOps(2, 2));
  ATTN_SIM_TRY(c.dstPred(c.ast.ops[0]));
  ATTN_SIM_TRY(c.srcWide(c.ast.ops[1], Type::B32));
  return c.set(execIsSpace, InstClass::Compare);
}

void execMapa(Exec &x, const Inst &I) {
  forLanes(x.active, [&](unsigned l) {
    uint64_t v = x.read(I.ops[1], l);
    uint64_t rank = x.r32(I.ops[2])[l];
    x.write(I.ops[0], l, (v & ~uint64_t(0xff000000)) | rank << 24);
  });
  x.propagate<2>(I);
}

Error decodeMapa(Decoding &c) {
  c.take("shared::cluster");
  Type t = c.takeType();
  ATTN_SIM_TRY(c.expectOps(3, 3));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], Type::U32));
  return c.set(execMapa, InstClass::Move);
}

void execGetRank(Exec &x, const Inst &I) {
  forLanes(x.active, [&](unsigned l) {
    x.r32(I.ops[0])[l] = x.read(I.ops[1], l) >> 24 & 0xff;
  });
  x.propagate<1>(I);
}

Error decodeGetRank(Decoding &c) {
  c.take("shared::cluster");
  Type t = c.takeType();
  ATTN_SIM_TRY(c.expectOps(2, 2));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], Type::U32));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  return c.set(execGetRank, InstClass::Move);
}

} // namespace

void mlir::attn::sim::registerMoveOps(DecodeTable &table) {
  table["mov"] = decodeMov;
  table["selp"] = decodeSelp;
  table["slct"] = decodeSlct;
  table["setp"] = decodeSetp;
  table["set"] = decodeSet;
  table["cvta"] = decodeCvta;
  table["isspacep"] = decodeIsSpace;
  table["mapa"] = decodeMapa;
  table["getctarank"] = decodeGetRank;
}
