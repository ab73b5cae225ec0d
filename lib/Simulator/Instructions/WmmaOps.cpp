//===- WmmaOps.cpp - wmma.load, wmma.mma, wmma.store ----------------------===//
//
// Which thread holds which element of a fragment is not specified. Here the
// elements lie in the order of lanes and registers, and start over where the
// registers hold more than a matrix, as those of f16 operands do.
//
//===----------------------------------------------------------------------===//

#include "../Numerics/FloatFormat.h"
#include "../Sanitizer/Races.h"
#include "MemoryTraffic.h"
#include "SyncInstructions.h"
#include "WarpSync.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

/// A matrix in registers of a warp.
struct Fragment {
  unsigned rows = 16, columns = 16;
  Type type = Type::F16;
  unsigned regs = 8; ///< of each lane

  unsigned perReg() const { return std::max(1u, 32 / bitWidth(type)); }
  Type regType() const { return type == Type::F64 ? Type::B64 : Type::B32; }
  unsigned elements() const { return rows * columns; }
  /// Calls fn(lane, register, position in it, element) for every slot.
  template <typename Fn>
  void forSlots(Fn &&fn) const {
    unsigned per = perReg();
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned r = 0; r < regs; ++r)
        for (unsigned e = 0; e < per; ++e)
          fn(lane, r, e, ((lane * regs + r) * per + e) % elements());
  }
};

struct WmmaAux {
  unsigned m = 16, n = 16, k = 16;
  Fragment a, b, c, d;
  bool rowMajor = true, saturate = false;
  Space space = Space::Generic;
};

struct Shape {
  unsigned m, n, k;
};

/// Fills in the fragment of a matrix; false when the shape has no such type.
bool makeFragment(const Shape &s, char which, Type type, Fragment &f) {
  f.rows = which == 'b' ? s.k : s.m;
  f.columns = which == 'a' ? s.k : s.n;
  f.type = type;
  bool operand = which == 'a' || which == 'b';
  unsigned area = f.elements();
  bool wide = s.m * s.n == 256 && s.k == 16;
  switch (type) {
  case Type::F16:
    f.regs = operand ? 8 : 4;
    return wide;
  case Type::F32:
    f.regs = 8;
    return !operand && s.m * s.n == 256;
  case Type::BF16:
    f.regs = area / 64;
    return operand && wide;
  case Type::TF32:
    f.regs = 4;
    return operand && s.m == 16 && s.n == 16 && s.k == 8;
  case Type::U8:
  case Type::S8:
    f.regs = area / 128;
    return operand && wide;
  case Type::S32:
    f.regs = area / 32;
    return !operand;
  case Type::F64:
    f.regs = area / 32;
    return s.m == 8 && s.n == 8 && s.k == 4;
  default:
    return false;
  }
}

uint64_t slotBits(Exec &x, const Fragment &f, const Operand *regs,
                  unsigned lane, unsigned r, unsigned e) {
  uint64_t v = x.read(regs[r], lane);
  unsigned bits = bitWidth(f.type);
  return bits >= 32 ? v : v >> (bits * e) & ((1u << bits) - 1);
}

void putSlot(Exec &x, const Fragment &f, const Operand *regs, unsigned lane,
             unsigned r, unsigned e, uint64_t value) {
  unsigned bits = bitWidth(f.type);
  if (bits >= 32)
    return x.write(regs[r], lane, value);
  uint32_t &word = x.r32(regs[r])[lane];
  uint32_t mask = ((1u << bits) - 1) << (bits * e);
  word = (word & ~mask) | (uint32_t(value) << (bits * e) & mask);
}

// ops: registers, address, stride.
template <bool Store>
void execWmmaMemory(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  const auto &o = *static_cast<const WmmaAux *>(I.aux);
  const Fragment &f = o.d;
  const Operand &base = I.ops[f.regs], &strideOp = I.ops[f.regs + 1];
  uint64_t address = x.uniform(base, "a matrix address") + I.imm;
  if (x.action == Action::Fault)
    return;
  uint32_t stride = x.uniform(strideOp, "a matrix stride");
  if (x.action == Action::Fault)
    return;
  if (base.cls == RegClass::R32)
    address = uint32_t(address);
  unsigned bytes = bitWidth(f.type) / 8;
  std::vector<uint32_t> poisoned(f.regs);
  std::vector<bool> seen(f.elements());
  bool ok = true;
  f.forSlots([&](unsigned lane, unsigned r, unsigned e, unsigned element) {
    unsigned row = element / f.columns, column = element % f.columns;
    uint64_t at = address + uint64_t(o.rowMajor ? row * stride + column
                                                : column * stride + row) *
                                bytes;
    MemRef ref;
    if (!ok || (Store && seen[element]))
      return;
    if (!(ok = x.resolve(o.space, at, bytes, bytes, Store, lane, ref)))
      return;
    if (!seen[element])
      track(x, ref, bytes, Store, 0, -1);
    seen[element] = true;
    uint64_t value = 0;
    if (Store) {
      if (ref.space == Space::Shared)
        checkMbarrierOverlap(x, ref, bytes, -1);
      value = slotBits(x, f, I.ops, lane, r, e);
      std::memcpy(ref.data, &value, bytes);
      bool defined = !(x.poison[I.ops[r].meta] >> lane & 1);
      if (!defined && ref.space == Space::Global)
        x.checkPoison(I.ops[r], "a value stored to global memory");
      if (ref.valid)
        std::memset(ref.valid, defined, bytes);
      return;
    }
    std::memcpy(&value, ref.data, bytes);
    putSlot(x, f, I.ops, lane, r, e, value);
    for (unsigned i = 0; i < bytes && ref.valid; ++i)
      if (!ref.valid[i])
        poisoned[r] |= 1u << lane;
  });
  for (unsigned r = 0; ok && !Store && r < f.regs; ++r)
    x.setPoison(I.ops[r], poisoned[r], x.pc + 1);
}

double elementValue(Type type, uint64_t bits) {
  switch (type) {
  case Type::F64:
    return bitCast<double>(bits);
  case Type::F32:
    return bitCast<float>(uint32_t(bits));
  case Type::TF32:
    return bitCast<float>(uint32_t(bits) & 0xffffe000);
  case Type::F16:
    return halfToFloat(bits);
  case Type::BF16:
    return bfloatToFloat(bits);
  case Type::U8:
    return uint8_t(bits);
  case Type::S8:
    return int8_t(bits);
  default:
    return int32_t(bits);
  }
}

uint64_t encodeElement(const WmmaAux &o, double v) {
  switch (o.d.type) {
  case Type::F64:
    return bitCast<uint64_t>(v);
  case Type::F32:
    return bitCast<uint32_t>(canonical(float(v)));
  case Type::F16:
    return floatToHalf(v);
  default: {
    // Sums of 32-bit integers fit into a double.
    int64_t sum = int64_t(v);
    if (o.saturate)
      sum = std::min<int64_t>(std::max<int64_t>(sum, INT32_MIN), INT32_MAX);
    return uint32_t(sum);
  }
  }
}

// ops: d, a, b, c.
void execWmmaMma(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  const auto &o = *static_cast<const WmmaAux *>(I.aux);
  const Operand *d = I.ops, *a = d + o.d.regs, *b = a + o.a.regs,
                *c = b + o.b.regs;
  uint32_t any = 0, from = 0;
  auto gather = [&](const Fragment &f, const Operand *regs) {
    std::vector<double> values(f.elements());
    f.forSlots([&](unsigned lane, unsigned r, unsigned e, unsigned element) {
      values[element] = elementValue(f.type, slotBits(x, f, regs, lane, r, e));
    });
    for (unsigned r = 0; r < f.regs; ++r)
      if (x.poison[regs[r].meta]) {
        any |= x.poison[regs[r].meta];
        from = x.origin[regs[r].meta];
      }
    return values;
  };
  std::vector<double> av = gather(o.a, a), bv = gather(o.b, b),
                      cv = gather(o.c, c);
  bool isDouble = o.d.type == Type::F64;
  bool isFloat = o.d.type == Type::F32 || o.d.type == Type::F16;
  for (unsigned i = 0; i < o.m; ++i)
    for (unsigned j = 0; j < o.n; ++j) {
      double &sum = cv[i * o.n + j];
      for (unsigned k = 0; k < o.k; ++k) {
        double p = av[i * o.k + k], q = bv[k * o.n + j];
        sum = isDouble  ? std::fma(p, q, sum)
              : isFloat ? double(float(sum + p * q))
                        : sum + p * q;
      }
    }
  o.d.forSlots([&](unsigned lane, unsigned r, unsigned e, unsigned element) {
    putSlot(x, o.d, d, lane, r, e, encodeElement(o, cv[element]));
  });
  for (unsigned r = 0; r < o.d.regs; ++r)
    x.setPoison(d[r], any ? ~0u : 0, from);
  ++x.cluster.counters.mmaInstructions;
  x.cluster.counters.mmaFlops += 2ull * o.m * o.n * o.k;
}

bool takeShape(Decoding &c, Shape &s) {
  for (StringRef mod : c.mods) {
    StringRef rest = mod;
    if (rest.consume_front("m") && !rest.consumeInteger(10, s.m) &&
        rest.consume_front("n") && !rest.consumeInteger(10, s.n) &&
        rest.consume_front("k") && !rest.consumeInteger(10, s.k) &&
        rest.empty())
      return c.take(mod);
  }
  return false;
}

Error decodeWmma(Decoding &c) {
  auto *o = c.makeAux<WmmaAux>();
  bool mma = c.take("mma"), store = c.take("store");
  if (!mma && !store && !c.take("load"))
    return c.error("expected 'wmma.load', 'wmma.store' or 'wmma.mma'");
  if (!c.take("sync") || !c.take("aligned"))
    return c.error("expected '.sync.aligned'");
  Shape s{};
  if (!takeShape(c, s))
    return c.error("expected a shape");
  o->m = s.m;
  o->n = s.n;
  o->k = s.k;
  if (!mma) {
    StringRef which = store ? c.takeAny({"d"}) : c.takeAny({"a", "b", "c"});
    StringRef layout = c.takeAny({"row", "col"});
    if (which.empty() || layout.empty())
      return c.error("expected a matrix and its layout");
    o->rowMajor = layout == "row";
    StringRef space = c.takeAny({"global", "shared", "shared::cta"});
    o->space = space == "global" ? Space::Global
               : space.empty()   ? Space::Generic
                                 : Space::Shared;
    if (!makeFragment(s, which[0], c.takeType(), o->d))
      return c.error("unsupported shape for this type");
    ATTN_SIM_TRY(c.expectOps(2, 3));
    const auto &ops = c.ast.ops;
    ATTN_SIM_TRY(store ? c.srcVector(ops[1], o->d.regType(), o->d.regs)
                       : c.dstVector(ops[0], o->d.regType(), o->d.regs));
    ATTN_SIM_TRY(c.address(ops[store ? 0 : 1], c.inst.imm));
    // Without a stride rows, or columns, follow each other.
    AstOperand packed;
    packed.kind = AstOperand::Int;
    packed.bits = o->rowMajor ? o->d.columns : o->d.rows;
    ATTN_SIM_TRY(c.src(ops.size() == 3 ? ops[2] : packed, Type::U32));
    unsigned bytes = bitWidth(o->d.type) / 8;
    ProgramImpl &p = c.program();
    p.sharedGranule = std::min(p.sharedGranule, bytes);
    p.globalGranule = std::min(p.globalGranule, bytes);
    return c.set(store ? execWmmaMemory<true> : execWmmaMemory<false>,
                 store ? InstClass::StMatrix : InstClass::LdMatrix);
  }
  for (StringRef layout : {"row", "col"})
    while (c.take(layout))
      ;
  o->saturate = c.take("satfinite");
  // `.d.c` of f16 operands, else `.d.a.b.c`.
  Type types[4] = {c.takeType(), c.takeType(), c.takeType(), c.takeType()};
  if (types[2] == Type::None) {
    types[3] = types[1];
    types[1] = types[2] = Type::F16;
  }
  if (!makeFragment(s, 'd', types[0], o->d) ||
      !makeFragment(s, 'a', types[1], o->a) ||
      !makeFragment(s, 'b', types[2], o->b) ||
      !makeFragment(s, 'c', types[3], o->c))
    return c.error("unsupported shape for these types");
  ATTN_SIM_TRY(c.expectOps(4, 4));
  ATTN_SIM_TRY(c.dstVector(c.ast.ops[0], o->d.regType(), o->d.regs));
  ATTN_SIM_TRY(c.srcVector(c.ast.ops[1], o->a.regType(), o->a.regs));
  ATTN_SIM_TRY(c.srcVector(c.ast.ops[2], o->b.regType(), o->b.regs));
  ATTN_SIM_TRY(c.srcVector(c.ast.ops[3], o->c.regType(), o->c.regs));
  return c.set(execWmmaMma, InstClass::Mma);
}

} // namespace

void mlir::attn::sim::registerWmmaOps(DecodeTable &table) {
  table["wmma"] = decodeWmma;
}
