//===- BitOps.cpp - Bit fields, permutations, small dot products ----------===//

#include "../Sanitizer/PartPoison.h"
#include "Alu.h"
#include "SyncInstructions.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

template <typename T>
struct Popc {
  static uint32_t f(T a) { return llvm::popcount(a); }
};
template <typename T>
struct Clz {
  static uint32_t f(T a) { return llvm::countl_zero(a); }
};
template <typename T>
struct Brev {
  static T f(T a) { return llvm::reverseBits(a); }
};
template <typename T, bool Shift>
struct Bfind {
  static uint32_t f(T a) {
    using U = std::make_unsigned_t<T>;
    U v = a;
    if (std::is_signed_v<T> && a < 0)
      v = ~v;
    if (!v)
      return ~0u;
    uint32_t position = sizeof(T) * 8 - 1 - llvm::countl_zero(v);
    return Shift ? sizeof(T) * 8 - 1 - position : position;
  }
};
template <typename T>
struct Bfe {
  static T f(T a, uint32_t b, uint32_t c) {
    constexpr unsigned bits = sizeof(T) * 8;
    unsigned pos = b & 0xff, len = c & 0xff;
    using U = std::make_unsigned_t<T>;
    U u = a;
    bool sign = false;
    if (std::is_signed_v<T> && len) {
      unsigned top = std::min(pos + len - 1, bits - 1);
      sign = u >> top & 1;
    }
    U r = pos >= bits ? 0 : U(u >> pos);
    unsigned kept = pos >= bits ? 0 : std::min(len, bits - pos);
    if (kept < bits)
      r &= (U(1) << kept) - 1;
    if (sign && kept < bits)
      r |= ~((U(1) << kept) - 1);
    return T(r);
  }
};
template <typename T>
struct BfindShift : Bfind<T, true> {};
template <typename T>
struct BfindPlain : Bfind<T, false> {};

template <typename T>
T bitFieldInsert(T a, T b, uint32_t c, uint32_t dd) {
  constexpr unsigned bits = sizeof(T) * 8;
  unsigned pos = c & 0xff, len = dd & 0xff;
  if (pos >= bits || !len)
    return b;
  len = std::min(len, bits - pos);
  T mask = len >= bits ? ~T(0) : T((T(1) << len) - 1);
  return (b & ~T(mask << pos)) | T((a & mask) << pos);
}

struct ShfLClamp {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t n = std::min(c, 32u);
    return n == 32 ? a : n == 0 ? b : (b << n) | (a >> (32 - n));
  }
};
struct ShfLWrap {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c) {
    return ShfLClamp::f(a, b, c & 31);
  }
};
struct ShfRClamp {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t n = std::min(c, 32u);
    return n == 32 ? b : n == 0 ? a : (b << (32 - n)) | (a >> n);
  }
};
struct ShfRWrap {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c) {
    return ShfRClamp::f(a, b, c & 31);
  }
};

} // namespace

static Error decodeFunnel(Decoding &c) {
  bool left = c.take("l"), right = c.take("r");
  bool clamp = c.take("clamp"), wrap = c.take("wrap");
  if (left == right || clamp == wrap)
    return c.error("expected a direction and '.clamp' or '.wrap'");
  Type t = c.takeType();
  ExecFn fn =
      left ? (clamp ? exec3<uint32_t, uint32_t, uint32_t, uint32_t, ShfLClamp>
                    : exec3<uint32_t, uint32_t, uint32_t, uint32_t, ShfLWrap>)
           : (clamp ? exec3<uint32_t, uint32_t, uint32_t, uint32_t, ShfRClamp>
                    : exec3<uint32_t, uint32_t, uint32_t, uint32_t, ShfRWrap>);
  return decodeSame(c, t == Type::B32 ? fn : nullptr, t, 3, InstClass::Alu);
}

static Error decodeBitCount(Decoding &c) {
  StringRef base = c.ast.base;
  bool shift = c.take("shiftamt");
  Type t = c.takeType();
  ExecFn fn = nullptr;
  Type to = Type::U32;
  if (base == "popc")
    fn = bitWidth(t) == 64 ? exec1<uint32_t, uint64_t, Popc<uint64_t>>
                           : exec1<uint32_t, uint32_t, Popc<uint32_t>>;
  else if (base == "clz")
    fn = bitWidth(t) == 64 ? exec1<uint32_t, uint64_t, Clz<uint64_t>>
                           : exec1<uint32_t, uint32_t, Clz<uint32_t>>;
  else if (base == "brev") {
    fn = bitWidth(t) == 64 ? exec1<uint64_t, uint64_t, Brev<uint64_t>>
                           : exec1<uint32_t, uint32_t, Brev<uint32_t>>;
    to = t;
  } else if (bitWidth(t) >= 32) {
    fn = pickInteger(t, [&](auto z) -> ExecFn {
      using T = decltype(z);
      return shift ? exec1<uint32_t, T, BfindShift<T>>
                   : exec1<uint32_t, T, BfindPlain<T>>;
    });
  }
  if (!fn || bitWidth(t) < 32)
    return c.error("unknown type");
  ATTN_SIM_TRY(c.expectOps(2, 2));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], to));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  return c.set(fn, InstClass::Alu);
}

static Error decodeBfe(Decoding &c) {
  Type t = c.takeType();
  ExecFn fn = bitWidth(t) < 32
                  ? nullptr
                  : pickInteger(
                        t,
                        [](auto z) -> ExecFn {
                          using T = decltype(z);
                          return exec3<T, T, uint32_t, uint32_t, Bfe<T>>;
                        });
  if (!fn)
    return c.error("unknown type");
  ATTN_SIM_TRY(c.expectOps(4, 4));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], Type::U32));
  ATTN_SIM_TRY(c.src(c.ast.ops[3], Type::U32));
  return c.set(fn, InstClass::Alu);
}

template <typename T>
static void execBfi(Exec &x, const Inst &I) {
  forLanes(x.active, [&](unsigned l) {
    lanesOf<T>(x, I.ops[0])[l] = bitFieldInsert<T>(
        lanesOf<T>(x, I.ops[1])[l], lanesOf<T>(x, I.ops[2])[l],
        x.r32(I.ops[3])[l], x.r32(I.ops[4])[l]);
  });
  x.propagate<4>(I);
}

static Error decodeBfi(Decoding &c) {
  Type t = c.takeType();
  if (t != Type::B32 && t != Type::B64)
    return c.error("unknown type");
  ATTN_SIM_TRY(c.expectOps(5, 5));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[3], Type::U32));
  ATTN_SIM_TRY(c.src(c.ast.ops[4], Type::U32));
  return c.set(t == Type::B64 ? execBfi<uint64_t> : execBfi<uint32_t>,
               InstClass::Alu);
}

/// The byte of the eight that byte i of the result is, without `.b32`'s sign
/// replication.
static unsigned pickByte(uint32_t selector, unsigned mode, unsigned i) {
  unsigned s = selector & 3;
  switch (mode) {
  case 0:
    return selector >> (4 * i) & 7;
  case 1: // f4e: forward four extract
    return s + i;
  case 2: // b4e
    return (s + 8 - i) & 7;
  case 3: // rc8: replicate
    return s;
  case 4: // ecl: edge clamp left
    return std::max(s, i);
  case 5: // ecr
    return std::min(s, i);
  default: // rc16
    return (s & 1) * 2 + (i & 1);
  }
}

static uint32_t permute(uint32_t a, uint32_t b, uint32_t selector,
                        unsigned mode) {
  uint8_t bytes[8];
  std::memcpy(bytes, &a, 4);
  std::memcpy(bytes + 4, &b, 4);
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    uint32_t byte = bytes[pickByte(selector, mode, i)];
    if (mode == 0 && (selector >> (4 * i) & 8))
      byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

static void execPermute(Exec &x, const Inst &I) {
  uint32_t *d = x.r32(I.ops[0]);
  const uint32_t *a = x.r32(I.ops[1]), *b = x.r32(I.ops[2]),
                 *s = x.r32(I.ops[3]);
  // Bytes that the selector does not take cannot make the result undefined.
  PartPoison parts = {};
  uint32_t from = 0;
  if (x.poisonOf(I.ops[1]) | x.poisonOf(I.ops[2])) {
    const PartPoison sources[] = {partsOf(x, I.ops[1]), partsOf(x, I.ops[2])};
    forLanes(x.active, [&](unsigned l) {
      for (unsigned i = 0; i < 4; ++i) {
        unsigned pick = pickByte(s[l], I.flags, i);
        if (!(sources[pick / 4][pick % 4] >> l & 1))
          continue;
        parts[i] |= 1u << l;
        if (!from)
          from = x.origin[I.ops[1 + pick / 4].meta];
      }
    });
  }
  if (uint32_t p = x.poisonOf(I.ops[3])) {
    from = x.origin[I.ops[3].meta];
    for (uint32_t &part : parts)
      part |= p;
  }
  forLanes(x.active,
           [&](unsigned l) { d[l] = permute(a[l], b[l], s[l], I.flags); });
  setParts(x, I.ops[0], parts, from);
}

static Error decodePermute(Decoding &c) {
  Type t = c.takeType();
  StringRef mode = c.takeAny({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  c.inst.flags = llvm::StringSwitch<unsigned>(mode)
                     .Case("f4e", 1)
                     .Case("b4e", 2)
                     .Case("rc8", 3)
                     .Case("ecl", 4)
                     .Case("ecr", 5)
                     .Case("rc16", 6)
                     .Default(0);
  return decodeSame(c, t == Type::B32 ? execPermute : nullptr, t, 3,
                    InstClass::Alu);
}

static void execLop3(Exec &x, const Inst &I) {
  uint32_t *d = x.r32(I.ops[0]);
  const uint32_t *a = x.r32(I.ops[1]), *b = x.r32(I.ops[2]),
                 *c = x.r32(I.ops[3]);
  uint32_t lut = I.imm;
  auto one = [&](unsigned l) {
    uint32_t r = 0, A = a[l], B = b[l], C = c[l];
    if (lut & 1)
      r |= ~A & ~B & ~C;
    if (lut & 2)
      r |= ~A & ~B & C;
    if (lut & 4)
      r |= ~A & B & ~C;
    if (lut & 8)
      r |= ~A & B & C;
    if (lut & 16)
      r |= A & ~B & ~C;
    if (lut & 32)
      r |= A & ~B & C;
    if (lut & 64)
      r |= A & B & ~C;
    if (lut & 128)
      r |= A & B & C;
    d[l] = r;
  };
  if (x.active == ~0u)
    for (unsigned l = 0; l < 32; ++l)
      one(l);
  else
    forLanes(x.active, one);
  x.propagate<3>(I);
}

// ops: d, a, b, c, p, q; flags: 1 and.
static void execLop3Pred(Exec &x, const Inst &I) {
  execLop3(x, I);
  uint32_t nonZero = 0;
  forLanes(x.active, [&](unsigned l) {
    nonZero |= uint32_t(x.r32(I.ops[0])[l] != 0) << l;
  });
  uint32_t q = x.pred(I.ops[5]);
  x.setPred(I.ops[4], I.flags ? nonZero & q : nonZero | q);
  uint32_t p = x.poisonOf(I.ops[0]) | x.poisonOf(I.ops[5]);
  x.setPoison(I.ops[4], p, x.origin[I.ops[x.poisonOf(I.ops[0]) ? 0 : 5].meta]);
}

static Error decodeLop3(Decoding &c) {
  StringRef how = c.takeAny({"and", "or"});
  Type t = c.takeType();
  unsigned want = how.empty() ? 5 : 6;
  ATTN_SIM_TRY(c.expectOps(want, want));
  const AstOperand &d = c.ast.ops[0];
  if ((d.kind == AstOperand::Pair) == how.empty())
    return c.error("expected 'd|p' with '.and' and '.or' only");
  ATTN_SIM_TRY(c.dst(how.empty() ? d : d.elems[0], t));
  for (unsigned i = 1; i < 4; ++i)
    ATTN_SIM_TRY(c.src(c.ast.ops[i], t));
  ATTN_SIM_TRY(c.immediate(c.ast.ops[4], c.inst.imm));
  if (how.empty())
    return c.set(execLop3, InstClass::Alu);
  ATTN_SIM_TRY(c.dstPred(d.elems[1]));
  ATTN_SIM_TRY(c.srcPred(c.ast.ops[5]));
  c.inst.flags = how == "and";
  return c.set(execLop3Pred, InstClass::Alu);
}

static void execDot(Exec &x, const Inst &I) {
  // flags: 1 a signed, 2 b signed, 4 dp2a, 8 high half.
  forLanes(x.active, [&](unsigned l) {
    uint32_t a = x.r32(I.ops[1])[l], b = x.r32(I.ops[2])[l];
    uint32_t sum = x.r32(I.ops[3])[l];
    auto byte = [](uint32_t v, unsigned i, bool isSigned) -> int32_t {
      uint8_t u = v >> (8 * i);
      return isSigned ? int32_t(int8_t(u)) : int32_t(u);
    };
    if (I.flags & 4) {
      for (unsigned i = 0; i < 2; ++i) {
        uint16_t h = a >> (16 * i);
        int32_t av = I.flags & 1 ? int32_t(int16_t(h)) : int32_t(h);
        sum += uint32_t(av * byte(b, i + (I.flags & 8 ? 2 : 0), I.flags & 2));
      }
    } else {
      for (unsigned i = 0; i < 4; ++i)
        sum += uint32_t(byte(a, i, I.flags & 1) * byte(b, i, I.flags & 2));
    }
    x.r32(I.ops[0])[l] = sum;
  });
  x.propagate<3>(I);
}

static Error decodeDot(Decoding &c) {
  bool two = c.ast.base == "dp2a";
  bool hi = c.take("hi");
  if (two && !hi && !c.take("lo"))
    return c.error("expected '.lo' or '.hi'");
  Type a = c.takeType(), b = c.takeType();
  if (bitWidth(a) != 32 || b == Type::None)
    b = a;
  c.inst.flags = (isSigned(a) ? 1 : 0) | (isSigned(b) ? 2 : 0) | (two ? 4 : 0) |
                 (hi ? 8 : 0);
  return decodeSame(c, execDot, Type::B32, 3, InstClass::Alu);
}

/// The n-th set bit from a base position, upwards or downwards.
struct FindNthSet {
  static uint32_t f(uint32_t mask, uint32_t base, int32_t offset) {
    if (offset == 0)
      return base < 32 && mask >> base & 1 ? base : ~0u;
    int step = offset > 0 ? 1 : -1;
    uint32_t left = offset > 0 ? offset : -uint32_t(offset);
    for (int64_t at = base; at >= 0 && at < 32; at += step)
      if ((mask >> at & 1) && --left == 0)
        return at;
    return ~0u;
  }
};

/// The low b bits of a, extended.
template <typename T, bool Clamp>
struct Extend {
  static T f(T a, uint32_t b) {
    uint32_t bits = b & 31;
    if (Clamp && b >= 32)
      return a;
    return bits ? T(T(uint32_t(a) << (32 - bits)) >> (32 - bits)) : T(0);
  }
};

/// b ones from bit a on.
template <bool Clamp>
struct BitMask {
  static uint32_t f(uint32_t a, uint32_t b) {
    if (Clamp && a >= 32)
      return 0;
    uint64_t ones = Clamp && b >= 32 ? ~0u : (uint64_t(1) << (b & 31)) - 1;
    return uint32_t(ones << (a & 31));
  }
};

static Error decodeFindNthSet(Decoding &c) {
  return decodeSame(c, exec3<uint32_t, uint32_t, uint32_t, int32_t, FindNthSet>,
                    c.takeType(), 3, InstClass::Alu);
}

static Error decodeExtend(Decoding &c) {
  bool clamp = c.take("clamp");
  if (!clamp && !c.take("wrap"))
    return c.error("expected '.clamp' or '.wrap'");
  Type t = c.takeType();
  if (c.ast.base == "bmsk")
    return decodeSame(c,
                      clamp
                          ? exec2<uint32_t, uint32_t, uint32_t, BitMask<true>>
                          : exec2<uint32_t, uint32_t, uint32_t, BitMask<false>>,
                      t, 2, InstClass::Alu);
  ExecFn fn =
      t == Type::S32
          ? (clamp ? exec2<int32_t, int32_t, uint32_t, Extend<int32_t, true>>
                   : exec2<int32_t, int32_t, uint32_t, Extend<int32_t, false>>)
          : (clamp ? exec2<uint32_t, uint32_t, uint32_t, Extend<uint32_t, true>>
                   : exec2<uint32_t, uint32_t, uint32_t,
                           Extend<uint32_t, false>>);
  return decodeSame(c, fn, t, 2, InstClass::Alu);
}

void mlir::attn::sim::registerBitOps(DecodeTable &table) {
  table["shf"] = decodeFunnel;
  for (StringRef name : {"popc", "clz", "brev", "bfind"})
    table[name] = decodeBitCount;
  table["bfe"] = decodeBfe;
  table["bfi"] = decodeBfi;
  table["prmt"] = decodePermute;
  table["lop3"] = decodeLop3;
  table["fns"] = decodeFindNthSet;
  table["szext"] = table["bmsk"] = decodeExtend;
  table["dp4a"] = table["dp2a"] = decodeDot;
}
