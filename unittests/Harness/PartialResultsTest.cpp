//===- PartialResultsTest.cpp - tests of merging partial results ----------===//
#include "attn/Harness/PartialResults.h"
#include "attn/Launch/LaunchBinding.h"

#include "gtest/gtest.h"
#include <cmath>

using namespace mlir::attn;
using namespace mlir::attn::sim;

namespace {

/// A dense f32 tensor.
struct Floats {
  Floats(llvm::ArrayRef<int64_t> shape, std::vector<float> values)
      : values(std::move(values)) {
    view.dtype = DType::F32;
    view.shape.assign(shape.begin(), shape.end());
    view.strides = getContiguousStrides(shape);
    view.data =
        llvm::ArrayRef(reinterpret_cast<const uint8_t *>(this->values.data()),
                       this->values.size() * sizeof(float));
  }
  std::vector<float> values;
  TensorView view;
};

TEST(PartialResults, AreWeightedByTheirSums) {
  // Two rows of two columns; the second row has keys in the second run only.
  Floats o({2, 1, 1, 2, 2}, {1, 2, NAN, NAN, 5, 6, 7, 8});
  Floats lse({2, 1, 1, 2}, {std::log(3.0f), -INFINITY, std::log(1.0f), 2.0f});
  llvm::Expected<AttentionResult> merged =
      mergePartialResults(o.view, lse.view);
  ASSERT_TRUE(bool(merged)) << llvm::toString(merged.takeError());
  EXPECT_EQ(merged->shape, (llvm::SmallVector<int64_t, 4>{1, 1, 2, 2}));
  EXPECT_NEAR(merged->o[0], (3 * 1 + 5) / 4.0, 1e-6);
  EXPECT_NEAR(merged->o[1], (3 * 2 + 6) / 4.0, 1e-6);
  EXPECT_EQ(merged->o[2], 7);
  EXPECT_NEAR(merged->lse[0], std::log(4.0), 1e-6);
  EXPECT_EQ(merged->lse[1], 2);
  EXPECT_EQ(viewOutput(*merged).get({0, 0, 1, 1}), 8);
  EXPECT_EQ(viewLogs(*merged, listLogs(*merged)).shape.size(), 3u);
}

TEST(PartialResults, RowsThatAreNotDividedStaySo) {
  // Two rows of one column; the second row has keys in the second run only.
  Floats o({2, 1, 1, 2, 1}, {3, NAN, 5, 7});
  Floats states({2, 1, 1, 2, 2}, {0, 4, -INFINITY, 0, std::log(2.0f), 6, 1, 2});
  llvm::Expected<AttentionResult> merged =
      mergePartialResults(o.view, states.view);
  ASSERT_TRUE(bool(merged)) << llvm::toString(merged.takeError());
  EXPECT_NEAR(merged->o[0], 3 / 2.0 + 5, 1e-6);
  EXPECT_EQ(merged->o[1], 7);
  std::vector<double> logs = listLogs(*merged);
  TensorView view = viewLogs(*merged, logs);
  EXPECT_NEAR(view.get({0, 0, 0, 0}), std::log(2.0), 1e-6);
  EXPECT_NEAR(view.get({0, 0, 0, 1}), 4 / 2.0 + 6, 1e-6);
  EXPECT_EQ(view.get({0, 0, 1, 0}), 1);
  EXPECT_EQ(view.get({0, 0, 1, 1}), 2);
}

TEST(PartialResults, RowsWithoutKeysAreZero) {
  Floats o({2, 1, 1, 1, 1}, {NAN, 3});
  Floats lse({2, 1, 1, 1}, {-INFINITY, -INFINITY});
  llvm::Expected<AttentionResult> merged =
      mergePartialResults(o.view, lse.view);
  ASSERT_TRUE(bool(merged));
  EXPECT_EQ(merged->o[0], 0);
  EXPECT_EQ(merged->lse[0], -INFINITY);
}

// The table of docs/spec.md, "Infinite and NaN logits".
TEST(PartialResults, InfiniteAndNaNLogits) {
  // One that takes all, two of them, NaN, and a NaN whose weight is 0.
  Floats o({2, 1, 1, 4, 1}, {2, 2, 2, 2, NAN, 5, 5, NAN});
  Floats lse({2, 1, 1, 4},
             {INFINITY, INFINITY, NAN, 0, -INFINITY, INFINITY, 0, -2000});
  llvm::Expected<AttentionResult> merged =
      mergePartialResults(o.view, lse.view);
  ASSERT_TRUE(bool(merged));
  EXPECT_EQ(merged->o[0], 2);
  EXPECT_EQ(merged->lse[0], INFINITY);
  for (unsigned row : {1, 2}) {
    EXPECT_TRUE(std::isnan(merged->o[row]));
    EXPECT_TRUE(std::isnan(merged->lse[row]));
  }
  EXPECT_TRUE(std::isnan(merged->o[3]));
  EXPECT_EQ(merged->lse[3], 0);
}

TEST(PartialResults, ShapesHaveToFit) {
  Floats o({2, 1, 1, 1, 1}, {1, 2});
  Floats lse({1, 1, 1, 2}, {0, 0});
  EXPECT_EQ(llvm::toString(mergePartialResults(o.view, lse.view).takeError()),
            "expected partial results o of rank 5 and lse of its first four "
            "extents, or with two numbers for each row");
}

} // namespace
