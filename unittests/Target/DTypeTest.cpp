//===- DTypeTest.cpp - Elements as bytes ----------------------------------===//

#include "attn/Target/DType.h"
#include "llvm/ADT/APFloat.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace mlir::attn;

static uint16_t encode(DType dtype, double value) {
  uint8_t bytes[2];
  encodeElement(dtype, value, bytes);
  return uint16_t(bytes[0] | bytes[1] << 8);
}

static uint16_t convert(const llvm::fltSemantics &semantics, double value) {
  llvm::APFloat number(value);
  bool losesInfo;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return uint16_t(number.bitcastToAPInt().getZExtValue());
}

namespace {

// Exponents from below the smallest subnormal to beyond infinity; values
// between two elements, in the middle and on both sides of it.
TEST(DTypeTest, SixteenBitsAreRoundedToTheNearest) {
  std::mt19937_64 random(7);
  for (int exponent = -160; exponent <= 140; ++exponent)
    for (int i = 0; i < 200; ++i) {
      double mantissa = 1 + std::ldexp(double(random() % 2048), -11);
      double nudge = (int(random() % 3) - 1) * 0x1p-40;
      double value = std::ldexp(mantissa + nudge, exponent);
      for (double x : {value, -value}) {
        ASSERT_EQ(encode(DType::F16, x), convert(llvm::APFloat::IEEEhalf(), x))
            << x;
        ASSERT_EQ(encode(DType::BF16, x), convert(llvm::APFloat::BFloat(), x))
            << x;
      }
    }
}

} // namespace
