//===- DeviationTest.cpp - tests of how far outputs are off ---------------===//
#include "attn/Harness/Reference.h"

#include "TestTensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using testing::ElementsAre;
using testing::HasSubstr;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Deviation, OfMaximaAndSums) {
  AttentionResult reference;
  reference.shape = {1, 1, 2, 1};
  reference.lse = {1.0, -kInfinity};
  reference.hasStates = true;
  reference.sums = {8.0, 0.0};
  reference.defined = {1, 1};
  Tensor states(DType::F32, {1, 1, 2, 2});
  states.set({0, 0, 0, 0}, 1.0);
  states.set({0, 0, 0, 1}, 10.0);
  states.set({0, 0, 1, 0}, -kInfinity);
  states.set({0, 0, 1, 1}, 0.0);
  EXPECT_EQ(cantFail(compareLSE(states.view, reference)).error, 0.25);
  states.set({0, 0, 0, 0}, 1.5);
  EXPECT_EQ(cantFail(compareLSE(states.view, reference)).error, 0.5);
  Tensor logs(DType::F32, {1, 1, 2});
  EXPECT_THAT(llvm::toString(compareLSE(logs.view, reference).takeError()),
              HasSubstr("expected shape [1, 1, 2, 2], got [1, 1, 2]"));
}

TEST(Deviation, OfOutputs) {
  AttentionResult reference;
  reference.shape = {1, 1, 2, 2};
  reference.o = {3.0, 0.0, 0.0, 4.0};
  reference.lse = {1.0, -kInfinity};
  reference.defined = {1, 1};
  Tensor o(DType::F32, {1, 1, 2, 2}), lse(DType::F32, {1, 1, 2});
  o.set({0, 0, 0, 0}, 3.0);
  o.set({0, 0, 1, 1}, 3.5);
  lse.set({0, 0, 0}, 1.25);
  lse.set({0, 0, 1}, -kInfinity);
  Deviation deviation = cantFail(compareOutput(o.view, reference));
  EXPECT_DOUBLE_EQ(deviation.error, 0.1);
  EXPECT_THAT(deviation.worst, ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(deviation.out, 3.5);
  EXPECT_EQ(deviation.ref, 4.0);
  EXPECT_EQ(cantFail(compareLSE(lse.view, reference)).error, 0.25);
  lse.set({0, 0, 1}, -1e30);
  EXPECT_EQ(cantFail(compareLSE(lse.view, reference)).error, kInfinity);
  lse.set({0, 0, 1}, NAN);
  EXPECT_EQ(cantFail(compareLSE(lse.view, reference)).error, kInfinity);
  o.set({0, 0, 0, 1}, NAN);
  EXPECT_EQ(cantFail(compareOutput(o.view, reference)).error, kInfinity);
  // A row that is not defined may hold anything.
  reference.defined = {0, 0};
  EXPECT_EQ(cantFail(compareOutput(o.view, reference)).error, 0.0);
  EXPECT_EQ(cantFail(compareLSE(lse.view, reference)).error, 0.0);
  Tensor small(DType::F32, {1, 1, 2, 1});
  EXPECT_THAT(llvm::toString(compareOutput(small.view, reference).takeError()),
              HasSubstr("reference: \"o\": expected shape [1, 1, 2, 2], got "
                        "[1, 1, 2, 1]"));
  EXPECT_THAT(llvm::toString(compareLSE(small.view, reference).takeError()),
              HasSubstr("reference: \"lse\": expected shape [1, 1, 2], got"));
}

TEST(Deviation, OfLargeLSE) {
  AttentionResult reference;
  reference.shape = {1, 1, 1, 1};
  reference.lse = {3e5};
  reference.defined = {1};
  Tensor lse(DType::F32, {1, 1, 1});
  auto getError = [&](double value) {
    lse.set({0, 0, 0}, value);
    return cantFail(compareLSE(lse.view, reference)).error;
  };
  // Two units in the last place, and a ten-thousandth.
  EXPECT_LT(getError(3e5 + 0.0625), 1e-3);
  EXPECT_GT(getError(3e5 + 30), 1e-3);
  reference.lse = {-3e5};
  EXPECT_LT(getError(-3e5 + 0.0625), 1e-3);
  reference.lse = {1000};
  EXPECT_GT(getError(1000.002), 1e-3);
}

TEST(Deviation, BelowNormalNumbers) {
  AttentionResult reference;
  reference.shape = {1, 1, 1, 1};
  reference.defined = {1};
  auto getError = [&](DType dtype, double ref, double value) {
    Tensor o(dtype, {1, 1, 1, 1});
    o.set({0, 0, 0, 0}, value);
    reference.o = {ref};
    return cantFail(compareOutput(o.view, reference)).error;
  };
  EXPECT_EQ(getError(DType::F16, 0x1p-26, 0), 0);
  EXPECT_EQ(getError(DType::F8E4M3FN, 0x1p-11, 0), 0);
  EXPECT_GT(getError(DType::F8E4M3FN, 0x1.8p-10, 0), 0.3);
  EXPECT_EQ(getError(DType::F8E5M2, 0x1p-18, 0), 0);
}

TEST(Deviation, BeyondTheType) {
  AttentionResult reference;
  reference.shape = {1, 1, 1, 2};
  reference.defined = {1};
  auto getError = [&](DType dtype, double ref, double value) {
    Tensor o(dtype, {1, 1, 1, 2});
    o.set({0, 0, 0, 0}, 1);
    o.set({0, 0, 0, 1}, value);
    reference.o = {1, ref};
    return cantFail(compareOutput(o.view, reference)).error;
  };
  // Infinity is right beyond the range and wrong inside; near its end both
  // are.
  EXPECT_EQ(getError(DType::F16, 1e6, kInfinity), 0);
  EXPECT_EQ(getError(DType::F16, -1e6, -kInfinity), 0);
  EXPECT_EQ(getError(DType::F16, 1e6, -kInfinity), kInfinity);
  EXPECT_EQ(getError(DType::F16, 1e6, 65504), kInfinity);
  EXPECT_LT(getError(DType::F16, 65519, kInfinity), 1e-3);
  EXPECT_LT(getError(DType::F16, 65530, 65504), 1e-3);
  EXPECT_EQ(getError(DType::F16, 60000, kInfinity), kInfinity);
  EXPECT_EQ(getError(DType::F16, 1e6, NAN), kInfinity);
  EXPECT_EQ(getError(DType::F16, kInfinity, 65504), kInfinity);
  EXPECT_EQ(getError(DType::BF16, 1e6, kInfinity), kInfinity);
  EXPECT_EQ(getError(DType::BF16, 3.4e38, kInfinity), 0);
  EXPECT_EQ(getError(DType::F32, 1e39, kInfinity), 0);
  // 8-bit conversions saturate.
  EXPECT_EQ(getError(DType::F8E4M3FN, 1e6, 448), 0);
  EXPECT_GT(getError(DType::F8E4M3FN, 1e6, 240), 0.1);
  EXPECT_EQ(getError(DType::F8E5M2, 1e6, 57344), 0);
}

TEST(Deviation, BelowTheType) {
  AttentionResult reference;
  reference.shape = {1, 1, 1, 2};
  reference.defined = {1};
  auto getError = [&](double ref, double value) {
    Tensor o(DType::F16, {1, 1, 1, 2});
    o.set({0, 0, 0, 1}, value);
    reference.o = {0, ref};
    return cantFail(compareOutput(o.view, reference)).error;
  };
  // Multiples of 2^-24 are all that there is: the nearest one is right.
  EXPECT_EQ(getError(1.4 * 0x1p-24, 0x1p-24), 0);
  EXPECT_EQ(getError(0x1p-26, 0), 0);
  EXPECT_GT(getError(1.4 * 0x1p-24, 0x1p-23), 1e-2);
  EXPECT_GT(getError(0x1p-24, 0), 1e-2);
}
