//===- NamedLayoutsTest.cpp - Fragments against the ISA's formulas --------===//
//
// The formulas are typed here from the PTX ISA's fragment figures, in its own
// terms (groupID = lane / 4, threadID = lane % 4, element index i), apart from
// the builders that they check.
//
//===----------------------------------------------------------------------===//

#include "attn/Layout/NamedLayouts.h"
#include "LayoutTesting.h"
#include "llvm/ADT/Sequence.h"
#include <functional>

using namespace mlir::attn;
using namespace mlir::attn::testing;

namespace {
/// (row, column) of element i of a lane, as the ISA gives it for one fragment.
using Formula = std::function<std::pair<int, int>(int lane, int i)>;
} // namespace

/// Compares a layout with a fragment's formula on one fragment.
static void expectFragment(const TileLayout &tile, unsigned elements,
                           Formula formula) {
  ASSERT_EQ(tile.numRegisters(), elements);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < int(elements); ++i) {
      auto [row, col] = formula(lane, i);
      EXPECT_EQ(tile.coords({unsigned(i), unsigned(lane), 0, 0}),
                Coords({row, col}))
          << "lane " << lane << " element " << i;
    }
}

static WarpGrid one() { return {1, 1}; }

TEST(NamedLayouts, MmaM16N8K16Half) {
  // A: row = groupID for 0<=i<2 || 4<=i<6, else groupID + 8;
  //    col = threadID*2 + (i & 1) for i < 4, + 8 for i >= 4.
  expectFragment(unwrap(mmaOperandA(16, 16, 16, 16, one())), 8,
                 [](int lane, int i) {
                   bool upper = (i >= 0 && i < 2) || (i >= 4 && i < 6);
                   int row = upper ? lane >> 2 : (lane >> 2) + 8;
                   int col = (lane % 4) * 2 + (i & 1) + (i < 4 ? 0 : 8);
                   return std::pair(row, col);
                 });
  // B: row = threadID*2 + (i & 1) for i < 2, + 8 for i >= 2; col = groupID.
  expectFragment(unwrap(mmaOperandB(16, 8, 16, 16, one())), 4,
                 [](int lane, int i) {
                   int row = (lane % 4) * 2 + (i & 1) + (i < 2 ? 0 : 8);
                   return std::pair(row, lane >> 2);
                 });
}

TEST(NamedLayouts, MmaAccumulator) {
  // C: row = groupID for i < 2, + 8 for i >= 2; col = threadID*2 + (i & 1).
  expectFragment(unwrap(mmaAccumulator(16, 8, one())), 4, [](int lane, int i) {
    return std::pair((lane >> 2) + (i < 2 ? 0 : 8), (lane % 4) * 2 + (i & 1));
  });
}

TEST(NamedLayouts, CopiesOfAGrid) {
  // Warps 0 and 1 have 16 rows each, of all columns; so have 2 and 3, 4 and 5.
  TileLayout copies = unwrap(mmaAccumulator(64, 24, {2, 1, 4}));
  TileLayout alone = unwrap(mmaAccumulator(64, 24, {2, 1}));
  ASSERT_EQ(copies.numRegisters(), alone.numRegisters());
  for (unsigned warp = 0; warp < 8; ++warp)
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned reg = 0; reg < copies.numRegisters(); ++reg)
        EXPECT_EQ(copies.coords({reg, lane, warp, 0}),
                  alone.coords({reg, lane, warp % 2, 0}));
  EXPECT_EQ(copies.warpBroadcastMask(), 6u);
  // A's fragments are those that the same warps take beside others' columns.
  TileLayout operand = unwrap(mmaOperandA(64, 32, 16, 16, {2, 4}));
  EXPECT_TRUE(accumulatorAsOperandA(unwrap(mmaAccumulator(64, 32, {2, 1, 4})),
                                    operand));
}

TEST(NamedLayouts, RunsOfColumns) {
  // Two warpgroups that divide the columns each have what wgmma gives one.
  TileLayout runs =
      unwrap(mmaAccumulator(64, 128, {4, 2, 1, /*columnRuns=*/true}));
  TileLayout alone = unwrap(wgmmaAccumulator(64, 64, 1));
  ASSERT_EQ(runs.numRegisters(), alone.numRegisters());
  for (unsigned warp = 0; warp < 8; ++warp)
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned reg = 0; reg < runs.numRegisters(); ++reg) {
        Coords own = alone.coords({reg, lane, warp % 4, 0});
        EXPECT_EQ(runs.coords({reg, lane, warp, 0}),
                  Coords({own[0], own[1] + 64 * (warp / 4)}));
      }
}

TEST(NamedLayouts, MmaM16N8K8Half) {
  expectFragment(unwrap(mmaOperandA(16, 8, 16, 8, one())), 4,
                 [](int lane, int i) {
                   return std::pair((lane >> 2) + (i < 2 ? 0 : 8),
                                    (lane % 4) * 2 + (i & 1));
                 });
  expectFragment(
      unwrap(mmaOperandB(8, 8, 16, 8, one())), 2,
      [](int lane, int i) { return std::pair((lane % 4) * 2 + i, lane >> 2); });
}

TEST(NamedLayouts, MmaM16N8K32Bytes) {
  // A: row = groupID for 0<=i<4 || 8<=i<12, else + 8;
  //    col = threadID*4 + (i & 3) for i < 8, + 16 for i >= 8.
  expectFragment(unwrap(mmaOperandA(16, 32, 8, 32, one())), 16,
                 [](int lane, int i) {
                   bool upper = i < 4 || (i >= 8 && i < 12);
                   int col = (lane % 4) * 4 + (i & 3) + (i < 8 ? 0 : 16);
                   return std::pair((lane >> 2) + (upper ? 0 : 8), col);
                 });
  // B: row = threadID*4 + (i & 3) for i < 4, + 16 for i >= 4; col = groupID.
  expectFragment(unwrap(mmaOperandB(32, 8, 8, 32, one())), 8,
                 [](int lane, int i) {
                   int row = (lane % 4) * 4 + (i & 3) + (i < 4 ? 0 : 16);
                   return std::pair(row, lane >> 2);
                 });
}

TEST(NamedLayouts, MmaM16N8K16Bytes) {
  expectFragment(unwrap(mmaOperandA(16, 16, 8, 16, one())), 8,
                 [](int lane, int i) {
                   return std::pair((lane >> 2) + (i < 4 ? 0 : 8),
                                    (lane % 4) * 4 + (i & 3));
                 });
  expectFragment(
      unwrap(mmaOperandB(16, 8, 8, 16, one())), 4,
      [](int lane, int i) { return std::pair((lane % 4) * 4 + i, lane >> 2); });
}

TEST(NamedLayouts, MmaQuads) {
  // A: elements i of a fragment of m16n8k16, whose k 2t, 2t+1, 8+2t, 8+2t+1
  // are 4t to 4t+3 of the 8-bit row that ldmatrix loads.
  expectFragment(unwrap(mmaQuadOperandA(16, 16, one())), 8,
                 [](int lane, int i) {
                   bool upper = (i >= 0 && i < 2) || (i >= 4 && i < 6);
                   int col = (lane % 4) * 4 + (i & 1) + (i < 4 ? 0 : 2);
                   return std::pair((lane >> 2) + (upper ? 0 : 8), col);
                 });
  // C of two products: the even columns of 16, then the odd ones.
  WarpGrid quads{1, 1};
  quads.columnQuads = true;
  expectFragment(unwrap(mmaAccumulator(16, 16, quads)), 8, [](int lane, int i) {
    int column = (lane % 4) * 2 + (i & 1);
    return std::pair((lane >> 2) + (i % 4 < 2 ? 0 : 8),
                     2 * column + (i < 4 ? 0 : 1));
  });
  // Further columns before further rows, as without.
  TileLayout tile = unwrap(mmaAccumulator(32, 48, quads));
  EXPECT_EQ(tile.coords({8, 0, 0, 0}), Coords({0, 16}));
  EXPECT_EQ(tile.coords({24, 0, 0, 0}), Coords({16, 0}));
  expectError(mmaAccumulator(16, 24, quads),
              "expected n to be a positive multiple of 16, got 24");
  // Warps have 16 columns each in turns.
  quads.n = 2;
  TileLayout shared = unwrap(mmaAccumulator(16, 64, quads));
  EXPECT_EQ(shared.coords({0, 0, 1, 0}), Coords({0, 16}));
  EXPECT_EQ(shared.coords({8, 0, 0, 0}), Coords({0, 32}));
  expectError(mmaAccumulator(16, 48, quads),
              "expected n to be a positive multiple of 32, got 48");
  expectError(mmaQuadOperandA(16, 24, one()),
              "expected k to be a positive multiple of 16, got 24");
}

TEST(NamedLayouts, Wgmma) {
  // wgmma D: row = (warp % 4)*16 + lane/4 + 8*((i/2) % 2),
  //          col = (i/4)*8 + (lane % 4)*2 + i % 2.
  TileLayout accumulator = unwrap(wgmmaAccumulator(128, 80, 2));
  EXPECT_EQ(accumulator.numRegisters(), 40u);
  TileLayout operand = unwrap(wgmmaOperandA(64, 48, 16, 1));
  for (unsigned warp = 0; warp < 4; ++warp)
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned reg = 0; reg < 40; ++reg) {
        int row = 16 * warp + lane / 4 + 8 * (reg / 2 % 2);
        int col = reg / 4 * 8 + lane % 4 * 2 + reg % 2;
        EXPECT_EQ(accumulator.coords({reg, lane, warp, 0}), Coords({row, col}));
        EXPECT_EQ(accumulator.coords({reg, lane, warp + 4, 0}),
                  Coords({row + 64, col}));
        if (reg < 24) {
          int k = reg / 8 * 16 + reg / 4 % 2 * 8 + lane % 4 * 2 + reg % 2;
          EXPECT_EQ(operand.coords({reg, lane, warp, 0}), Coords({row, k}));
        }
      }
}

TEST(NamedLayouts, AnyNumberOfWarpgroups) {
  // 64 rows for each, in the fragments of one.
  TileLayout one = unwrap(wgmmaAccumulator(64, 80, 1));
  TileLayout oneA = unwrap(wgmmaOperandA(64, 80, 16, 1));
  for (unsigned groups : {2, 3, 5, 6}) {
    TileLayout all = unwrap(wgmmaAccumulator(64 * groups, 80, groups));
    TileLayout allA = unwrap(wgmmaOperandA(64 * groups, 80, 16, groups));
    EXPECT_EQ(all.shape(), Coords({64 * groups, 80}));
    EXPECT_EQ(all.numWarps(), 4 * groups);
    EXPECT_EQ(all.numRegisters(), 40u);
    for (unsigned warp = 0; warp < 4 * groups; ++warp)
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned reg = 0; reg < 40; ++reg)
          for (auto [tile, single] :
               {std::pair(&all, &one), std::pair(&allA, &oneA)}) {
            Coords expected = single->coords({reg, lane, warp % 4, 0});
            expected[0] += 64 * (warp / 4);
            EXPECT_EQ(tile->coords({reg, lane, warp, 0}), expected);
            EXPECT_EQ(tile->find(expected), (TileIndex{reg, lane, warp, 0}));
          }
    auto registers = accumulatorAsOperandA(all, allA);
    ASSERT_TRUE(registers);
    EXPECT_TRUE(llvm::equal(*registers, llvm::seq<unsigned>(0, 40)));
  }
}

TEST(NamedLayouts, TilesAreFragmentsInOrder) {
  // The fragment of (m16 tile i, n8 tile j) is registers 4*(i*n/8 + j) ... + 3.
  for (int64_t n : {8, 40, 80, 96, 144, 176, 192}) {
    TileLayout tile = unwrap(mmaAccumulator(128, n, {4, 1}));
    EXPECT_EQ(tile.shape(), Coords({128, n}));
    TileLayout fragment = unwrap(mmaAccumulator(16, 8, one()));
    for (unsigned warp = 0; warp < 4; ++warp)
      for (int64_t i = 0; i < 2; ++i)
        for (int64_t j = 0; j < n / 8; ++j)
          for (unsigned lane = 0; lane < 32; lane += 5)
            for (unsigned r = 0; r < 4; ++r) {
              Coords expected = fragment.coords({r, lane, 0, 0});
              expected[0] += 16 * warp + 64 * i;
              expected[1] += 8 * j;
              unsigned reg = 4 * (i * n / 8 + j) + r;
              EXPECT_EQ(tile.coords({reg, lane, warp, 0}), expected);
            }
  }
}

TEST(NamedLayouts, WarpGridsBroadcastOperands) {
  WarpGrid grid{2, 4};
  TileLayout accumulator = unwrap(mmaAccumulator(64, 96, grid));
  TileLayout a = unwrap(mmaOperandA(64, 48, 16, 16, grid));
  TileLayout b = unwrap(mmaOperandB(48, 96, 16, 16, grid));
  EXPECT_EQ(accumulator.warpBroadcastMask(), 0u);
  EXPECT_EQ(a.warpBroadcastMask(), 0b110u);
  EXPECT_EQ(b.warpBroadcastMask(), 0b001u);
  // Every warp holds the A rows and B columns of its accumulator rows and
  // columns: row and column sets agree.
  for (unsigned warp = 0; warp < 8; ++warp) {
    EXPECT_EQ(a.coords({0, 0, warp, 0})[0],
              accumulator.coords({0, 0, warp, 0})[0]);
    EXPECT_EQ(b.coords({0, 0, warp, 0})[1],
              accumulator.coords({0, 0, warp, 0})[1]);
  }
}

TEST(NamedLayouts, AccumulatorIsOperandAInPlace) {
  for (int64_t keys : {16, 32, 48, 64, 80, 96, 128, 144, 176}) {
    WarpGrid grid{4, 1};
    TileLayout scores = unwrap(mmaAccumulator(128, keys, grid));
    TileLayout p = unwrap(mmaOperandA(128, keys, 16, 16, grid));
    auto registers = accumulatorAsOperandA(scores, p);
    ASSERT_TRUE(registers) << keys;
    for (unsigned reg = 0; reg < registers->size(); ++reg)
      EXPECT_EQ((*registers)[reg], reg);
  }
  // 8-bit operands hold other columns, and a grid along n other warps' columns.
  EXPECT_FALSE(
      accumulatorAsOperandA(unwrap(mmaAccumulator(64, 64, {4, 1})),
                            unwrap(mmaOperandA(64, 64, 8, 32, {4, 1}))));
  EXPECT_FALSE(
      accumulatorAsOperandA(unwrap(mmaAccumulator(64, 64, {2, 2})),
                            unwrap(mmaOperandA(64, 64, 16, 16, {2, 2}))));
}

TEST(NamedLayouts, RowsOfAnAccumulator) {
  TileLayout tile = unwrap(mmaAccumulator(128, 96, {4, 1}));
  TileLayout rows = unwrap(tile.slice(1));
  EXPECT_EQ(rows.shape(), Coords({128}));
  EXPECT_EQ(rows.numRegisters(), 4u);
  EXPECT_EQ(rows.laneBroadcastMask(), 0b11u);
  EXPECT_EQ(tile.laneBitsAlong(1), (llvm::SmallVector<unsigned, 5>{0, 1}));
  EXPECT_TRUE(tile.warpBitsAlong(1).empty());
}

TEST(NamedLayouts, Blocked) {
  // 5 chunks of 8 columns are not spread over lanes; 16 rows per warp would be
  // lanes x rows.
  TileLayout tile = unwrap(blocked({64, 40}, {1, 8}, 4, {1, 0}));
  EXPECT_EQ(tile.shape(), Coords({64, 40}));
  EXPECT_EQ(tile.contiguity(1), 8u);
  EXPECT_EQ(tile.laneBasis(0), Coords({1, 0}));
  EXPECT_EQ(tile.warpBroadcastMask(), 0b10u);
  TileLayout wide = unwrap(blocked({64, 96}, {1, 8}, 4, {1, 0}));
  EXPECT_EQ(wide.laneBasis(0), Coords({0, 8}));
  EXPECT_EQ(wide.laneBasis(1), Coords({0, 16}));
  EXPECT_EQ(wide.laneBasis(2), Coords({1, 0}));
  EXPECT_EQ(wide.numRegisters(), 48u);
}

TEST(NamedLayouts, ShapeK) {
  EXPECT_EQ(mmaShapeK(64, 16), 16u);
  EXPECT_EQ(mmaShapeK(40, 16), 8u);
  EXPECT_EQ(mmaShapeK(20, 16), 0u);
  EXPECT_EQ(mmaShapeK(96, 8), 32u);
  EXPECT_EQ(mmaShapeK(80, 8), 16u);
  EXPECT_EQ(mmaShapeK(64, 32), 0u);
}

// A thread holds in `source` what it holds in `dest`, in the registers that the
// header gives, with the keys of each 16 where the operand of wgmma has them.
TEST(NamedLayouts, TransposeTilesMatch) {
  for (auto [k, n, warps] : {std::tuple(64, 64, 4),
                             {128, 128, 4},
                             {96, 256, 4},
                             {64, 32, 4},
                             {32, 16, 1},
                             {128, 16, 4},
                             {160, 64, 2}}) {
    TransposeTiles tiles = unwrap(transposeTiles(k, n, warps));
    unsigned registers = tiles.source.numRegisters();
    ASSERT_EQ(tiles.dest.numRegisters(), registers);
    EXPECT_EQ(int64_t(registers) * 2 * 32 * warps, int64_t(k) * n);
    for (unsigned reg = 0; reg < registers; reg += 2)
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned warp = 0; warp < unsigned(warps); ++warp) {
          Coords to = tiles.dest.coords({reg, lane, warp, 0});
          // Row of interleavedRows: the column of V.
          int64_t s = to[0] % 16 / 8, r = to[0] % 8;
          int64_t column =
              to[0] / 16 * 16 + (r < 4 ? 2 * r + s : 2 * r + 1 - s);
          for (unsigned i = 0; i < 4; ++i) {
            // Position 4t + 2u + j of 16 is key 8u + 2t + j.
            int64_t place = 2 * to[1] + i;
            int64_t t = place % 16 / 4, u = place % 4 / 2, j = place % 2;
            int64_t key = place / 16 * 16 + 8 * u + 2 * t + j;
            unsigned from = (reg & ~3u) + 2 * u + j;
            Coords pair = tiles.source.coords({from, lane, warp, 0});
            EXPECT_EQ(pair[0], key);
            EXPECT_EQ(pair[1], column / 2);
          }
        }
  }
}

TEST(NamedLayouts, Errors) {
  expectError(mmaAccumulator(48, 64, {3, 2}),
              "expected powers of two up to 32 as warp grid, or any number of "
              "rows in one column, got 3x2");
  expectError(mmaAccumulator(48, 64, {3, 1, 2}),
              "expected copies of a grid of powers of two to be a power of two "
              "up to 32, got 2 of 3x1");
  expectError(mmaAccumulator(96, 64, {3, 1}),
              "expected no repetition along dim0, which 3 warps share, no "
              "power of two");
  expectError(mmaAccumulator(40, 64, {2, 1}),
              "expected m to be a positive multiple of 32, got 40");
  expectError(mmaAccumulator(64, 0, {2, 1}),
              "expected n to be a positive multiple of 8, got 0");
  expectError(mmaOperandA(64, 40, 16, 16, one()),
              "expected k to be a positive multiple of 16, got 40");
  expectError(mmaOperandA(64, 40, 32, 8, one()),
              "expected operand elements of 8 or 16 bits, got 32");
  expectError(mmaOperandB(64, 40, 16, 32, one()),
              "expected an instruction depth of 8 or 16 for 16-bit elements, "
              "got 32");
  expectError(wgmmaOperandA(64, 64, 32, 1),
              "expected operand elements of 8 or 16 bits, got 32");
  expectError(wgmmaAccumulator(576, 64, 9),
              "expected 1 to 8 warpgroups, got 9");
  expectError(transposeTiles(64, 64, 3),
              "expected a power of two up to 32 of warps, got 3");
  expectError(transposeTiles(48, 64, 4),
              "expected k to be a positive multiple of 32, got 48");
  expectError(transposeTiles(96, 32, 4),
              "expected 4 warps to share 96 x 32 elements in pieces of 32 x "
              "16");
  expectError(tmemRegisters(TmemShape::S32x32b, 64, 64),
              "expected 128 rows for 32x32b, got 64");
  expectError(tmemRegisters(TmemShape::S16x64b, 96, 64),
              "expected 64 or 128 rows for 16x64b, got 96");
  expectError(tmemRegisters(TmemShape::S16x256b, 128, 12),
              "expected n to be a positive multiple of 8, got 12");
  expectError(blocked({64, 40}, {1}, 4, {1, 0}),
              "expected shape, elements per thread and order of one rank, got "
              "2, 1 and 2");
  expectError(blocked({64, 40}, {1, 8}, 3, {1, 0}),
              "expected a power of two as number of warps, got 3");
  expectError(blocked({64, 40}, {1, 8}, 4, {1, 1}),
              "expected the order to be a permutation of 2 dimensions");
  expectError(blocked({64, 40}, {1, 5}, 4, {1, 0}),
              "expected a power of two of elements for each thread, got 5");
  expectError(blocked({64, 40}, {1, 16}, 4, {1, 0}),
              "expected the extent to be a positive multiple of 16, got 40");
}
