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
};

} // namespace

double attn::getLargestNumber(Type type) {
  return APFloat::getLargest(cast<FloatType>(type).getFloatSemantics())
      .convertToDouble();
}

static NarrowFormat getFormat(Type type) {
  if (isa<Float8E5M2Type>(type))
    return {2, 15};
  return {3, 7};
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
  Value finite = arith::MinUIOp::create(b, magnitude,
                                        constantBits(getLargestNumber(type)));
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

/// Beyond this number f32 are integers: the least significant bit is 1.
static constexpr float kWhole = 0x1p23f;
static constexpr int32_t kWholeBits = 0x4b000000;
/// The code of 2 in f4E2M1FN. Below it the numbers' distance is 0.5, then 1.
static constexpr int32_t kCodeOfTwo = 4, kLargestCode = 7;
/// The result of sumWithFloat4 for zero.
static constexpr int32_t kSumOfZero = kWholeBits - kCodeOfTwo;

/// Returns an i32: kSumOfZero and what f4E2M1FN has for the magnitude of
/// `value`. Sums of floats round to their distance, which doubles at kWhole: a
/// number to which 2 is added up to there is rounded to the distance of 0.5
/// below 2 and of 1 above, and the bits of the sum count both. Half of a number
/// and kWhole counts numbers from 4 on, which are 2 apart. Each sum is above
/// the other one where that one counts, so that the least is right; as
/// integers, of which NaN is a large one, all three are compared at once.
static Value sumWithFloat4(ImplicitLocOpBuilder &b, Value value) {
  auto real = [&](float number) -> Value {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(number));
  };
  auto bitsOf = [&](Value number) -> Value {
    return arith::BitcastOp::create(b, b.getI32Type(), number);
  };
  Value size = math::AbsFOp::create(b, value);
  Value upToFour = arith::AddFOp::create(b, size, real(kWhole - 2));
  Value fromFour = math::FmaOp::create(b, size, real(0.5f), real(kWhole));
  Value least = arith::MinSIOp::create(b, bitsOf(upToFour), bitsOf(fromFour));
  // NaN becomes the largest number too.
  return arith::MinSIOp::create(
      b, least, arith::ConstantIntOp::create(b, kSumOfZero + kLargestCode, 32));
}

Value attn::narrowToWord4(ImplicitLocOpBuilder &b, ArrayRef<Value> values) {
  constexpr int kBits = 4;
  assert(values.size() <= 32 / kBits && "expected numbers that a word has");
  auto integer = [&](uint32_t number) -> Value {
    return arith::ConstantIntOp::create(b, int32_t(number), 32);
  };
  Value distance = integer(kBits), sizes, signs;
  uint32_t zeros = 0, signBits = 0;
  for (Value value : llvm::reverse(values)) {
    Value bits = arith::BitcastOp::create(b, b.getI32Type(), value);
    Value sum = sumWithFloat4(b, value);
    sizes = sizes ? arith::AddIOp::create(
                        b, arith::ShLIOp::create(b, sizes, distance), sum)
                        .getResult()
                  : sum;
    // The four highest bits of each, of which the first one is the sign.
    signs =
        signs
            ? LLVM::FshlOp::create(b, signs, bits, distance).getResult()
            : arith::ShRUIOp::create(b, bits, integer(32 - kBits)).getResult();
    zeros = (zeros << kBits) + uint32_t(kSumOfZero);
    signBits = (signBits << kBits) | 0x8;
  }
  return arith::OrIOp::create(
      b, arith::AndIOp::create(b, signs, integer(signBits)),
      arith::SubIOp::create(b, sizes, integer(zeros)));
}

Value attn::narrowToPair4(ImplicitLocOpBuilder &b, Value first, Value second,
                          bool byIntegers) {
  // The first operand becomes the upper half.
  if (!byIntegers)
    return NVVM::ConvertF32x2ToF4x2Op::create(
        b, b.getI8Type(), second, first, /*relu=*/false,
        Float4E2M1FNType::get(b.getContext()));
  return arith::TruncIOp::create(b, b.getI8Type(),
                                 narrowToWord4(b, {first, second}));
}
