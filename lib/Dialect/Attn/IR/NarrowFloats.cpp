//===- NarrowFloats.cpp - f32 become floats of 8 and 4 bits ---------------===//

#include "attn/Dialect/Attn/IR/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Describes the floats of 8 bits of a type.
struct NarrowFormat {
  int mantissaBits, bias;
  float largest;
};

} // namespace

static NarrowFormat getFormat(Type type) {
  if (isa<Float8E5M2Type>(type))
    return {2, 15, 57344.0f};
  return {3, 7, 448.0f};
}

/// The bits of one number, i32. Rounding to nearest is an addition: of half a
/// unit of what stays of the mantissa, or, below the normal numbers, of a
/// number so large that its last bit is their distance.
static Value narrowByIntegers(ImplicitLocOpBuilder &b, Value value, Type type) {
  constexpr int kMantissaBits = 23, kBias = 127;
  NarrowFormat format = getFormat(type);
  int dropped = kMantissaBits - format.mantissaBits;
  auto integer = [&](int64_t number) -> Value {
    return arith::ConstantIntOp::create(b, number, 32);
  };
  auto real = [&](float number) -> Value {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(number));
  };
  auto bitsOf = [&](Value number) -> Value {
    return arith::BitcastOp::create(b, b.getI32Type(), number);
  };
  auto constantBits = [&](float number) -> Value {
    return integer(llvm::bit_cast<int32_t>(number));
  };
  Value bits = bitsOf(value);
  Value magnitude = arith::AndIOp::create(b, bits, integer(0x7fffffff));
  Value isNaN = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, magnitude,
                                      integer(0x7f800000));
  Value finite =
      arith::MinUIOp::create(b, magnitude, constantBits(format.largest));
  Value last = arith::AndIOp::create(
      b, arith::ShRUIOp::create(b, finite, integer(dropped)), integer(1));
  Value rounded = arith::AddIOp::create(
      b, arith::AddIOp::create(b, finite, integer((1 << (dropped - 1)) - 1)),
      last);
  Value normal = arith::SubIOp::create(
      b, arith::ShRUIOp::create(b, rounded, integer(dropped)),
      integer(int64_t(kBias - format.bias) << format.mantissaBits));
  float least = std::ldexp(1.0f, 1 - format.bias);
  float magic = std::ldexp(least, kMantissaBits - format.mantissaBits);
  Value sum = arith::AddFOp::create(
      b, arith::BitcastOp::create(b, b.getF32Type(), finite).getResult(),
      real(magic));
  Value small = arith::SubIOp::create(b, bitsOf(sum), constantBits(magic));
  Value isSmall = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, finite,
                                        constantBits(least));
  Value byte = arith::SelectOp::create(b, isSmall, small, normal);
  Value sign = arith::AndIOp::create(
      b, arith::ShRUIOp::create(b, bits, integer(kMantissaBits + 1)),
      integer(0x80));
  byte = arith::OrIOp::create(b, byte, sign);
  return arith::SelectOp::create(b, isNaN, integer(0x7f), byte);
}

Value attn::narrowPair(ImplicitLocOpBuilder &b, Value first, Value second,
                       Type type, bool byIntegers) {
  // The first operand becomes the upper element.
  if (!byIntegers)
    return NVVM::ConvertF32x2ToF8x2Op::create(
        b, b.getI16Type(), second, first, NVVM::FPRoundingMode::RN,
        NVVM::SaturationMode::SATFINITE, /*relu=*/false, type);
  Value upper =
      arith::ShLIOp::create(b, narrowByIntegers(b, second, type),
                            arith::ConstantIntOp::create(b, 8, 32).getResult());
  return arith::TruncIOp::create(
      b, b.getI16Type(),
      arith::OrIOp::create(b, upper, narrowByIntegers(b, first, type))
          .getResult());
}

Value attn::narrowToByte(ImplicitLocOpBuilder &b, Value value,
                         bool byIntegers) {
  Value pair = narrowPair(b, value, value,
                          Float8E4M3FNType::get(b.getContext()), byIntegers);
  return arith::TruncIOp::create(b, b.getI8Type(), pair);
}

Value attn::widenByte(ImplicitLocOpBuilder &b, Value byte, bool byIntegers) {
  if (!byIntegers) {
    Value pair = arith::ExtUIOp::create(b, b.getI16Type(), byte);
    Value halves = NVVM::ConvertF8x2ToF16x2Op::create(
        b, VectorType::get(2, b.getF16Type()),
        LLVM::BitcastOp::create(b, VectorType::get(2, b.getI8Type()), pair),
        /*relu=*/false, Float8E4M3FNType::get(b.getContext()));
    Value half = LLVM::ExtractElementOp::create(
        b, halves, arith::ConstantIntOp::create(b, 0, 32).getResult());
    return arith::ExtFOp::create(b, b.getF32Type(), half);
  }
  constexpr int kMantissaBits = 3, kBias = 7, kWideMantissaBits = 23,
                kWideBias = 127;
  auto integer = [&](int64_t number) -> Value {
    return arith::ConstantIntOp::create(b, number, 32);
  };
  Value signedBits = arith::ExtUIOp::create(b, b.getI32Type(), byte);
  Value bits = arith::AndIOp::create(b, signedBits, integer(0x7f));
  Value shifted = arith::ShLIOp::create(
      b, bits, integer(kWideMantissaBits - kMantissaBits));
  Value normal = arith::BitcastOp::create(
      b, b.getF32Type(),
      arith::AddIOp::create(
          b, shifted, integer(int64_t(kWideBias - kBias) << kWideMantissaBits))
          .getResult());
  // Below the normal numbers the bits count their distance.
  Value distance = arith::ConstantOp::create(
      b, b.getF32FloatAttr(std::ldexp(1.0f, 1 - kBias - kMantissaBits)));
  Value small = arith::MulFOp::create(
      b, arith::UIToFPOp::create(b, b.getF32Type(), bits), distance);
  Value isSmall = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, bits,
                                        integer(1 << kMantissaBits));
  Value number = arith::SelectOp::create(b, isSmall, small, normal);
  Value isNaN =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bits, integer(0x7f));
  Value nan = arith::ConstantOp::create(
      b, b.getF32FloatAttr(std::numeric_limits<float>::quiet_NaN()));
  number = arith::SelectOp::create(b, isNaN, nan, number);
  Value sign = arith::ShLIOp::create(
      b, arith::ShRUIOp::create(b, signedBits, integer(7)), integer(31));
  Value all = arith::OrIOp::create(
      b, arith::BitcastOp::create(b, b.getI32Type(), number), sign);
  return arith::BitcastOp::create(b, b.getF32Type(), all);
}

/// Returns a sum whose lowest byte is what f4E2M1FN has for the magnitude of
/// `value`. The codes of numbers are on three lines: twice the number, which
/// has distances of 0.5, from 2 on the number and 2, and from 4 on half of it
/// and 4. Each is above the others beyond its part, before and after it is
/// rounded, so that the least of the three is the code. Additions of a number
/// so large that its last bit is 1 round.
static Value sumWithFloat4(ImplicitLocOpBuilder &b, Value value) {
  constexpr float kMagic = 0x1.8p23f;
  auto real = [&](float number) -> Value {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(number));
  };
  // NaN becomes the largest number.
  Value size =
      arith::MinNumFOp::create(b, math::AbsFOp::create(b, value), real(6.0f));
  Value twice = math::FmaOp::create(b, size, real(2), real(kMagic));
  Value once = arith::AddFOp::create(b, size, real(kMagic + 2));
  Value half = math::FmaOp::create(b, size, real(0.5f), real(kMagic + 4));
  return arith::MinNumFOp::create(b, arith::MinNumFOp::create(b, twice, once),
                                  half);
}

Value attn::narrowToPair4(ImplicitLocOpBuilder &b, Value first, Value second,
                          bool byIntegers) {
  // The first operand becomes the upper half.
  if (!byIntegers)
    return NVVM::ConvertF32x2ToF4x2Op::create(
        b, b.getI8Type(), second, first, /*relu=*/false,
        Float4E2M1FNType::get(b.getContext()));
  auto integer = [&](int64_t number) -> Value {
    return arith::ConstantIntOp::create(b, number, 32);
  };
  auto bitsOf = [&](Value number) -> Value {
    return arith::BitcastOp::create(b, b.getI32Type(), number);
  };
  Value upper =
      arith::ShLIOp::create(b, bitsOf(sumWithFloat4(b, second)), integer(4));
  Value sizes =
      arith::AddIOp::create(b, upper, bitsOf(sumWithFloat4(b, first)));
  // The four highest bits of both, of which each first one is the sign.
  Value signs = LLVM::FshlOp::create(
      b, arith::ShRUIOp::create(b, bitsOf(second), integer(28)).getResult(),
      bitsOf(first), integer(4));
  Value pair = arith::OrIOp::create(
      b, arith::AndIOp::create(b, signs, integer(0x88)), sizes);
  return arith::TruncIOp::create(b, b.getI8Type(), pair);
}
