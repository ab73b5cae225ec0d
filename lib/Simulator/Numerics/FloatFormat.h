//===- FloatFormat.h - Small floats and directed rounding -------*- C++ -*-===//
//
// Conversions between doubles and every float format of PTX, correctly rounded
// in every mode. Arithmetic in narrow formats goes through doubles rounded to
// odd, which makes the second rounding harmless.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_NUMERICS_FLOATFORMAT_H
#define ATTN_LIB_SIMULATOR_NUMERICS_FLOATFORMAT_H

#include "../PTX/Types.h"
#include <cmath>
#include <cstdint>
#include <cstring>

namespace mlir::attn::sim {

enum class Rounding : uint8_t { Nearest, Zero, Down, Up, Away };

template <typename To, typename From>
inline To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

/// A binary float format without its sign bit.
struct Format {
  unsigned expBits, manBits;
  bool hasInf, hasNaN;
  bool hasSign;
  uint32_t maxFinite; ///< bits of the largest finite value
  uint32_t nan;       ///< bits of the canonical NaN
  int bias() const { return (1 << (expBits - 1)) - 1; }
  unsigned signBit() const { return expBits + manBits; }
};

/// What bulk copies fill 16-bit elements out of bounds with.
constexpr uint32_t OutOfBoundsNaN = 0x7fff;

/// The format of a scalar float type or of the elements of a packed one.
const Format &formatOf(Type type);

/// Rounds to the format. `saturate` turns overflow and infinities into the
/// largest finite value (and NaN where the format has none).
uint32_t encodeFloat(double value, const Format &format, Rounding rounding,
                     bool saturate);
double decodeFloat(uint32_t bits, const Format &format);

/// a + b rounded to odd: the last bit is sticky.
inline double addOdd(double a, double b) {
  double s = a + b;
  if (!std::isfinite(s))
    return s;
  double bb = s - a;
  double err = (a - (s - bb)) + (b - bb);
  if (err != 0 && !(bitCast<uint64_t>(s) & 1)) {
    // Towards the side of the error, onto the odd neighbour.
    bool up = (err > 0) == (s > 0);
    s = bitCast<double>(bitCast<uint64_t>(s) + (up ? 1 : -1));
    if (s == 0)
      s = err;
  }
  return s;
}
/// a·b + c rounded to odd, for a and b whose product is exact in a double.
inline double fmaOdd(double a, double b, double c) { return addOdd(a * b, c); }

inline float halfToFloat(uint16_t h) {
  uint32_t sign = uint32_t(h & 0x8000) << 16;
  uint32_t mag = uint32_t(h & 0x7fff) << 13;
  // Scaling by 2^112 moves the exponent bias and normalises subnormals.
  float f = bitCast<float>(mag) * 5.192296858534828e33f;
  uint32_t bits = bitCast<uint32_t>(f);
  bits = mag >= (0x7c00u << 13) ? mag | 0x7f800000 : bits;
  return bitCast<float>(bits | sign);
}
inline float bfloatToFloat(uint16_t b) {
  return bitCast<float>(uint32_t(b) << 16);
}

inline uint16_t floatToHalf(float f) {
  uint32_t bits = bitCast<uint32_t>(f);
  uint32_t sign = bits >> 16 & 0x8000;
  uint32_t mag = bits & 0x7fffffff;
  if (mag > 0x7f800000)
    return 0x7fff;
  if (mag >= 0x477ff000)
    return sign | 0x7c00;
  if (mag < 0x38800000) {
    // Subnormal result: adding 0.5 aligns the last place.
    float r = bitCast<float>(mag) + 0.5f;
    return sign | (bitCast<uint32_t>(r) - 0x3f000000);
  }
  mag += 0xc8000fff + (mag >> 13 & 1);
  return sign | (mag >> 13);
}
inline uint16_t floatToBfloat(float f) {
  uint32_t bits = bitCast<uint32_t>(f);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return 0x7fff;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/// Flushes subnormals to zero of the same sign.
inline float flush(float f) {
  uint32_t bits = bitCast<uint32_t>(f);
  return (bits & 0x7f800000) ? f : bitCast<float>(bits & 0x80000000);
}
/// NaN results carry no payload.
inline float canonical(float f) {
  return f != f ? bitCast<float>(0x7fffffffu) : f;
}

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_NUMERICS_FLOATFORMAT_H
