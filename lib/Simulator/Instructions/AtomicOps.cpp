//===- AtomicOps.cpp - atom and red ---------------------------------------===//

#include "AtomicOps.h"
#include "../Numerics/FloatFormat.h"
#include "../Sanitizer/Races.h"
#include "MemoryTraffic.h"
#include "SyncInstructions.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

struct AtomicAux {
  AtomicOp op = AtomicOp::Add;
  Type type = Type::U32;
  Space space = Space::Generic;
  unsigned bytes = 4, count = 1;
  bool returns = true;
  MemorySemantics semantics;
};

float addHalf(uint32_t a, uint32_t b, bool bf) {
  return bf ? bfloatToFloat(a) + bfloatToFloat(b)
            : halfToFloat(a) + halfToFloat(b);
}
uint32_t halfOp(AtomicOp op, uint32_t a, uint32_t b, bool bf) {
  auto value = [&](uint32_t v) {
    return bf ? bfloatToFloat(v) : halfToFloat(v);
  };
  if (op == AtomicOp::Add) {
    float r = addHalf(a, b, bf);
    return bf ? floatToBfloat(r) : floatToHalf(r);
  }
  float av = value(a), bv = value(b);
  if (av != av)
    return b;
  if (bv != bv)
    return a;
  return (op == AtomicOp::Min) == (av < bv) ? a : b;
}

template <typename T>
T integerOp(AtomicOp op, T a, T b) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
  case AtomicOp::Add:
    return T(U(a) + U(b));
  case AtomicOp::Min:
    return std::min(a, b);
  case AtomicOp::Max:
    return std::max(a, b);
  case AtomicOp::And:
    return a & b;
  case AtomicOp::Or:
    return a | b;
  case AtomicOp::Xor:
    return a ^ b;
  case AtomicOp::Exch:
    return b;
  case AtomicOp::Inc:
    return U(a) >= U(b) ? T(0) : T(a + 1);
  case AtomicOp::Dec:
    return a == 0 || U(a) > U(b) ? b : T(a - 1);
  case AtomicOp::Cas:
    break;
  }
  return b;
}

uint64_t apply(AtomicOp op, Type type, uint64_t a, uint64_t b) {
  switch (type) {
  case Type::F32: {
    float av = bitCast<float>(uint32_t(a)), bv = bitCast<float>(uint32_t(b));
    if (op == AtomicOp::Add)
      return bitCast<uint32_t>(canonical(av + bv));
    if (op == AtomicOp::Min || op == AtomicOp::Max)
      return (op == AtomicOp::Min) == (av < bv) ? a : b;
    return b;
  }
  case Type::F64:
    return bitCast<uint64_t>(bitCast<double>(a) + bitCast<double>(b));
  case Type::F16:
  case Type::BF16:
    return halfOp(op, a, b, type == Type::BF16);
  case Type::F16x2:
  case Type::BF16x2: {
    bool bf = type == Type::BF16x2;
    return halfOp(op, a & 0xffff, b & 0xffff, bf) |
           halfOp(op, a >> 16 & 0xffff, b >> 16 & 0xffff, bf) << 16;
  }
  case Type::S32:
    return uint32_t(integerOp<int32_t>(op, a, b));
  case Type::S64:
    return uint64_t(integerOp<int64_t>(op, a, b));
  case Type::U64:
  case Type::B64:
    return integerOp<uint64_t>(op, a, b);
  case Type::B16:
    return uint16_t(b);
  default:
    return integerOp<uint32_t>(op, a, b);
  }
}

/// Whether the byte of a result at `shift` follows from the value alone.
bool ignoresOld(AtomicOp op, Type type, uint64_t value, unsigned bytes,
                unsigned shift) {
  uint64_t ones = bytes < 8 ? (uint64_t(1) << 8 * bytes) - 1 : ~uint64_t(0);
  bool isSigned = type == Type::S32 || type == Type::S64;
  uint64_t least = isSigned ? ones / 2 + 1 : 0;
  bool isInteger = isSigned || type == Type::U32 || type == Type::U64;
  switch (op) {
  case AtomicOp::Exch:
    return true;
  case AtomicOp::And:
    return (value >> shift & 0xff) == 0;
  case AtomicOp::Or:
    return (value >> shift & 0xff) == 0xff;
  case AtomicOp::Min:
    return isInteger && (value & ones) == least;
  case AtomicOp::Max:
    return isInteger && (value & ones) == (least ^ ones);
  case AtomicOp::Inc:
  case AtomicOp::Dec:
    return value == 0;
  default:
    return false;
  }
}

/// The value that a lane brings to memory is undefined: in global memory that
/// counts as a store of it.
bool checkValue(Exec &x, const Operand &value, const MemRef &ref,
                unsigned lane) {
  if (!(x.poison[value.meta] >> lane & 1))
    return true;
  if (ref.space != Space::Global || !x.sanitizing())
    return false;
  uint32_t saved = std::exchange(x.active, 1u << lane);
  x.checkPoison(value, "a value stored to global memory");
  x.active = saved;
  return true;
}

/// Swaps where memory holds the value to compare with.
void compareAndSwap(const MemRef &ref, unsigned bytes, const void *compare,
                    bool comparesDefined, const void *swap, bool swapsDefined) {
  bool isEqual = !std::memcmp(ref.data, compare, bytes);
  if (isEqual)
    std::memcpy(ref.data, swap, bytes);
  if (!ref.valid)
    return;
  bool known =
      comparesDefined && std::all_of(ref.valid, ref.valid + bytes,
                                     [](uint8_t valid) { return valid; });
  std::memset(ref.valid, known && (!isEqual || swapsDefined), bytes);
}

void execAtomic(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const AtomicAux *>(I.aux);
  // ops: destinations, values, [compare], address.
  unsigned values = o.count;
  const Operand *value = I.ops + o.count;
  const Operand &base = value[values + (o.op == AtomicOp::Cas ? 1 : 0)];
  unsigned total = o.bytes * o.count;
  if (x.poisonOf(base))
    x.checkPoison(base, "an address");
  bool ok = true;
  uint32_t poisoned = 0;
  TrafficCounter traffic(total);
  forLanes(x.active, [&](unsigned lane) {
    if (!ok)
      return;
    uint64_t address = x.read(base, lane) + I.imm;
    if (base.cls == RegClass::R32)
      address = uint32_t(address);
    MemRef ref;
    if (!x.resolve(o.space, address, total, total, true, lane, ref)) {
      ok = false;
      return;
    }
    if (ref.space == Space::Global)
      traffic.add(ref, lane);
    observeStrong(x, o.semantics, ref);
    track(x, ref, total, false, o.semantics.getFlags(), lane);
    track(x, ref, total, true, o.semantics.getFlags(), lane);
    if (ref.space == Space::Shared)
      checkMbarrierOverlap(x, ref, total, lane);
    for (unsigned b = 0; b < total && ref.valid; ++b)
      if (!ref.valid[b])
        poisoned |= 1u << lane;
    for (unsigned i = 0; i < o.count; ++i) {
      MemRef at = ref;
      at.data += i * o.bytes;
      if (at.valid)
        at.valid += i * o.bytes;
      uint64_t old = 0, now = 0;
      std::memcpy(&old, at.data, o.bytes);
      uint64_t v = x.read(value[i], lane);
      if (o.bytes < 8)
        v &= (uint64_t(1) << (o.bytes * 8)) - 1;
      bool isDefined = checkValue(x, value[i], ref, lane);
      if (o.op == AtomicOp::Cas) {
        uint64_t swap = x.read(value[1], lane);
        compareAndSwap(at, o.bytes, &v, isDefined, &swap,
                       checkValue(x, value[1], ref, lane));
      } else {
        applyAtomic(o.op, o.type, v, isDefined, o.bytes, at.data, at.valid);
      }
      std::memcpy(&now, at.data, o.bytes);
      x.cluster.writes += now != old;
      if (o.returns)
        x.write(I.ops[i], lane, old);
    }
    publishStrong(x, o.semantics, ref);
  });
  x.cluster.counters.l2.atomicBytes += 32 * traffic.sectors();
  x.cluster.advance();
  if (!ok || !o.returns)
    return;
  for (unsigned i = 0; i < o.count; ++i)
    x.setPoison(I.ops[i], poisoned, x.pc + 1);
}

/// cas and exch on 128 bits.
void execAtomicWide(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const AtomicAux *>(I.aux);
  bool cas = o.op == AtomicOp::Cas;
  const Operand &base = I.ops[cas ? 3 : 2];
  if (x.poisonOf(base))
    x.checkPoison(base, "an address");
  uint32_t poisoned = 0;
  bool ok = true;
  TrafficCounter traffic(16);
  forLanes(x.active, [&](unsigned lane) {
    uint64_t address = x.read(base, lane) + I.imm;
    if (base.cls == RegClass::R32)
      address = uint32_t(address);
    MemRef ref;
    if (!ok || !(ok = x.resolve(o.space, address, 16, 16, true, lane, ref)))
      return;
    if (ref.space == Space::Global)
      traffic.add(ref, lane);
    observeStrong(x, o.semantics, ref);
    track(x, ref, 16, false, o.semantics.getFlags(), lane);
    track(x, ref, 16, true, o.semantics.getFlags(), lane);
    if (ref.space == Space::Shared)
      checkMbarrierOverlap(x, ref, 16, lane);
    for (unsigned b = 0; b < 16 && ref.valid; ++b)
      if (!ref.valid[b])
        poisoned |= 1u << lane;
    std::array<uint32_t, 4> old;
    std::memcpy(old.data(), ref.data, 16);
    auto lanesOf = [&](const Operand &r) { return &x.regs[r.off + 4 * lane]; };
    const Operand &value = I.ops[cas ? 2 : 1];
    bool isDefined = checkValue(x, value, ref, lane);
    if (cas) {
      compareAndSwap(ref, 16, lanesOf(I.ops[1]),
                     checkValue(x, I.ops[1], ref, lane), lanesOf(value),
                     isDefined);
    } else {
      std::memcpy(ref.data, lanesOf(value), 16);
      if (ref.valid)
        std::memset(ref.valid, isDefined, 16);
    }
    x.cluster.writes += std::memcmp(old.data(), ref.data, 16) != 0;
    std::memcpy(lanesOf(I.ops[0]), old.data(), 16);
    publishStrong(x, o.semantics, ref);
  });
  x.cluster.counters.l2.atomicBytes += 32 * traffic.sectors();
  x.cluster.advance();
  if (ok)
    x.setPoison(I.ops[0], poisoned, x.pc + 1);
}

Error decodeAtomic(Decoding &c) {
  auto *o = c.makeAux<AtomicAux>();
  o->returns = c.ast.base == "atom";
  if (!o->returns && c.take("async"))
    return c.decodeAs("red.async");
  ATTN_SIM_TRY(takeSemantics(c, o->semantics));
  o->semantics.strong = true;
  StringRef space =
      c.takeAny({"global", "shared", "shared::cta", "shared::cluster"});
  o->space = space == "global"             ? Space::Global
             : space.starts_with("shared") ? Space::Shared
                                           : Space::Generic;
  StringRef name = c.takeAny(
      {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"});
  if (!parseAtomicOp(name, o->op))
    return c.error("expected an atomic operation");
  c.take("noftz");
  c.takeCacheHints();
  o->count = c.takeVector();
  o->type = c.takeType();
  o->bytes = bitWidth(o->type) / 8;
  bool cas = o->op == AtomicOp::Cas;
  bool wide = o->type == Type::B128;
  if (o->bytes < 2 ||
      (wide && ((!cas && o->op != AtomicOp::Exch) || !o->returns)))
    return c.error("unknown type");
  unsigned first = o->returns ? 1 : 0;
  ATTN_SIM_TRY(c.expectOps(first + 2 + cas, first + 3 + cas));
  if (o->returns) {
    ATTN_SIM_TRY(c.dstVector(c.ast.ops[0], o->type, o->count));
  } else {
    for (unsigned i = 0; i < o->count; ++i)
      c.none();
  }
  ATTN_SIM_TRY(c.srcVector(c.ast.ops[first + 1], o->type, o->count));
  if (cas)
    ATTN_SIM_TRY(c.src(c.ast.ops[first + 2], o->type));
  if (c.ast.ops[first].kind != AstOperand::Address)
    return c.error("expected an address in brackets");
  ATTN_SIM_TRY(c.address(c.ast.ops[first], c.inst.imm));
  ProgramImpl &p = c.program();
  unsigned total = o->bytes * o->count;
  if (o->space != Space::Global)
    p.sharedGranule = std::min(p.sharedGranule, total);
  if (o->space != Space::Shared) {
    p.globalGranule = std::min(p.globalGranule, total);
    p.communicates = true;
  }
  return c.set(wide ? execAtomicWide : execAtomic, InstClass::Atomic);
}

} // namespace

uint64_t mlir::attn::sim::applyAtomic(AtomicOp op, Type type, uint64_t old,
                                      uint64_t value) {
  return apply(op, type, old, value);
}

void mlir::attn::sim::applyAtomic(AtomicOp op, Type type, uint64_t value,
                                  bool isDefined, unsigned bytes, uint8_t *data,
                                  uint8_t *valid) {
  uint64_t old = 0;
  std::memcpy(&old, data, bytes);
  uint64_t result = apply(op, type, old, value);
  std::memcpy(data, &result, bytes);
  if (!valid)
    return;
  // Sums and comparisons bring each byte of what was there into all others.
  bool isBitwise =
      op == AtomicOp::And || op == AtomicOp::Or || op == AtomicOp::Xor;
  bool wasValid =
      std::all_of(valid, valid + bytes, [](uint8_t v) { return v; });
  for (unsigned b = 0; b < bytes; ++b)
    valid[b] = isDefined && ((isBitwise ? valid[b] : wasValid) ||
                             ignoresOld(op, type, value, bytes, 8 * b));
}

bool mlir::attn::sim::parseAtomicOp(StringRef name, AtomicOp &op) {
  static const std::pair<StringRef, AtomicOp> names[] = {
      {"add", AtomicOp::Add},   {"min", AtomicOp::Min}, {"max", AtomicOp::Max},
      {"and", AtomicOp::And},   {"or", AtomicOp::Or},   {"xor", AtomicOp::Xor},
      {"exch", AtomicOp::Exch}, {"cas", AtomicOp::Cas}, {"inc", AtomicOp::Inc},
      {"dec", AtomicOp::Dec}};
  for (const auto &[spelling, value] : names)
    if (spelling == name) {
      op = value;
      return true;
    }
  return false;
}

void mlir::attn::sim::registerAtomicOps(DecodeTable &table) {
  table["atom"] = table["red"] = decodeAtomic;
}
