//===- NarrowFloats.cpp - f32 become floats of 8 and 4 bits ---------------===//

#include "attn/Dialect/Attn/IR/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Describes the floats of 8 or 4 bits of a type.
struct NarrowFormat {
  int mantissaBits, bias;
  float largest;
  /// Its bits, and what it has for NaN.
  int bits, nan;
};

} // namespace

static NarrowFormat getFormat(Type type) {
  if (isa<Float8E5M2Type>(type))
    return {2, 15, 57344.0f, 8, 0x7f};
  if (isa<Float4E2M1FNType>(type))
    return {1, 1, 6.0f, 4, 7};
  return {3, 7, 448.0f, 8, 0x7f};
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
      b, arith::ShRUIOp::create(b, bits, integer(32 - format.bits)),
      integer(int64_t(1) << (format.bits - 1)));
  byte = arith::OrIOp::create(b, byte, sign);
  return arith::SelectOp::create(b, isNaN, integer(format.nan), byte);
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

Value attn::narrowToPair4(ImplicitLocOpBuilder &b, Value first, Value second) {
  Type type = Float4E2M1FNType::get(b.getContext());
  Value upper =
      arith::ShLIOp::create(b, narrowByIntegers(b, second, type),
                            arith::ConstantIntOp::create(b, 4, 32).getResult());
  return arith::TruncIOp::create(
      b, b.getI8Type(),
      arith::OrIOp::create(b, upper, narrowByIntegers(b, first, type))
          .getResult());
}
