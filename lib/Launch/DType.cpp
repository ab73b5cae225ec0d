//===- DType.cpp - element types of tensors -------------------------------===//
#include "attn/Launch/DType.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Endian.h"
#include <algorithm>
#include <cmath>

using namespace mlir::attn;
namespace endian = llvm::support::endian;

unsigned mlir::attn::getByteWidth(DType dtype) {
  switch (dtype) {
  case DType::F8E4M3FN:
  case DType::F8E5M2:
  case DType::F8E8M0FNU:
  case DType::I8:
  case DType::U8:
    return 1;
  case DType::F16:
  case DType::BF16:
  case DType::I16:
  case DType::U16:
    return 2;
  case DType::F32:
  case DType::I32:
  case DType::U32:
    return 4;
  case DType::F64:
  case DType::I64:
  case DType::U64:
    return 8;
  }
  llvm_unreachable("covered switch");
}

bool mlir::attn::isFloat(DType dtype) { return dtype <= DType::F8E8M0FNU; }

bool mlir::attn::isUnsignedInteger(DType dtype) { return dtype >= DType::U8; }

static float decodeHalf(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
  if (exponent == 0) {
    float magnitude = std::ldexp(float(mantissa), -24);
    return sign ? -magnitude : magnitude;
  }
  uint32_t wide = exponent == 31 ? 0xff : exponent + 112;
  return llvm::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

static const llvm::fltSemantics &getSemantics(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return llvm::APFloat::IEEEhalf();
  case DType::BF16:
    return llvm::APFloat::BFloat();
  case DType::F8E4M3FN:
    return llvm::APFloat::Float8E4M3FN();
  case DType::F8E5M2:
    return llvm::APFloat::Float8E5M2();
  default:
    return llvm::APFloat::IEEEdouble();
  }
}

double mlir::attn::decodeElement(DType dtype, const uint8_t *bytes) {
  switch (dtype) {
  case DType::F16:
    return decodeHalf(endian::read16le(bytes));
  case DType::BF16:
    return llvm::bit_cast<float>(uint32_t(endian::read16le(bytes)) << 16);
  case DType::F32:
    return llvm::bit_cast<float>(endian::read32le(bytes));
  case DType::F64:
    return llvm::bit_cast<double>(endian::read64le(bytes));
  case DType::F8E4M3FN:
  case DType::F8E5M2:
    return llvm::APFloat(getSemantics(dtype), llvm::APInt(8, *bytes))
        .convertToDouble();
  case DType::F8E8M0FNU:
    return *bytes == 0xff ? std::nan("") : std::ldexp(1.0, *bytes - 127);
  case DType::I8:
    return int8_t(*bytes);
  case DType::I16:
    return int16_t(endian::read16le(bytes));
  case DType::I32:
    return int32_t(endian::read32le(bytes));
  case DType::I64:
    return double(int64_t(endian::read64le(bytes)));
  case DType::U8:
    return *bytes;
  case DType::U16:
    return endian::read16le(bytes);
  case DType::U32:
    return endian::read32le(bytes);
  case DType::U64:
    return double(endian::read64le(bytes));
  }
  llvm_unreachable("covered switch");
}

/// The nearest integer of `bits` bits, saturated.
static int64_t toInteger(double value, unsigned bits) {
  if (std::isnan(value))
    return 0;
  double limit = std::ldexp(1.0, bits - 1);
  double rounded = std::nearbyint(value);
  if (rounded >= limit)
    return int64_t((uint64_t(1) << (bits - 1)) - 1);
  if (rounded < -limit)
    return -int64_t((uint64_t(1) << (bits - 1)) - 1) - 1;
  return int64_t(rounded);
}

/// The same without a sign.
static uint64_t toUnsigned(double value, unsigned bits) {
  double rounded = std::nearbyint(value);
  // NaN too.
  if (!(rounded > 0))
    return 0;
  if (rounded >= std::ldexp(1.0, bits))
    return ~uint64_t(0) >> (64 - bits);
  return uint64_t(rounded);
}

/// Rounds what is normal in a type of 16 bits and stays so. (APFloat takes a
/// hundred times as long.)
static bool encodeNormal(double value, unsigned mantissaBits,
                         uint16_t &result) {
  int bias = (1 << (14 - mantissaBits)) - 1;
  uint64_t bits = llvm::bit_cast<uint64_t>(value);
  int exponent = int(bits >> 52 & 0x7ff) - 1023;
  // The last binade may round to infinity.
  if (exponent < 1 - bias || exponent >= bias)
    return false;
  unsigned shift = 52 - mantissaBits;
  uint64_t magnitude = bits & ~(uint64_t(1) << 63);
  magnitude += (uint64_t(1) << (shift - 1)) - 1 + (magnitude >> shift & 1);
  magnitude = (magnitude >> shift) - (uint64_t(1023 - bias) << mantissaBits);
  result = uint16_t(bits >> 63 << 15 | magnitude);
  return true;
}

/// Returns the power of two that is nearest to a number above zero; NaN for
/// others.
static uint8_t encodePower(double value) {
  constexpr int kBias = 127, kMost = 254, kNaN = 255;
  if (!(value > 0))
    return kNaN;
  if (std::isinf(value))
    return kMost;
  int exponent = 0;
  // In [0.5, 1), of which the upper half is nearer to 1.
  double fraction = std::frexp(value, &exponent);
  return uint8_t(
      std::clamp(exponent - (fraction < 0.75 ? 1 : 0) + kBias, 0, kMost));
}

void mlir::attn::encodeElement(DType dtype, double value, uint8_t *bytes) {
  switch (dtype) {
  case DType::F32:
    return endian::write32le(bytes, llvm::bit_cast<uint32_t>(float(value)));
  case DType::F64:
    return endian::write64le(bytes, llvm::bit_cast<uint64_t>(value));
  case DType::I8:
    *bytes = uint8_t(toInteger(value, 8));
    return;
  case DType::U8:
    *bytes = uint8_t(toUnsigned(value, 8));
    return;
  case DType::I16:
    return endian::write16le(bytes, uint16_t(toInteger(value, 16)));
  case DType::U16:
    return endian::write16le(bytes, uint16_t(toUnsigned(value, 16)));
  case DType::U32:
    return endian::write32le(bytes, uint32_t(toUnsigned(value, 32)));
  case DType::U64:
    return endian::write64le(bytes, toUnsigned(value, 64));
  case DType::I32:
    return endian::write32le(bytes, uint32_t(toInteger(value, 32)));
  case DType::I64:
    return endian::write64le(bytes, uint64_t(toInteger(value, 64)));
  case DType::F8E8M0FNU:
    *bytes = encodePower(value);
    return;
  case DType::F16:
  case DType::BF16:
  case DType::F8E4M3FN:
  case DType::F8E5M2:
    break;
  }
  uint16_t normal;
  if ((dtype == DType::F16 && encodeNormal(value, 10, normal)) ||
      (dtype == DType::BF16 && encodeNormal(value, 7, normal)))
    return endian::write16le(bytes, normal);
  llvm::APFloat number(value);
  bool losesInfo;
  number.convert(getSemantics(dtype), llvm::APFloat::rmNearestTiesToEven,
                 &losesInfo);
  uint64_t bits = number.bitcastToAPInt().getZExtValue();
  if (getByteWidth(dtype) == 1)
    *bytes = uint8_t(bits);
  else
    endian::write16le(bytes, uint16_t(bits));
}
