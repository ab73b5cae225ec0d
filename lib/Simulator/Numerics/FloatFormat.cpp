//===- FloatFormat.cpp - Small floats and directed rounding ---------------===//

#include "FloatFormat.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir::attn::sim;

const Format &mlir::attn::sim::formatOf(Type type) {
  static const Format f16{5, 10, true, true, true, 0x7bff, 0x7fff};
  static const Format bf16{8, 7, true, true, true, 0x7f7f, 0x7fff};
  static const Format f32{8, 23, true, true, true, 0x7f7fffff, 0x7fffffff};
  static const Format tf32{8, 10, true, true, true, 0x3fbff, 0x3ffff};
  static const Format e4m3{4, 3, false, true, true, 0x7e, 0x7f};
  static const Format e5m2{5, 2, true, true, true, 0x7b, 0x7f};
  static const Format e2m3{2, 3, false, false, true, 0x1f, 0x1f};
  static const Format e3m2{3, 2, false, false, true, 0x1f, 0x1f};
  static const Format e2m1{2, 1, false, false, true, 0x7, 0x7};
  static const Format ue8m0{8, 0, false, true, false, 0xfe, 0xff};
  switch (type) {
  case Type::F16:
  case Type::F16x2:
    return f16;
  case Type::BF16:
  case Type::BF16x2:
    return bf16;
  case Type::F32:
  case Type::F32x2:
    return f32;
  case Type::TF32:
    return tf32;
  case Type::E4M3:
  case Type::E4M3x2:
  case Type::E4M3x4:
    return e4m3;
  case Type::E5M2:
  case Type::E5M2x2:
  case Type::E5M2x4:
    return e5m2;
  case Type::E2M3:
  case Type::E2M3x2:
  case Type::E2M3x4:
    return e2m3;
  case Type::E3M2:
  case Type::E3M2x2:
  case Type::E3M2x4:
    return e3m2;
  case Type::E2M1:
  case Type::E2M1x2:
  case Type::E2M1x4:
    return e2m1;
  case Type::UE8M0x2:
    return ue8m0;
  default:
    llvm_unreachable("not a float format");
  }
}

uint32_t mlir::attn::sim::encodeFloat(double value, const Format &f,
                                      Rounding rounding, bool saturate) {
  uint64_t bits = bitCast<uint64_t>(value);
  bool negative = bits >> 63;
  uint32_t sign = negative && f.hasSign ? 1u << f.signBit() : 0;
  if (std::isnan(value)) {
    // Formats without NaN give the largest finite value.
    return f.nan;
  }
  if (negative && !f.hasSign)
    return value == 0 ? 0 : (saturate ? 0 : f.nan);
  if (value == 0)
    return sign;
  auto overflow = [&]() -> uint32_t {
    if (saturate || (!f.hasInf && !f.hasNaN))
      return sign | f.maxFinite;
    if (!f.hasInf)
      return f.nan | sign;
    return sign | (((1u << f.expBits) - 1) << f.manBits);
  };
  if (std::isinf(value))
    return overflow();
  int e;
  double m = std::frexp(std::fabs(value), &e); // 0.5 <= m < 1
  uint64_t significand = uint64_t(std::ldexp(m, 53));
  --e; // significand is 1.x with 52 fraction bits times 2^e
  int emin = f.hasSign ? 1 - f.bias() : -127;
  int shift = 52 - int(f.manBits);
  bool subnormal = e < emin;
  if (subnormal)
    shift += emin - e;
  uint64_t q, rest, half;
  if (shift > 62) {
    q = 0;
    rest = 1;
    half = 2;
  } else {
    q = significand >> shift;
    rest = significand & ((uint64_t(1) << shift) - 1);
    half = shift ? uint64_t(1) << (shift - 1) : 0;
  }
  bool up = false;
  switch (rounding) {
  case Rounding::Nearest:
    up = rest > half || (rest == half && rest && (q & 1));
    break;
  case Rounding::Away:
    up = rest && rest >= half;
    break;
  case Rounding::Zero:
    break;
  case Rounding::Down:
    up = negative && rest;
    break;
  case Rounding::Up:
    up = !negative && rest;
    break;
  }
  uint64_t magnitude;
  if (!f.hasSign) {
    // ue8m0: powers of two only, no subnormals and no zero.
    int64_t biased = int64_t(e) + 127 + (up ? 1 : 0);
    magnitude = biased < 0 ? 0 : biased;
  } else {
    uint64_t base = subnormal ? 0 : uint64_t(e - emin + 1) << f.manBits;
    magnitude =
        base + (subnormal ? q : q - (uint64_t(1) << f.manBits)) + (up ? 1 : 0);
  }
  if (magnitude > f.maxFinite) {
    bool away = rounding == Rounding::Nearest || rounding == Rounding::Away ||
                (rounding == Rounding::Up && !negative) ||
                (rounding == Rounding::Down && negative);
    return away ? overflow() : sign | f.maxFinite;
  }
  return sign | uint32_t(magnitude);
}

double mlir::attn::sim::decodeFloat(uint32_t bits, const Format &f) {
  bool negative = f.hasSign && (bits >> f.signBit() & 1);
  uint32_t magnitude =
      bits & (f.signBit() >= 32 ? ~0u : (1u << f.signBit()) - 1);
  double value;
  if (!f.hasSign) {
    if (magnitude == 0xff)
      return NAN;
    return std::ldexp(1.0, int(magnitude) - 127);
  }
  uint32_t e = magnitude >> f.manBits;
  uint32_t m = magnitude & ((1u << f.manBits) - 1);
  if (magnitude > f.maxFinite) {
    if (f.hasInf && m == 0)
      value = INFINITY;
    else
      value = NAN;
  } else if (e == 0) {
    value = std::ldexp(double(m), 1 - f.bias() - int(f.manBits));
  } else {
    value = std::ldexp(double(m | (1u << f.manBits)),
                       int(e) - f.bias() - int(f.manBits));
  }
  return negative ? -value : value;
}
