//===- SharedAccessTest.cpp - Vector access plans against brute force -----===//

#include "LayoutTesting.h"
#include "attn/Layout/BankConflicts.h"
#include "attn/Layout/NamedLayouts.h"
#include <map>
#include <set>

using namespace mlir::attn;
using namespace mlir::attn::testing;

/// Checks that a plan touches, for each register, the element's own bytes.
static void expectPlan(const VectorPlan &plan, const TileLayout &tile,
                       const SharedLayout &buffer) {
  std::set<unsigned> covered;
  for (const VectorAccess &access : plan.accesses)
    for (auto [slot, reg] : llvm::enumerate(access.registers)) {
      EXPECT_TRUE(covered.insert(reg).second);
      for (unsigned warp = 0; warp < tile.numWarps(); ++warp)
        for (unsigned lane = 0; lane < 32; ++lane) {
          int64_t address = access.address.evaluate(plan.forms, lane, warp);
          EXPECT_EQ(address % plan.bytes, 0);
          EXPECT_EQ(address + int64_t(slot) * buffer.elementBytes(),
                    buffer.offset(tile.coords({reg, lane, warp, 0})));
        }
    }
  for (auto [copy, original] : plan.copies) {
    EXPECT_TRUE(covered.insert(copy).second);
    EXPECT_EQ(tile.registerCoords(copy), tile.registerCoords(original));
  }
  EXPECT_EQ(covered.size(), tile.numRegisters());
}

TEST(SharedAccess, RandomTilesAnyBuffer) {
  Random random(1);
  for (unsigned round = 0; round < 300; ++round) {
    TileLayout tile =
        round % 2 ? randomPartialTile(random) : randomTile(random);
    int64_t rows = tile.shape()[0], cols = tile.shape()[1];
    unsigned bits = 8u << pick(random, 3);
    SharedLayout buffer = unwrap(SharedLayout::choose(rows, cols, bits));
    if (pick(random, 2))
      buffer = unwrap(SharedLayout::choose(cols, rows, bits)).transposed();
    expectPlan(unwrap(planSharedAccess(tile, buffer)), tile, buffer);
  }
}

TEST(SharedAccess, ViewsOfLargerBuffers) {
  // A 16x40 part at a multiple of its unit, inside a swizzled buffer.
  SharedLayout whole = unwrap(SharedLayout::choose(64, 128, 16));
  TileLayout tile = unwrap(mmaAccumulator(32, 40, {2, 1}));
  for (int64_t row : {0, 32})
    for (int64_t col : {0, 8, 24, 64, 88}) {
      SharedLayout view = unwrap(whole.subview({row, col}, {32, 40}));
      VectorPlan plan = unwrap(planSharedAccess(tile, view));
      EXPECT_EQ(plan.bytes, 4u);
      expectPlan(plan, tile, view);
    }
  expectError(planSharedAccess(tile, unwrap(whole.subview({8, 0}, {32, 40}))),
              "expected dim0 of the tile to start at a multiple of its unit in "
              "the buffer, got offset 8");
  expectError(planSharedAccess(tile, unwrap(whole.subview({0, 4}, {32, 40}))),
              "expected dim1 of the tile to start at a multiple of its unit in "
              "the buffer, got offset 4");
}

TEST(SharedAccess, ConstantsAreImmediatesWhereTheyCanBe) {
  // A full row of 256 columns in 8-column steps: only the 8 chunks of a span
  // collide with the row's XOR, the rest are immediates.
  SharedLayout buffer = unwrap(SharedLayout::choose(64, 256, 16));
  TileLayout tile = unwrap(mmaAccumulator(64, 256, {4, 1}));
  VectorPlan plan = unwrap(planSharedAccess(tile, buffer));
  EXPECT_EQ(plan.accesses.size(), 64u);
  EXPECT_EQ(plan.xorConstants().size(), 8u);
  // Without swizzle everything is an immediate.
  SharedLayout plain = unwrap(SharedLayout::swizzled(64, 256, 16, 0, 264));
  EXPECT_EQ(unwrap(planSharedAccess(tile, plain)).xorConstants().size(), 1u);
}

TEST(SharedAccess, LanesThatSwapNeighboursAreNotVectors) {
  // Registers 0 and 1 are neighbours, in the other order in odd lanes.
  TileLayout tile = unwrap(
      TileLayout::parse("{register: [0,1]; lane: [1,1] -> dim0: 2, dim1: 2}"));
  SharedLayout buffer = unwrap(SharedLayout::choose(2, 2, 16));
  VectorPlan plan = unwrap(planSharedAccess(tile, buffer));
  EXPECT_EQ(plan.bytes, 2u);
  expectPlan(plan, tile, buffer);
}

TEST(SharedAccess, BlockedRowsAreFreeOfConflicts) {
  for (int64_t cols : {16, 32, 40, 48, 64, 80, 96, 128, 192, 256}) {
    SharedLayout buffer = unwrap(SharedLayout::choose(64, cols, 16));
    TileLayout tile = unwrap(blocked({64, cols}, {1, 8}, 4, {1, 0}));
    VectorPlan plan = unwrap(planSharedAccess(tile, buffer));
    EXPECT_EQ(plan.bytes, 16u);
    expectPlan(plan, tile, buffer);
    EXPECT_EQ(countBankConflicts(plan, 4).conflicts(), 0u) << cols;
  }
}

TEST(SharedAccess, BitTerms) {
  Random random(2);
  for (unsigned round = 0; round < 200; ++round) {
    bool forXor = pick(random, 2);
    llvm::SmallVector<int64_t> constants;
    for (unsigned bit = 0; bit < 5; ++bit)
      constants.push_back(pick(random, 3) && bit ? 2 * constants.back()
                                                 : pick(random, 200));
    for (unsigned index = 0; index < 32; ++index) {
      int64_t expected = 0, got = 0;
      for (unsigned bit = 0; bit < 5; ++bit)
        if ((index >> bit) & 1)
          expected =
              forXor ? expected ^ constants[bit] : expected + constants[bit];
      for (const BitTerm &term : bitTerms(constants, forXor))
        got = forXor ? got ^ term.evaluate(index) : got + term.evaluate(index);
      EXPECT_EQ(got, expected);
    }
  }
  // A swizzled row: one multiplication.
  EXPECT_EQ(bitTerms({144, 288, 576, 0, 0}, true).size(), 1u);
  EXPECT_EQ(bitTerms({3, 6}, true).size(), 2u);
}

TEST(GlobalAccess, RunsOfEachThread) {
  Random random(3);
  for (unsigned round = 0; round < 200; ++round) {
    TileLayout tile =
        round % 2 ? randomPartialTile(random) : randomTile(random);
    unsigned dim = pick(random, 2), bits = 8u << pick(random, 3);
    GlobalPlan plan = unwrap(planGlobalAccess(tile, dim, bits));
    std::set<unsigned> covered;
    for (const GlobalAccess &access : plan.accesses)
      for (auto [slot, reg] : llvm::enumerate(access.registers)) {
        EXPECT_TRUE(covered.insert(reg).second);
        for (unsigned lane = 0; lane < 32; ++lane)
          for (unsigned warp = 0; warp < tile.numWarps(); ++warp) {
            Coords coords = access.coords;
            for (unsigned d = 0; d < 2; ++d) {
              for (unsigned bit = 0; bit < 5; ++bit)
                coords[d] += ((lane >> bit) & 1) * plan.laneBases[d][bit];
              for (unsigned bit = 0; bit < tile.warpBits(); ++bit)
                coords[d] += ((warp >> bit) & 1) * plan.warpBases[d][bit];
            }
            EXPECT_EQ(coords[dim] % plan.width, 0);
            coords[dim] += slot;
            EXPECT_EQ(coords, tile.coords({reg, lane, warp, 0}));
          }
      }
    EXPECT_EQ(covered.size() + plan.copies.size(), tile.numRegisters());
    EXPECT_LE(plan.width * bits, 128u);
  }
}

TEST(GlobalAccess, WidthsOfKnownTiles) {
  // Accumulator pairs: 4 bytes of 16-bit elements; a quad fills half a sector.
  GlobalPlan plan =
      unwrap(planGlobalAccess(unwrap(mmaAccumulator(64, 40, {4, 1})), 1, 16));
  EXPECT_EQ(plan.width, 2u);
  EXPECT_EQ(plan.accesses.size(), 10u);
  EXPECT_DOUBLE_EQ(plan.sectorEfficiency, 0.5);
  plan = unwrap(
      planGlobalAccess(unwrap(blocked({64, 96}, {1, 8}, 4, {1, 0})), 1, 16));
  EXPECT_EQ(plan.width, 8u);
  EXPECT_DOUBLE_EQ(plan.sectorEfficiency, 1.0);
}

TEST(BankConflicts, Counting) {
  llvm::SmallVector<int64_t, 32> addresses(32);
  auto count = [&](unsigned bytes, auto at) {
    for (int lane = 0; lane < 32; ++lane)
      addresses[lane] = at(lane);
    BankReport report = countBankConflicts(addresses, bytes);
    return std::pair(report.wavefronts, report.ideal);
  };
  using Pair = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(count(4, [](int lane) { return 4 * lane; }), Pair(1, 1));
  EXPECT_EQ(count(4, [](int) { return 0; }), Pair(1, 1));
  EXPECT_EQ(count(4, [](int lane) { return 8 * lane; }), Pair(2, 1));
  EXPECT_EQ(count(4, [](int lane) { return 128 * lane; }), Pair(32, 1));
  EXPECT_EQ(count(2, [](int lane) { return 2 * lane; }), Pair(1, 1));
  EXPECT_EQ(count(8, [](int lane) { return 8 * lane; }), Pair(2, 2));
  EXPECT_EQ(count(8, [](int lane) { return 16 * lane; }), Pair(4, 2));
  // Lanes of different halves never share a wavefront.
  EXPECT_EQ(count(8, [](int lane) { return 8 * (lane % 16); }), Pair(2, 2));
  EXPECT_EQ(count(16, [](int lane) { return 16 * lane; }), Pair(4, 4));
  EXPECT_EQ(count(16, [](int lane) { return 32 * lane; }), Pair(8, 4));
  // Lanes of different quarters never share a wavefront.
  EXPECT_EQ(count(16,
                  [](int lane) {
                    return lane % 4 * 16 + lane / 8 % 2 * 64 +
                           lane / 4 % 2 * 128;
                  }),
            Pair(8, 4));
  EXPECT_EQ(count(16, [](int lane) { return lane < 8 ? 16 * lane : -1; }),
            Pair(1, 1));
  for (int lane = 0; lane < 32; ++lane)
    addresses[lane] = 64 * lane;
  EXPECT_EQ(countMatrixConflicts(addresses).wavefronts, 16u);
  EXPECT_EQ(countMatrixConflicts(addresses).ideal, 4u);
}

TEST(SharedAccess, Errors) {
  TileLayout tile = unwrap(mmaAccumulator(16, 8, {1, 1}));
  SharedLayout buffer = unwrap(SharedLayout::choose(16, 8, 32));
  expectError(planSharedAccess(tile, unwrap(SharedLayout::choose(16, 16, 32))),
              "expected a buffer of the tile's shape 16x8, got 16x16");
  expectError(planSharedAccess(tile, buffer, 2),
              "expected an access of 4 to 16 bytes, got 2");
  expectError(planGlobalAccess(tile, 2, 16),
              "expected a dimension below 2, got 2");
  expectError(planGlobalAccess(tile, 1, 4),
              "expected elements of at least 8 bits in an access of up to 32 "
              "bytes, got 4 bits in 16 bytes");
  // Two lanes that move by 1 and by 3 along plain rows: no sum.
  TileLayout skewed = unwrap(
      TileLayout::parse("{register: ; lane: [1,0] [3,0] -> dim0: 4, dim1: 1}"));
  expectError(planGlobalAccess(skewed, 1, 16),
              "expected a tile whose coordinate bits have one source");
  expectError(planSharedAccess(skewed, unwrap(SharedLayout::choose(4, 1, 16))),
              "expected every bit of dim0 above 1 to have one source, got "
              "several threads' bits");
}
