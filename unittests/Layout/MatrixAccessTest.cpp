//===- MatrixAccessTest.cpp - ldmatrix plans, executed --------------------===//

#include "LayoutTesting.h"
#include "attn/Layout/BankConflicts.h"
#include "attn/Layout/NamedLayouts.h"
#include <map>
#include <set>

using namespace mlir::attn;
using namespace mlir::attn::testing;

/// Executes the plan as the PTX ISA defines ldmatrix and checks that every
/// register gets its element.
static void expectPlan(const MatrixPlan &plan, const TileLayout &tile,
                       const SharedLayout &buffer) {
  std::map<int64_t, Coords> memory;
  for (const Coords &coords : allCoords(buffer.shape()))
    memory[buffer.offset(coords)] = coords;
  std::set<unsigned> covered;
  unsigned bytes = buffer.elementBytes();
  for (unsigned warp = 0; warp < tile.numWarps(); ++warp)
    for (const MatrixAccess &access : plan.accesses) {
      ASSERT_EQ(access.registers.size(), access.num * plan.elementsPerWord);
      int64_t rowAddress[32];
      for (unsigned lane = 0; lane < 32; ++lane) {
        rowAddress[lane] = access.address.evaluate(plan.forms, lane, warp);
        EXPECT_EQ(rowAddress[lane] % 16, 0);
        EXPECT_TRUE(memory.count(rowAddress[lane]));
      }
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned word = 0; word < access.num; ++word)
          for (unsigned e = 0; e < plan.elementsPerWord; ++e) {
            unsigned reg = access.registers[word * plan.elementsPerWord + e];
            if (lane == 0 && warp == 0) {
              EXPECT_TRUE(covered.insert(reg).second);
            }
            // Row and byte of the 8x8 matrix that lane gets.
            unsigned row = plan.trans ? 2 * (lane % 4) + e : lane / 4;
            unsigned byte =
                plan.trans ? 2 * (lane / 4) : 4 * (lane % 4) + e * bytes;
            int64_t address = rowAddress[8 * word + row] + byte;
            EXPECT_EQ(memory.at(address), tile.coords({reg, lane, warp, 0}));
          }
    }
  EXPECT_EQ(covered.size(), tile.numRegisters());
  for (unsigned reg = 0; reg < tile.numRegisters(); ++reg) {
    auto source = plan.sourceOf(reg);
    ASSERT_TRUE(source);
    EXPECT_EQ(
        plan.accesses[source->access]
            .registers[source->word * plan.elementsPerWord + source->element],
        reg);
  }
  EXPECT_FALSE(plan.sourceOf(tile.numRegisters()));
}

static std::map<unsigned, unsigned> countBySize(const MatrixPlan &plan) {
  std::map<unsigned, unsigned> result;
  for (const MatrixAccess &access : plan.accesses)
    ++result[access.num];
  return result;
}

using Counts = std::map<unsigned, unsigned>;

TEST(MatrixAccess, AllOperandsOfAttention) {
  for (int64_t d : {8, 16, 24, 40, 48, 64, 80, 96, 128, 192, 256})
    for (int64_t keys : {16, 48, 64, 80}) {
      WarpGrid grid{4, 1};
      unsigned shapeK = mmaShapeK(d, 16);
      SharedLayout qBuffer = unwrap(SharedLayout::choose(64, d, 16));
      SharedLayout kBuffer = unwrap(SharedLayout::choose(keys, d, 16));
      TileLayout q = unwrap(mmaOperandA(64, d, 16, shapeK, grid));
      TileLayout k = unwrap(mmaOperandB(d, keys, 16, shapeK, grid));
      TileLayout v = unwrap(mmaOperandB(keys, d, 16, 16, grid));
      MatrixPlan qPlan = unwrap(planMatrixAccess(q, qBuffer));
      MatrixPlan kPlan = unwrap(planMatrixAccess(k, kBuffer.transposed()));
      MatrixPlan vPlan = unwrap(planMatrixAccess(v, kBuffer));
      EXPECT_FALSE(qPlan.trans);
      EXPECT_FALSE(kPlan.trans);
      EXPECT_TRUE(vPlan.trans);
      expectPlan(qPlan, q, qBuffer);
      expectPlan(kPlan, k, kBuffer.transposed());
      expectPlan(vPlan, v, kBuffer);
      EXPECT_EQ(countBankConflicts(qPlan, 4).conflicts(), 0u) << d;
      EXPECT_EQ(countBankConflicts(kPlan, 4).conflicts(), 0u) << d;
      EXPECT_EQ(countBankConflicts(vPlan, 4).conflicts(), 0u) << d;
      // Whole instructions of four matrices, whatever the extents.
      unsigned kMatrices = d / 8 * (keys / 8);
      unsigned small =
          kMatrices % 4 ? kPlan.accesses.size() - kMatrices / 4 : 0;
      EXPECT_LE(small, 1u) << d << " " << keys;
      EXPECT_EQ(kPlan.accesses.size(), (kMatrices + 3) / 4);
    }
}

TEST(MatrixAccess, OrderAndAddressRegisters) {
  // K of a 64-key block, D = 128: 32 x4 loads, each the two k-halves of two
  // n-tiles; 4 address registers, everything else immediate.
  TileLayout k = unwrap(mmaOperandB(128, 64, 16, 16, {4, 1}));
  SharedLayout buffer = unwrap(SharedLayout::choose(64, 128, 16));
  MatrixPlan plan = unwrap(planMatrixAccess(k, buffer.transposed()));
  EXPECT_EQ(countBySize(plan), Counts({{4, 32}}));
  EXPECT_EQ(plan.forms.size(), 1u);
  std::set<int64_t> constants;
  for (const MatrixAccess &access : plan.accesses)
    constants.insert(access.address.xorConst);
  EXPECT_EQ(constants.size(), 4u);
  const MatrixAccess &first = plan.accesses.front();
  EXPECT_EQ(k.registerCoords(first.registers[0]), Coords({0, 0}));
  EXPECT_EQ(k.registerCoords(first.registers[2]), Coords({8, 0}));
  EXPECT_EQ(k.registerCoords(first.registers[4]), Coords({0, 8}));
  EXPECT_EQ(k.registerCoords(first.registers[6]), Coords({8, 8}));
  // A: one instruction is one fragment, in register order.
  TileLayout q = unwrap(mmaOperandA(64, 128, 16, 16, {4, 1}));
  MatrixPlan qPlan = unwrap(planMatrixAccess(q, buffer));
  for (auto [index, access] : llvm::enumerate(qPlan.accesses))
    for (auto [slot, reg] : llvm::enumerate(access.registers))
      EXPECT_EQ(reg, 8 * index + slot);
}

TEST(MatrixAccess, WordsFollowRegistersInAnyOrientation) {
  TileLayout k = unwrap(mmaOperandB(64, 32, 16, 16, {1, 1})).transposed({1, 0});
  SharedLayout buffer = unwrap(SharedLayout::choose(32, 64, 16));
  MatrixPlan plan = unwrap(planMatrixAccess(k, buffer));
  expectPlan(plan, k, buffer);
  for (const MatrixAccess &access : plan.accesses)
    EXPECT_TRUE(llvm::is_sorted(access.registers));
}

TEST(MatrixAccess, OddRemainders) {
  // 5 k-steps of 8 times 3 n-tiles: 15 matrices.
  TileLayout tile = unwrap(mmaOperandB(40, 24, 16, 8, {1, 1}));
  SharedLayout buffer = unwrap(SharedLayout::choose(24, 40, 16));
  MatrixPlan plan = unwrap(planMatrixAccess(tile, buffer.transposed()));
  expectPlan(plan, tile, buffer.transposed());
  EXPECT_EQ(countBySize(plan)[1] * 1 + countBySize(plan)[2] * 2 +
                countBySize(plan)[4] * 4,
            15u);
  TileLayout one = unwrap(mmaOperandB(8, 8, 16, 8, {1, 1}));
  SharedLayout small = unwrap(SharedLayout::choose(8, 8, 16));
  EXPECT_EQ(countBySize(unwrap(planMatrixAccess(one, small))),
            Counts({{1, 1}}));
  MatrixPlan pairs = unwrap(planMatrixAccess(tile, buffer.transposed(), 2));
  expectPlan(pairs, tile, buffer.transposed());
  EXPECT_EQ(countBySize(pairs).count(4), 0u);
}

TEST(MatrixAccess, BytesAndWarpGrids) {
  WarpGrid grid{2, 2};
  TileLayout a = unwrap(mmaOperandA(64, 96, 8, 32, grid));
  SharedLayout buffer = unwrap(SharedLayout::choose(64, 96, 8));
  MatrixPlan plan = unwrap(planMatrixAccess(a, buffer));
  EXPECT_EQ(plan.elementsPerWord, 4u);
  expectPlan(plan, a, buffer);
  EXPECT_EQ(plan.warpBroadcastMask, 0b10u);
  TileLayout v = unwrap(mmaOperandB(48, 96, 16, 16, grid));
  SharedLayout vBuffer = unwrap(SharedLayout::choose(48, 96, 16));
  expectPlan(unwrap(planMatrixAccess(v, vBuffer)), v, vBuffer);
}

TEST(MatrixAccess, PairsOfValues) {
  // 8-bit values as pairs along their columns: transposed, without conflicts.
  for (int64_t d : {32, 64, 96, 128, 256}) {
    SharedLayout buffer =
        unwrap(unwrap(SharedLayout::choose(32, d, 8)).inPairs());
    TileLayout pairs = unwrap(mmaOperandB(32, d / 2, 16, 16, {1, 1}));
    MatrixPlan plan = unwrap(planMatrixAccess(pairs, buffer));
    EXPECT_TRUE(plan.trans);
    EXPECT_EQ(plan.elementsPerWord, 2u);
    expectPlan(plan, pairs, buffer);
    EXPECT_EQ(countBankConflicts(plan, 2).conflicts(), 0u);
  }
}

TEST(MatrixAccess, StoresOfAccumulators) {
  for (int64_t d : {40, 64, 80, 128}) {
    TileLayout tile = unwrap(mmaAccumulator(64, d, {4, 1}));
    SharedLayout buffer = unwrap(SharedLayout::choose(64, d, 16));
    MatrixPlan plan = unwrap(planMatrixAccess(tile, buffer));
    EXPECT_FALSE(plan.trans);
    expectPlan(plan, tile, buffer);
    EXPECT_EQ(countBankConflicts(plan, 4).conflicts(), 0u);
    MatrixPlan across = unwrap(planMatrixAccess(
        tile, unwrap(SharedLayout::choose(d, 64, 16)).transposed()));
    EXPECT_TRUE(across.trans);
    EXPECT_EQ(countBankConflicts(across, 4).conflicts(), 0u);
  }
}

TEST(MatrixAccess, ViewsOfKeys) {
  // Keys 16 ... 63 and columns 64 ... 103 of a larger buffer.
  SharedLayout whole = unwrap(SharedLayout::choose(96, 128, 16));
  SharedLayout view = unwrap(whole.subview({16, 64}, {48, 40}));
  TileLayout v = unwrap(mmaOperandB(48, 40, 16, 16, {1, 1}));
  expectPlan(unwrap(planMatrixAccess(v, view)), v, view);
  SharedLayout skewed = unwrap(whole.subview({4, 64}, {48, 40}));
  expectError(planMatrixAccess(v, skewed),
              "expected dim0 of the tile's matrices to start at a multiple of "
              "its unit in the buffer, got offset 4");
}

TEST(MatrixAccess, Errors) {
  TileLayout tile = unwrap(mmaAccumulator(16, 16, {1, 1}));
  auto plain = [](int64_t rows, int64_t cols, unsigned bits, int64_t pitch) {
    return unwrap(SharedLayout::swizzled(rows, cols, bits, 0, pitch));
  };
  expectError(planMatrixAccess(tile, plain(16, 16, 16, 0), 3),
              "expected 1, 2 or 4 matrices, got 3");
  expectError(planMatrixAccess(tile, plain(16, 32, 16, 0)),
              "expected a buffer of the tile's shape");
  expectError(planMatrixAccess(tile, plain(16, 16, 64, 0)),
              "expected elements of at most 32 bits, got 64");
  expectError(planMatrixAccess(tile, plain(16, 16, 16, 20)),
              "expected rows of 16 contiguous bytes in the buffer, got 8");
  expectError(planMatrixAccess(tile, plain(16, 16, 32, 0)),
              "expected lanes that hold 8x8 matrices of 16-bit elements along "
              "or across the buffer's rows");
  TileLayout line = unwrap(tile.slice(1));
  expectError(planMatrixAccess(line, unwrap(SharedLayout::linear(16, 16))),
              "expected a tile and a buffer of two dimensions, got 1 and 1");
  TileLayout copies = unwrap(TileLayout::parse(
      "{register: [0,0] [0,1]; lane: [0,2] [0,4] [1,0] [2,0] [4,0] -> dim0: 8, "
      "dim1: 8}"));
  expectError(planMatrixAccess(copies, plain(8, 8, 16, 0)),
              "expected a tile without copies in registers");
  TileLayout inside = unwrap(TileLayout::parse(
      "{register: [0,1] [0,2]; lane: [0,2] [0,4] [1,0] [2,0] [4,0] -> dim0: 8, "
      "dim1: 8}"));
  expectError(planMatrixAccess(inside, plain(8, 8, 16, 0)),
              "expected registers at the corners of 8x8 matrices");
  TileLayout split = unwrap(TileLayout::parse(
      "{lane: [0,2] [0,4] [1,0] [2,0] [4,0]; warp: [0,1] -> dim0: 8, dim1: "
      "8}"));
  expectError(planMatrixAccess(split, plain(8, 8, 16, 0)),
              "expected each thread to hold 2 elements of a word");
}
