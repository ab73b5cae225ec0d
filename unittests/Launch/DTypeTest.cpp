//===- DTypeTest.cpp - Elements as bytes ----------------------------------===//

#include "attn/Launch/DType.h"
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

TEST(DTypeTest, IntegersHoldWhatFitsAndSaturate) {
  struct Row {
    DType dtype;
    unsigned width;
    double low, high;
  };
  const Row rows[] = {{DType::I8, 1, -128, 127},
                      {DType::I16, 2, -32768, 32767},
                      {DType::I32, 4, -0x1p31, 0x1p31 - 1},
                      {DType::I64, 8, -0x1p63, 0x1p63},
                      {DType::U8, 1, 0, 255},
                      {DType::U16, 2, 0, 65535},
                      {DType::U32, 4, 0, 0x1p32 - 1},
                      {DType::U64, 8, 0, 0x1p64}};
  for (const Row &row : rows) {
    SCOPED_TRACE(stringifyDType(row.dtype).str());
    EXPECT_EQ(getByteWidth(row.dtype), row.width);
    EXPECT_FALSE(isFloat(row.dtype));
    EXPECT_EQ(isUnsignedInteger(row.dtype), row.low == 0);
    EXPECT_EQ(symbolizeDType(stringifyDType(row.dtype)), row.dtype);
    auto through = [&](double value) {
      uint8_t bytes[8];
      encodeElement(row.dtype, value, bytes);
      return decodeElement(row.dtype, bytes);
    };
    for (double value : {0.0, 1.0, 100.0, row.low, row.high})
      EXPECT_EQ(through(value), value);
    EXPECT_EQ(through(row.low - 100000), row.low);
    EXPECT_EQ(through(2 * row.high + 2), row.high);
    EXPECT_EQ(through(std::nan("")), 0);
    EXPECT_EQ(through(2.4), 2);
  }
}

} // namespace
