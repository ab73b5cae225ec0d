//===- TensorMemoryLayoutTest.cpp - Tensor memory against the ISA ---------===//
//
// The registers of each shape are typed here as the PTX ISA's figures have
// them, as (lane, column) of register r in lane l, apart from the builders;
// plans are checked element by element.
//
//===----------------------------------------------------------------------===//

#include "attn/Layout/TensorMemoryLayout.h"
#include "LayoutTesting.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::attn;
using namespace mlir::attn::testing;

/// TMEM lane and column of register `r` in lane `l` of an instruction, relative
/// to its address (PTX ISA, tcgen05.ld, "Matrix fragments"). `split` is the
/// immediate of 16x32bx2.
static std::pair<int64_t, int64_t> place(TmemShape shape, int64_t split, int l,
                                         int r) {
  switch (shape) {
  case TmemShape::S32x32b:
    return {l, r};
  case TmemShape::S16x64b:
    return {l / 4 + 8 * (l & 1), 2 * r + (l >> 1 & 1)};
  case TmemShape::S16x128b:
    return {l / 4 + 8 * (r & 1), 4 * (r >> 1) + l % 4};
  case TmemShape::S16x256b:
    return {l / 4 + 8 * (r >> 1 & 1), 8 * (r >> 2) + 2 * (l % 4) + (r & 1)};
  case TmemShape::S16x32bx2:
    return {l % 16, (l < 16 ? 0 : split) + r};
  }
  llvm_unreachable("covered switch");
}

/// Registers of one repetition (PTX ISA, tcgen05.ld, table of vectors).
static unsigned registersOf(TmemShape shape) {
  return shape == TmemShape::S16x256b   ? 4
         : shape == TmemShape::S16x128b ? 2
                                        : 1;
}

static int64_t leastColumns(TmemShape shape) {
  switch (shape) {
  case TmemShape::S32x32b:
    return 1;
  case TmemShape::S16x64b:
  case TmemShape::S16x32bx2:
    return 2;
  case TmemShape::S16x128b:
    return 4;
  case TmemShape::S16x256b:
    return 8;
  }
  llvm_unreachable("covered switch");
}

/// Runs a plan: each element of the tile is in the cell where the buffer has
/// it, and each cell is moved once.
static void expectPlan(const TileLayout &tile, const TensorMemoryLayout &buffer,
                       TmemShape shape) {
  TmemPlan plan = unwrap(planTmemAccess(tile, buffer));
  EXPECT_EQ(plan.shape, shape) << tile.str();
  unsigned packed = plan.elementsPerWord;
  ASSERT_EQ(packed, 32 / buffer.elementBits());
  unsigned moved = 0;
  for (const TmemAccess &access : plan.accesses) {
    ASSERT_EQ(access.words.size(), access.count * registersOf(plan.shape));
    ASSERT_LE(access.words.size(), 128u);
    ASSERT_TRUE(llvm::isPowerOf2_32(access.count));
    for (unsigned warp = 0; warp < 4; ++warp)
      for (int lane = 0; lane < 32; ++lane)
        for (auto [reg, word] : llvm::enumerate(access.words))
          for (unsigned i = 0; i < packed; ++i) {
            auto [row, column] = place(plan.shape, plan.split, lane, reg);
            TmemCell cell = {32 * warp + access.lane + row,
                             access.column + column, i * 4 / packed};
            Coords at =
                tile.coords({word * packed + i, unsigned(lane), warp, 0});
            ASSERT_EQ(buffer.cell(at[0], at[1]), cell)
                << tile.str() << " row " << at[0] << " column " << at[1];
            ++moved;
          }
  }
  EXPECT_EQ(moved, buffer.shape()[0] * buffer.shape()[1]);
}

TEST(TensorMemoryLayout, RegistersOfEachShape) {
  for (TmemShape shape : getTmemShapes()) {
    EXPECT_EQ(symbolizeTmemShape(stringifyTmemShape(shape)), shape);
    for (int64_t rows : {64, 128})
      for (int64_t columns : {1, 2, 4, 8, 16, 24, 40, 64, 80, 96, 128, 256}) {
        if (columns % leastColumns(shape) != 0 ||
            (rows == 64 && getTmemLanes(shape) == 32))
          continue;
        expectPlan(unwrap(tmemRegisters(shape, rows, columns)),
                   unwrap(TensorMemoryLayout::get(rows, columns, 32)), shape);
      }
  }
  EXPECT_EQ(symbolizeTmemShape("8x8b"), std::nullopt);
}

/// 16-bit tiles as conversions of f32 tiles leave them: two neighbours become
/// one word, so that a shape becomes the one of half the width.
TEST(TensorMemoryLayout, PackedElements) {
  for (int64_t columns : {16, 48, 96, 128}) {
    for (int64_t rows : {64, 128}) {
      TensorMemoryLayout p = unwrap(TensorMemoryLayout::get(rows, columns, 16));
      EXPECT_EQ(p.columns(), columns / 2);
      expectPlan(unwrap(tmemRegisters(TmemShape::S16x256b, rows, columns)), p,
                 TmemShape::S16x128b);
      if (rows == 128)
        expectPlan(unwrap(tmemRegisters(TmemShape::S32x32b, rows, columns)), p,
                   TmemShape::S32x32b);
      expectPlan(unwrap(tmemRegisters(TmemShape::S16x32bx2, rows, columns)), p,
                 TmemShape::S16x32bx2);
      expectError(
          planTmemAccess(
              unwrap(tmemRegisters(TmemShape::S16x64b, rows, columns)), p),
          "expected the 2 elements of a column of 32 bits in one "
          "thread");
    }
  }
}

/// With 64 rows an accumulator of wgmma is one of tcgen05.
TEST(TensorMemoryLayout, AccumulatorOfWgmma) {
  TileLayout fragments = unwrap(wgmmaAccumulator(64, 80, 1));
  EXPECT_TRUE(fragments.sameUpToRegisters(
      unwrap(tmemRegisters(TmemShape::S16x256b, 64, 80))));
  expectPlan(fragments, unwrap(TensorMemoryLayout::get(64, 80, 32)),
             TmemShape::S16x256b);
}

/// PTX ISA, data path layouts D (M = 128) and F (M = 64).
TEST(TensorMemoryLayout, RowsAreLanes) {
  TensorMemoryLayout d = unwrap(TensorMemoryLayout::get(128, 40, 32));
  TensorMemoryLayout f = unwrap(TensorMemoryLayout::get(64, 40, 32));
  TensorMemoryLayout a = unwrap(TensorMemoryLayout::get(128, 40, 16));
  TensorMemoryLayout narrow = unwrap(TensorMemoryLayout::get(128, 40, 8));
  for (int64_t row = 0; row < 128; ++row)
    for (int64_t col = 0; col < 40; ++col) {
      EXPECT_EQ(d.cell(row, col), (TmemCell{row, col, 0}));
      EXPECT_EQ(a.cell(row, col), (TmemCell{row, col / 2, col % 2 * 2}));
      EXPECT_EQ(narrow.cell(row, col), (TmemCell{row, col / 4, col % 4}));
      if (row < 64)
        EXPECT_EQ(f.cell(row, col),
                  (TmemCell{32 * (row / 16) + row % 16, col, 0}));
    }
  EXPECT_EQ(f.str(), "32-bit {dim0: [1,0] [2,0] [4,0] [8,0] [32,0] [64,0]; "
                     "dim1: -> lane: 128, byte: 4} * (1, 40 columns)");
}

/// PTX ISA, data path layout B (M = 128 of a pair): of N columns the second
/// half is 64 lanes behind the first one, which has the columns of the first
/// CTA.
TEST(TensorMemoryLayout, HalvesOfAPair) {
  // Fewer are parts of either half.
  for (int64_t columns : {2, 32, 64, 128, 256, 384, 512}) {
    int64_t half = std::min<int64_t>(columns / 2, 64);
    TensorMemoryLayout b = unwrap(TensorMemoryLayout::getHalves(columns));
    EXPECT_EQ(b.columns(), columns / 2);
    for (int64_t row = 0; row < 64; ++row)
      for (int64_t col = 0; col < columns; ++col) {
        int64_t peer = col / half % 2;
        int64_t n = col / (2 * half) * half + col % half;
        EXPECT_EQ(b.cell(row, col), (TmemCell{row + 64 * peer, n, 0}));
      }
    expectPlan(unwrap(tmemHalfRegisters(columns)), b, TmemShape::S32x32b);
  }
  expectError(TensorMemoryLayout::getHalves(192),
              "expected a multiple of 128 columns in halves, or a power of two "
              "from 2 on, got 192");
  expectError(TensorMemoryLayout::getHalves(1),
              "expected a multiple of 128 columns in halves, or a power of two "
              "from 2 on, got 1");
  expectError(
      tmemHalfRegisters(96),
      "expected n to be a multiple of 128 or a power of two below, got 96");
}

TEST(TensorMemoryLayout, Errors) {
  expectError(TensorMemoryLayout::get(96, 64, 32),
              "expected 64 or 128 rows in tensor memory, got 96");
  expectError(TensorMemoryLayout::get(128, 64, 64),
              "expected elements of 8, 16 or 32 bits in tensor memory, got 64");
  expectError(TensorMemoryLayout::get(128, 33, 16),
              "expected rows that fill whole columns of 32 bits in tensor "
              "memory, got 33 elements of 16 bits");
  TensorMemoryLayout buffer = unwrap(TensorMemoryLayout::get(128, 64, 32));
  expectError(planTmemAccess(unwrap(tmemRegisters(TmemShape::S32x32b, 128, 32)),
                             buffer),
              "expected a tile of 128 x 64");
  // Warps of 16 rows, twice.
  expectError(planTmemAccess(unwrap(wgmmaAccumulator(128, 64, 2)), buffer),
              "expected four warps, each with a fourth of the rows");
  // 32 rows a warp, four of a thread's columns together.
  TileLayout other = unwrap(blocked({128, 64}, {1, 4}, 4, {0, 1}));
  TileLayout rows = unwrap(blocked({128, 64}, {1, 64}, 4, {0, 1}));
  expectPlan(rows, buffer, TmemShape::S32x32b);
  expectPlan(other, buffer, TmemShape::S32x32b);
  // Lanes 1 and 2 have changed places.
  TileLayout mixed = unwrap(TileLayout::parse(
      "{register: [0,1]; lane: [2,0] [1,0] [4,0] [8,0] [16,0]; "
      "warp: [32,0] [64,0] -> dim0: 128, dim1: 2} * (dim1 x 32)"));
  expectError(planTmemAccess(mixed, buffer),
              "expected the registers of a shape of tcgen05.ld, got " +
                  mixed.str());
}
