//===- UnevenTimeTest.cpp - tests of estimates of mixed lengths -----------===//

#include "attn/Planner/Choice/UnevenTime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <numeric>

using namespace mlir::attn;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Ge;
using testing::Le;

static const TargetRow &getHopper() {
  return llvm::cantFail(lookupTarget("sm_90a"));
}

TEST(UnevenTime, LengthsAreSpreadAndReachTheLongest) {
  llvm::SmallVector<int64_t> lengths = listUnevenLengths({64, 32768, 32768});
  EXPECT_EQ(lengths.size(), 64u);
  EXPECT_THAT(lengths, Contains(32768));
  EXPECT_THAT(lengths, Each(AllOf(Ge(16), Le(32768))));
  // Half of them have fewer keys than the mean of the logarithms, 724.
  EXPECT_NEAR(llvm::count_if(lengths, [](int64_t n) { return n < 724; }), 32,
              2);
  EXPECT_THAT(listUnevenLengths({64, 32768, 1024}), Each(Le(1024)));
  EXPECT_THAT(listUnevenLengths({2, 8, 8}), Each(8));
}

/// 512 tiles of 32768 keys, which DRAM takes 1000 us for, a CTA of an SM by
/// itself 600 us for one, in blocks of 64 keys.
static PlanEstimate makeWhole() {
  PlanEstimate whole;
  whole.dramRoofMicroseconds = 1000;
  whole.tiles = 512;
  whole.ctasPerSM = 1;
  whole.blocks = 512;
  whole.loneTileMicroseconds = 600;
  return whole;
}

static PlanEstimate cut(PlanEstimate plan, int64_t splits) {
  plan.tiles *= splits;
  plan.blocks /= double(splits);
  plan.loneTileMicroseconds /= double(splits);
  return plan;
}

TEST(UnevenTime, LongTilesCost) {
  PlanEstimate whole = makeWhole();
  UnevenBatch batch = {64, 32768, 32768};
  auto estimate = [&](int64_t splits) {
    return estimateUneven(whole, cut(whole, splits), splits, batch,
                          getHopper());
  };
  // No tile ends before the longest sequence's.
  EXPECT_GE(estimate(1), 600);
  EXPECT_LT(estimate(4), estimate(1));
  // Runs without keys cost as well.
  EXPECT_GT(estimate(128), estimate(8));
  // What is read is the least, 0.13 of all keys.
  EXPECT_GE(estimate(8), 130);
}

TEST(UnevenTime, PartialResultsAreReadToo) {
  PlanEstimate whole = makeWhole(), plan = cut(whole, 4);
  UnevenBatch batch = {64, 32768, 32768};
  double without = estimateUneven(whole, plan, 4, batch, getHopper());
  plan.dramRoofMicroseconds += 10;
  EXPECT_NEAR(estimateUneven(whole, plan, 4, batch, getHopper()), without + 10,
              1e-6);
}

TEST(UnevenTime, ACTAOfAnSMReadsLongSequencesFaster) {
  PlanEstimate whole = makeWhole(), halves = whole;
  halves.ctasPerSM = 2;
  halves.loneTileMicroseconds = 1200;
  UnevenBatch batch = {64, 32768, 32768};
  EXPECT_LT(estimateUneven(whole, whole, 1, batch, getHopper()),
            estimateUneven(whole, halves, 1, batch, getHopper()));
}

TEST(UnevenTime, ExpectedKeysAreTaken) {
  const int64_t expected[] = {4096, 100000};
  UnevenBatch batch = {3, 32768, 32768, expected};
  EXPECT_THAT(listUnevenLengths(batch),
              testing::ElementsAre(4096, 32768, 4096));
  // Where all are expected to be as long, none is shorter than estimates think.
  const int64_t same[] = {1024};
  UnevenBatch even = {64, 32768, 32768, same}, any = {64, 32768, 32768};
  PlanEstimate whole = makeWhole();
  EXPECT_GT(estimateUneven(whole, whole, 1, even, getHopper()),
            whole.dramRoofMicroseconds);
  EXPECT_LT(estimateUneven(whole, whole, 1, any, getHopper()),
            whole.dramRoofMicroseconds);
}

TEST(UnevenTime, RunsAreDealtByLengths) {
  UnevenBatch batch = {64, 32768, 32768};
  llvm::SmallVector<int64_t> lengths = listUnevenLengths(batch);
  llvm::SmallVector<int64_t> runs = dealRuns(lengths, {264, 64});
  EXPECT_THAT(runs, Each(AllOf(Ge(1), Le(64))));
  int64_t all = 0, longest = 0;
  for (auto [length, own] : llvm::zip(lengths, runs)) {
    all += own;
    longest = std::max(longest, length / own);
  }
  EXPECT_LE(all, 264);
  // No run is longer than what 200 equal ones of all keys are.
  int64_t keys = std::accumulate(lengths.begin(), lengths.end(), int64_t(0));
  EXPECT_LE(longest, keys / 200 + 2 * 64);
  // A sequence has no more than the most, and one without keys has one.
  EXPECT_THAT(dealRuns({32768, 0, 0}, {100, 8}), testing::ElementsAre(8, 1, 1));
}
