//===- CopyPlanTest.cpp - cp.async plans, executed ------------------------===//

#include "attn/Layout/CopyPlan.h"
#include "LayoutTesting.h"
#include "attn/Layout/BankConflicts.h"
#include <set>

using namespace mlir::attn;
using namespace mlir::attn::testing;

/// Every chunk of the buffer is written once, to where its elements live.
static void expectPlan(const CopyPlan &plan, const SharedLayout &buffer) {
  std::set<Coords> covered;
  for (unsigned thread = 0; thread < plan.activeThreads; ++thread)
    for (const CopyStep &step : plan.steps) {
      if (step.rowLimit && plan.threadRow(thread) >= *step.rowLimit)
        continue;
      Coords coords = {plan.threadRow(thread) + step.row,
                       plan.threadCol(thread) + step.col};
      ASSERT_LT(coords[0], buffer.shape()[0]);
      EXPECT_TRUE(covered.insert(coords).second);
      int64_t offset = plan.sharedOffset(thread, step);
      for (unsigned e = 0; e < plan.chunkElements; ++e)
        EXPECT_EQ(offset + int64_t(e) * buffer.elementBytes(),
                  buffer.offset({coords[0], coords[1] + e}));
    }
  EXPECT_EQ(int64_t(covered.size()) * plan.chunkElements,
            buffer.shape()[0] * buffer.shape()[1]);
}

TEST(CopyPlan, EveryChunkOnceWithoutConflicts) {
  for (int64_t cols : {8, 16, 24, 40, 48, 64, 80, 96, 128, 192, 256})
    for (int64_t rows : {16, 40, 64, 80, 128})
      for (unsigned threads : {32, 96, 128, 256}) {
        SharedLayout buffer = unwrap(SharedLayout::choose(rows, cols, 16));
        CopyPlan plan = unwrap(planCopy(buffer, threads));
        expectPlan(plan, buffer);
        EXPECT_EQ(countBankConflicts(plan).conflicts(), 0u)
            << rows << "x" << cols << " by " << threads;
      }
}

TEST(CopyPlan, ConstantsOfKnownTiles) {
  // 64x128: a row's span is 8 threads, 16 rows for 128 threads, 4 x 2 chunks.
  CopyPlan plan =
      unwrap(planCopy(unwrap(SharedLayout::choose(64, 128, 16)), 128));
  EXPECT_EQ(plan.width, 8);
  EXPECT_EQ(plan.rowStep, 16);
  EXPECT_EQ(plan.steps.size(), 8u);
  EXPECT_FALSE(plan.divided);
  EXPECT_EQ(plan.xorConstants().size(), 1u);
  EXPECT_EQ(plan.steps[1].row, 0);
  EXPECT_EQ(plan.steps[1].col, 64);
  // 40 columns: 5 chunks a row, 25 rows for 125 of 128 threads, 64 = 2*25 + 14.
  plan = unwrap(planCopy(unwrap(SharedLayout::choose(64, 40, 16)), 128));
  EXPECT_TRUE(plan.divided);
  EXPECT_EQ(plan.activeThreads, 125u);
  EXPECT_EQ(plan.steps.size(), 3u);
  EXPECT_EQ(plan.steps.back().rowLimit, 14);
}

TEST(CopyPlan, OtherChunksAndElements) {
  for (unsigned bits : {8, 16, 32})
    for (unsigned chunk : {4, 8, 16}) {
      SharedLayout buffer = unwrap(SharedLayout::choose(48, 48, bits));
      CopyPlan plan = unwrap(planCopy(buffer, 128, chunk));
      expectPlan(plan, buffer);
    }
  // Rows of one element have no direction.
  SharedLayout column = unwrap(SharedLayout::swizzled(32, 1, 32, 0));
  expectPlan(unwrap(planCopy(column, 64, 4)), column);
  SharedLayout view = unwrap(
      unwrap(SharedLayout::choose(96, 128, 16)).subview({32, 64}, {32, 64}));
  expectPlan(unwrap(planCopy(view, 128)), view);
}

TEST(CopyPlan, Errors) {
  SharedLayout buffer = unwrap(SharedLayout::choose(64, 64, 16));
  expectError(planCopy(buffer, 128, 12),
              "expected chunks of 4, 8 or 16 bytes, got 12");
  expectError(planCopy(buffer, 0), "expected 1 to 1024 threads, got 0");
  expectError(planCopy(buffer.transposed(), 128),
              "expected a buffer of two dimensions, contiguous along dim1");
  expectError(planCopy(unwrap(SharedLayout::swizzled(8, 20, 16, 0)), 128),
              "expected rows of whole chunks of 16 bytes, got 20 elements in "
              "runs of 4");
}
