//===- SplitKeysTest.cpp - tests of runs of keys --------------------------===//

#include "attn/Planner/Choice/SplitKeys.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
using testing::Contains;
using testing::ElementsAre;
using testing::Gt;
using testing::IsEmpty;
using testing::Not;

static const TargetRow &getTarget() {
  return llvm::cantFail(lookupTarget("sm_90a"));
}

TEST(SplitKeys, ListsRunsInOrder) {
  // 132 SMs hold 264 and 528 of 8 tiles' runs.
  llvm::SmallVector<int64_t> splits = listSplits(8, 131072, 1, getTarget());
  EXPECT_TRUE(llvm::is_sorted(splits));
  EXPECT_THAT(splits, Contains(33));
  EXPECT_THAT(splits, Contains(66));
  EXPECT_THAT(splits, Not(Contains(Gt(128))));
  EXPECT_EQ(llvm::unique(splits), splits.end());
}

TEST(SplitKeys, LeavesShortKeysWhole) {
  EXPECT_THAT(listSplits(8, 511, 1, getTarget()), IsEmpty());
  EXPECT_THAT(listSplits(1000, 1024, 1, getTarget()), Contains(32));
  // Partial results of more queries take longer runs.
  EXPECT_THAT(listSplits(8, 511, 64, getTarget()), IsEmpty());
  EXPECT_THAT(listSplits(1000, 512, 64, getTarget()), ElementsAre(2));
  EXPECT_THAT(listSplits(8, 0, 1, getTarget()), IsEmpty());
}

TEST(SplitKeys, MergingTakesLongerForMoreRuns) {
  EXPECT_EQ(estimateMerge(1), 0);
  EXPECT_GT(estimateMerge(2), 0);
  EXPECT_GT(estimateMerge(64), estimateMerge(2));
}

TEST(SplitKeys, TheLastCTAMergesFewRowsOfFewRuns) {
  EXPECT_EQ(estimateTileMerge(1, 512, 128), 0);
  // Four rows of 128 columns are one turn of 128 threads.
  double one = estimateTileMerge(8, 512, 128);
  EXPECT_NEAR(one, estimateMerge(8), 0.2);
  EXPECT_EQ(estimateTileMerge(16, 512, 128), one);
  EXPECT_GT(estimateTileMerge(17, 512, 128), one);
  // Of more than 16 runs those beyond a multiple of it come one by one.
  EXPECT_GT(estimateTileMerge(31, 512, 128), estimateTileMerge(32, 512, 128));
  EXPECT_GT(estimateTileMerge(8, 513, 128), estimateMerge(8) + 0.5);
}
