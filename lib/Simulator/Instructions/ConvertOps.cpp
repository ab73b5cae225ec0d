//===- ConvertOps.cpp - Conversions between types -------------------------===//

#include "Alu.h"
#include "SyncInstructions.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

struct CvtAux {
  Type to = Type::None, from = Type::None;
  Rounding rounding = Rounding::Nearest;
  bool integerRounding = false; ///< `.rni` and relatives
  bool ftz = false, sat = false, relu = false, satfinite = false;
  bool scaled = false;
};

bool isFloatType(Type t) {
  return t == Type::F16 || t == Type::BF16 || t == Type::F32 ||
         t == Type::F64 || t == Type::TF32;
}

double roundToInteger(double v, Rounding r) {
  switch (r) {
  case Rounding::Nearest:
    return std::nearbyint(v);
  case Rounding::Zero:
    return std::trunc(v);
  case Rounding::Down:
    return std::floor(v);
  case Rounding::Up:
    return std::ceil(v);
  case Rounding::Away:
    return std::round(v);
  }
  return v;
}

double decodeAnyFloat(Type t, uint64_t bits, bool ftz) {
  switch (t) {
  case Type::F64:
    return bitCast<double>(bits);
  case Type::F32: {
    float f = bitCast<float>(uint32_t(bits));
    return ftz ? flush(f) : f;
  }
  case Type::F16:
    return halfToFloat(bits);
  case Type::BF16:
    return bfloatToFloat(bits);
  default:
    return decodeFloat(bits, formatOf(t));
  }
}

uint64_t encodeAnyFloat(const CvtAux &o, double v) {
  if (o.sat)
    v = v != v ? 0.0 : v <= 0 ? 0.0 : v > 1 ? 1.0 : v;
  if (o.relu && !(v != v) && v <= 0)
    v = 0;
  if (o.to == Type::F64)
    return bitCast<uint64_t>(v);
  // From f64 a NaN keeps its sign.
  if (v != v && o.from == Type::F64)
    return formatOf(o.to).nan | uint32_t(std::signbit(v))
                                    << formatOf(o.to).signBit();
  uint32_t r;
  if (v == v && o.rounding == Rounding::Nearest && o.to == Type::F32)
    r = bitCast<uint32_t>(float(v));
  else
    r = encodeFloat(v, formatOf(o.to), o.rounding, o.satfinite);
  if (o.to == Type::F32 && o.ftz)
    r = bitCast<uint32_t>(flush(bitCast<float>(r)));
  if (o.to == Type::TF32)
    r <<= 13;
  return r;
}

uint64_t convertToInteger(const CvtAux &o, double v) {
  unsigned bits = bitWidth(o.to);
  if (v != v)
    return bits == 64 ? 1ull << 63 : o.from == Type::F64 ? 1ull << 31 : 0;
  v = roundToInteger(v, o.rounding);
  if (isSigned(o.to)) {
    double hi = std::ldexp(1.0, bits - 1);
    int64_t r;
    if (v >= hi)
      r = int64_t((uint64_t(1) << (bits - 1)) - 1);
    else if (v < -hi)
      r = -int64_t(uint64_t(1) << (bits - 2)) * 2;
    else
      r = int64_t(v);
    return uint64_t(r);
  }
  double hi = std::ldexp(1.0, bits);
  if (v >= hi)
    return bits == 64 ? ~0ull : (uint64_t(1) << bits) - 1;
  if (v <= 0)
    return 0;
  return uint64_t(v);
}

/// Sign- or zero-extends the low bits of a register.
uint64_t extend(Type t, uint64_t v) {
  switch (t) {
  case Type::S8:
    return int64_t(int8_t(v));
  case Type::S16:
    return int64_t(int16_t(v));
  case Type::S32:
    return int64_t(int32_t(v));
  case Type::U8:
  case Type::B8:
    return uint8_t(v);
  case Type::U16:
  case Type::B16:
    return uint16_t(v);
  case Type::U32:
  case Type::B32:
    return uint32_t(v);
  default:
    return v;
  }
}

uint64_t integerToFloat(const CvtAux &o, uint64_t v) {
  bool negative = isSigned(o.from) && int64_t(v) < 0;
  if (o.rounding == Rounding::Nearest && !o.sat) {
    if (o.to == Type::F32) {
      float f = isSigned(o.from) ? float(int64_t(v)) : float(v);
      return bitCast<uint32_t>(f);
    }
    if (o.to == Type::F64) {
      double d = isSigned(o.from) ? double(int64_t(v)) : double(v);
      return bitCast<uint64_t>(d);
    }
  }
  uint64_t m = negative ? 0 - v : v;
  // Into 53 bits with the last one sticky, then to the format.
  int shift = 0;
  while (m >> 54) {
    m = m >> 1 | (m & 1);
    ++shift;
  }
  if (o.to == Type::F64) {
    // 54 bits with a sticky one: round by hand.
    uint64_t low = m & 1, q = m >> 1;
    bool up = o.rounding == Rounding::Up
                  ? !negative && low
                  : o.rounding == Rounding::Down && negative && low;
    double d = m >> 53 ? std::ldexp(double(q + up), shift + 1)
                       : std::ldexp(double(m), shift);
    return bitCast<uint64_t>(negative ? -d : d);
  }
  if (m >> 53) {
    m = m >> 1 | (m & 1);
    ++shift;
  }
  double d = std::ldexp(double(m), shift);
  CvtAux e = o;
  return encodeAnyFloat(e, negative ? -d : d);
}

uint64_t convert(const CvtAux &o, uint64_t v) {
  if (isFloatType(o.from)) {
    // Conversions to narrower floats do not flush their source.
    bool flushes = o.ftz && (!isFloatType(o.to) || bitWidth(o.to) >= 32);
    double d = decodeAnyFloat(o.from, v, flushes);
    if (flushes && o.to == Type::F64 && d != d)
      return 0x7fffffffe0000000ull;
    // Away from zero a NaN keeps its upper bits.
    if (o.to == Type::TF32 && d != d)
      return o.rounding == Rounding::Away ? v & 0xffffe000 : 0x7fffe000;
    if (o.to == Type::F32 && o.from == Type::BF16 && d != d && !o.sat)
      return v << 16;
    if (isFloatType(o.to)) {
      if (o.integerRounding)
        d = roundToInteger(d, o.rounding);
      return encodeAnyFloat(o, d);
    }
    return convertToInteger(o, d);
  }
  uint64_t e = extend(o.from, v);
  if (isFloatType(o.to))
    return integerToFloat(o, e);
  if (o.sat) {
    // Integer saturation, from any to any.
    __int128 wide = isSigned(o.from) ? __int128(int64_t(e)) : __int128(e);
    unsigned bits = bitWidth(o.to);
    __int128 lo = isSigned(o.to) ? -(__int128(1) << (bits - 1)) : 0;
    __int128 hi = isSigned(o.to) ? (__int128(1) << (bits - 1)) - 1
                                 : (__int128(1) << bits) - 1;
    e = uint64_t(wide < lo ? lo : wide > hi ? hi : wide);
  }
  return extend(o.to, e);
}

uint64_t truncateTo(const Operand &d, Type t, uint64_t v) {
  // A wider destination gets the sign- or zero-extended value.
  if (d.cls == RegClass::R64)
    return v;
  return bitWidth(t) < 32 && !isSigned(t) ? extend(t, v) : uint32_t(v);
}

void execConvert(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const CvtAux *>(I.aux);
  forLanes(x.active, [&](unsigned l) {
    uint64_t v = convert(o, x.read(I.ops[1], l));
    x.write(I.ops[0], l, truncateTo(I.ops[0], o.to, v));
  });
  x.propagate<1>(I);
}

// The most frequent ones as loops of their own.
template <typename D, typename A>
struct Resize {
  static D f(A a) { return D(a); }
};

template <uint16_t (*Encode)(float)>
void execPack(Exec &x, const Inst &I) {
  uint32_t *d = x.r32(I.ops[0]);
  const uint32_t *a = x.r32(I.ops[1]), *b = x.r32(I.ops[2]);
  forLanes(x.active, [&](unsigned l) {
    d[l] = uint32_t(Encode(bitCast<float>(a[l]))) << 16 |
           Encode(bitCast<float>(b[l]));
  });
  x.propagate<2>(I);
}

struct HalfToFloat {
  static float f(uint16_t h) { return canonical(halfToFloat(h)); }
};
struct BfloatToFloat {
  static float f(uint16_t h) { return bfloatToFloat(h); }
};
struct FloatToHalf {
  static uint16_t f(float v) { return floatToHalf(v); }
};
struct FloatToBfloat {
  static uint16_t f(float v) { return floatToBfloat(v); }
};

/// Packed conversions. `a` goes to the upper element.
void execPackGeneric(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const CvtAux *>(I.aux);
  const Format &f = formatOf(o.to);
  unsigned bits = bitWidth(o.to) / 2;
  forLanes(x.active, [&](unsigned l) {
    auto one = [&](uint64_t v) -> uint32_t {
      double d = decodeAnyFloat(Type::F32, v, o.ftz);
      if (o.relu && d == d && d <= 0)
        d = 0;
      return encodeFloat(d, f, o.rounding, o.satfinite);
    };
    uint32_t hi = one(x.read(I.ops[1], l)), lo = one(x.read(I.ops[2], l));
    x.write(I.ops[0], l, hi << bits | lo);
  });
  x.propagate<2>(I);
}

/// Between packed two-element formats: f16x2 to e4m3x2 and back.
void execRepack(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const CvtAux *>(I.aux);
  const Format &to = formatOf(o.to), &from = formatOf(o.from);
  unsigned toBits = o.to == Type::E2M1x2 ? 4 : bitWidth(o.to) / 2;
  unsigned fromBits = o.from == Type::E2M1x2 ? 4 : bitWidth(o.from) / 2;
  forLanes(x.active, [&](unsigned l) {
    uint64_t v = x.read(I.ops[1], l), r = 0;
    for (unsigned i = 0; i < 2; ++i) {
      uint32_t e = v >> (i * fromBits) & ((1u << fromBits) - 1);
      double d = decodeFloat(e, from);
      if (o.relu && d == d && d <= 0)
        d = 0;
      r |= uint64_t(encodeFloat(d, to, o.rounding, o.satfinite))
           << (i * toBits);
    }
    x.write(I.ops[0], l, r);
  });
  x.propagate<1>(I);
}

bool isPacked(Type t) {
  switch (t) {
  case Type::F16x2:
  case Type::BF16x2:
  case Type::E4M3x2:
  case Type::E5M2x2:
  case Type::E2M3x2:
  case Type::E3M2x2:
  case Type::E2M1x2:
  case Type::UE8M0x2:
    return true;
  default:
    return false;
  }
}

void execPackInteger(Exec &x, const Inst &I) {
  // cvt.pack.sat.{u16,s16}.s32 d, a, b  /  .{u8,s8}.s32.b32 d, a, b, c.
  unsigned bits = I.flags & 0xff;
  bool isSignedTo = I.flags & 0x100, chain = I.flags & 0x200;
  int64_t lo = isSignedTo ? -(int64_t(1) << (bits - 1)) : 0;
  int64_t hi =
      isSignedTo ? (int64_t(1) << (bits - 1)) - 1 : (int64_t(1) << bits) - 1;
  uint32_t mask = (uint64_t(1) << bits) - 1;
  forLanes(x.active, [&](unsigned l) {
    auto one = [&](const Operand &op) {
      int64_t v = int32_t(x.r32(op)[l]);
      return uint32_t(std::min(std::max(v, lo), hi)) & mask;
    };
    uint32_t r = one(I.ops[1]) << bits | one(I.ops[2]);
    if (chain)
      r |= x.r32(I.ops[3])[l] << (2 * bits);
    x.r32(I.ops[0])[l] = r;
  });
  if (chain)
    x.propagate<3>(I);
  else
    x.propagate<2>(I);
}

Error decodeCvtPack(Decoding &c) {
  c.take("sat");
  StringRef packed =
      c.takeAny({"u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"});
  unsigned bits = 0;
  packed.drop_front(!packed.empty()).getAsInteger(10, bits);
  Type from = c.takeType(), chain = c.takeType();
  if (from != Type::S32 || !bits || (chain != Type::None) == (bits == 16))
    return c.error("unknown type");
  unsigned n = chain == Type::None ? 3 : 4;
  ATTN_SIM_TRY(c.expectOps(n, n));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], Type::B32));
  for (unsigned i = 1; i < n; ++i)
    ATTN_SIM_TRY(c.src(c.ast.ops[i], Type::B32));
  c.inst.flags = bits | (packed.starts_with("s") ? 0x100 : 0) |
                 (chain != Type::None ? 0x200 : 0);
  return c.set(execPackInteger, InstClass::Convert);
}

/// Two 4-bit elements in a byte.
void execPackNibbles(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const CvtAux *>(I.aux);
  forLanes(x.active, [&](unsigned l) {
    auto one = [&](const Operand &op) -> uint32_t {
      double d = decodeAnyFloat(Type::F32, x.r32(op)[l], false);
      if (o.relu && d <= 0)
        d = 0;
      return encodeFloat(d, formatOf(Type::E2M1), o.rounding, true);
    };
    x.write(I.ops[0], l, one(I.ops[1]) << 4 | one(I.ops[2]));
  });
  x.propagate<2>(I);
}

Error takeQualifiers(Decoding &c, CvtAux &o, bool &hasRounding) {
  StringRef r = c.takeAny(
      {"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi", "rs"});
  if (r == "rs")
    return c.error("stochastic rounding is not supported");
  hasRounding = !r.empty();
  o.integerRounding = r.ends_with("i");
  o.rounding = r.starts_with("rna")  ? Rounding::Away
               : r.starts_with("rz") ? Rounding::Zero
               : r.starts_with("rm") ? Rounding::Down
               : r.starts_with("rp") ? Rounding::Up
                                     : Rounding::Nearest;
  o.ftz = c.take("ftz");
  o.sat = c.take("sat");
  o.relu = c.take("relu");
  o.satfinite = c.take("satfinite");
  if (c.take("scaled::n2::ue8m0"))
    return c.error("scaled conversions are not supported");
  o.to = c.takeType();
  o.from = c.takeType();
  if (o.to == Type::None || o.from == Type::None)
    return c.error("expected two types");
  return Error::success();
}

/// Two f32 become the halves of a packed type.
Error decodePackFloats(Decoding &c, const CvtAux &o) {
  if (c.numOps() == 4)
    return c.error("stochastic rounding is not supported");
  ATTN_SIM_TRY(c.expectOps(3, 3));
  ATTN_SIM_TRY(c.dstWide(c.ast.ops[0], o.to));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], Type::F32));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], Type::F32));
  if (o.rounding == Rounding::Nearest && !o.relu && !o.satfinite && !o.ftz) {
    if (o.to == Type::F16x2)
      return c.set(execPack<floatToHalf>, InstClass::Convert);
    if (o.to == Type::BF16x2)
      return c.set(execPack<floatToBfloat>, InstClass::Convert);
  }
  *c.makeAux<CvtAux>() = o;
  return c.set(o.to == Type::E2M1x2 ? execPackNibbles : execPackGeneric,
               InstClass::Convert);
}

/// The vector loop of a frequent conversion; null when there is none.
ExecFn pickVector(const CvtAux &o) {
  Type to = o.to, from = o.from;
  bool isNearest = o.rounding == Rounding::Nearest;
  if (from == Type::F16 && to == Type::F32)
    return exec1<float, uint16_t, HalfToFloat>;
  if (from == Type::BF16 && to == Type::F32)
    return exec1<float, uint16_t, BfloatToFloat>;
  if (from == Type::F32 && to == Type::F16 && isNearest)
    return exec1<uint16_t, float, FloatToHalf>;
  if (from == Type::F32 && to == Type::BF16 && isNearest)
    return exec1<uint16_t, float, FloatToBfloat>;
  if (from == Type::S32 && to == Type::S64)
    return exec1<int64_t, int32_t, Resize<int64_t, int32_t>>;
  if (from == Type::U32 && (to == Type::U64 || to == Type::S64))
    return exec1<uint64_t, uint32_t, Resize<uint64_t, uint32_t>>;
  if (bitWidth(from) == 64 && isInteger(from) && isInteger(to) &&
      bitWidth(to) == 32)
    return exec1<uint32_t, uint64_t, Resize<uint32_t, uint64_t>>;
  return nullptr;
}

Error decodeCvt(Decoding &c) {
  if (c.take("pack"))
    return decodeCvtPack(c);
  CvtAux o;
  bool hasRounding;
  ATTN_SIM_TRY(takeQualifiers(c, o, hasRounding));
  if (isPacked(o.to) && o.from == Type::F32)
    return decodePackFloats(c, o);
  ATTN_SIM_TRY(c.expectOps(2, 2));
  if (isPacked(o.to) && isPacked(o.from)) {
    ATTN_SIM_TRY(c.dstWide(c.ast.ops[0], o.to));
    ATTN_SIM_TRY(c.srcWide(c.ast.ops[1], o.from));
    *c.makeAux<CvtAux>() = o;
    return c.set(execRepack, InstClass::Convert);
  }
  auto scalar = [](Type t) {
    return isFloatType(t) || isInteger(t) || t == Type::B32;
  };
  if (!scalar(o.to) || !scalar(o.from))
    return c.error("unknown conversion");
  if (isInteger(o.to) && isFloatType(o.from) && !hasRounding)
    return c.error("expected a rounding mode");
  Type dstType = o.to == Type::TF32 ? Type::B32 : o.to;
  ATTN_SIM_TRY(c.dstWide(c.ast.ops[0], dstType));
  ATTN_SIM_TRY(c.srcWide(c.ast.ops[1], o.from));
  bool exact =
      c.ops[0].cls ==
          (bitWidth(dstType) == 64 ? RegClass::R64 : RegClass::R32) &&
      c.ops[1].cls == (bitWidth(o.from) == 64 ? RegClass::R64 : RegClass::R32);
  if (exact && !o.sat && !o.relu && !o.ftz && !o.satfinite)
    if (ExecFn fn = pickVector(o))
      return c.set(fn, InstClass::Convert);
  *c.makeAux<CvtAux>() = o;
  return c.set(execConvert, InstClass::Convert);
}

} // namespace

void mlir::attn::sim::registerConvertOps(DecodeTable &table) {
  table["cvt"] = decodeCvt;
}
