//===- LayoutAttrsTest.cpp - Layouts of types, as passes ask for them -----===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Layout/Convert.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

class LayoutAttrs : public ::testing::Test {
protected:
  LayoutAttrs() { context.loadDialect<AttnDialect>(); }

  /// The text of the error that `result` holds, or "none".
  template <typename T>
  static std::string errorOf(llvm::Expected<T> result) {
    return result ? "none" : llvm::toString(result.takeError());
  }

  MLIRContext context;
};

TEST_F(LayoutAttrs, TileWithoutChosenLayout) {
  auto type = RankedTensorType::get({128, 64}, Float32Type::get(&context),
                                    AutoLayoutAttr::get(&context));
  EXPECT_EQ(errorOf(getTileLayout(type)),
            "expected a tile whose layout is chosen");
}

TEST_F(LayoutAttrs, TileWithLayout) {
  auto type =
      RankedTensorType::get({128, 64}, Float32Type::get(&context),
                            MmaLayoutAttr::get(&context, /*warps=*/{4, 1}));
  EXPECT_EQ(errorOf(getTileLayout(type)), "none");
}

TEST_F(LayoutAttrs, BufferWithoutChosenLayout) {
  auto type =
      BufferType::get(&context, {64, 128}, Float16Type::get(&context),
                      AutoLayoutAttr::get(&context), MemorySpace::Shared);
  EXPECT_EQ(errorOf(getSharedLayout(type)),
            "expected a buffer whose layout is chosen");
}

TEST_F(LayoutAttrs, PartialSumsOfTileWithoutChosenLayout) {
  auto layout = PartialLayoutAttr::get(&context, AutoLayoutAttr::get(&context));
  EXPECT_EQ(errorOf(layout.toTileLayout({64, 4}, 32)),
            "the parent's layout is not known yet");
}

TEST_F(LayoutAttrs, RowsHaveOneOrTwoDimensions) {
  auto layout = RowLayoutAttr::get(&context);
  EXPECT_EQ(errorOf(layout.toSharedLayout({2, 64, 128}, 16)),
            "expected a slot of rank 1 or 2 for #attn.rows, got rank 3");
  EXPECT_EQ(errorOf(layout.toSharedLayout({64, 128}, 16)), "none");
}

// Warps along the columns keep their own runs of the row.
TEST_F(LayoutAttrs, RunsOfWarpsWithColumns) {
  auto accumulator = MmaLayoutAttr::get(&context, /*warps=*/{4, 2},
                                        /*copies=*/1, /*columnRuns=*/true);
  auto layout = RunsLayoutAttr::get(&context, accumulator);
  auto source = accumulator.toTileLayout({64, 256}, 16);
  auto runs = layout.toTileLayout({64, 256}, 16);
  ASSERT_EQ(errorOf(layout.toTileLayout({64, 256}, 16)), "none");
  for (unsigned warp = 0; warp < 8; ++warp)
    for (unsigned lane = 0; lane < 32; ++lane)
      EXPECT_EQ(runs->coords({0, lane, warp, 0}),
                (Coords{16 * (warp % 4) + lane / 4,
                        128 * (warp / 4) + 8 * (lane % 4)}));
  auto plan = planConversion(*source, *runs, 16, /*allowScratch=*/true);
  ASSERT_TRUE(bool(plan)) << llvm::toString(plan.takeError());
  EXPECT_EQ(plan->kind, ConversionKind::Shuffles);
}

// Lane l has run l % 4 of each 64 bytes of its row, and pairs of 16-bit
// elements stay together on the way there.
TEST_F(LayoutAttrs, RunsOfSixteenBytes) {
  auto accumulator = MmaLayoutAttr::get(&context, /*warps=*/{2, 1});
  auto layout = RunsLayoutAttr::get(&context, accumulator);
  for (unsigned bits : {8u, 16u, 32u}) {
    auto source = accumulator.toTileLayout({64, 192}, bits);
    auto runs = layout.toTileLayout({64, 192}, bits);
    ASSERT_EQ(errorOf(layout.toTileLayout({64, 192}, bits)), "none");
    int64_t run = 128 / bits;
    EXPECT_EQ(int64_t(runs->contiguity(1)), run);
    for (unsigned lane = 0; lane < 32; ++lane)
      EXPECT_EQ(runs->coords({0, lane, 1, 0}),
                (Coords{16 + lane / 4, run * (lane % 4)}));
    // Four bytes of a register go to several lanes.
    auto plan =
        planConversion(*source, *runs, bits, /*allowScratch=*/bits != 8);
    ASSERT_TRUE(bool(plan)) << llvm::toString(plan.takeError());
    EXPECT_EQ(plan->kind, ConversionKind::Shuffles);
    for (const ShuffleRound &round : plan->rounds)
      if (round.kind == ShuffleRound::Kind::Exchange)
        EXPECT_GE(round.registerBit, bits == 32 ? 0u : 1u);
    if (bits != 16)
      continue;
    for (unsigned reg = 0; reg < plan->initialRegisters.size(); reg += 2)
      EXPECT_EQ(plan->initialRegisters[reg] + 1,
                plan->initialRegisters[reg + 1]);
  }
}

} // namespace
