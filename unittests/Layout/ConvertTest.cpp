//===- ConvertTest.cpp - Conversions, executed ----------------------------===//

#include "attn/Layout/Convert.h"
#include "LayoutTesting.h"
#include "attn/Layout/NamedLayouts.h"
#include <map>

using namespace mlir::attn;
using namespace mlir::attn::testing;

/// Values of all registers of a warp's lanes: [lane][register].
using WarpValues = std::vector<std::vector<int64_t>>;

static int64_t valueAt(const Coords &coords) {
  int64_t result = 1;
  for (int64_t coord : coords)
    result = 1000 * result + coord;
  return result;
}

/// The registers of a warp that holds its part of a tile.
static WarpValues fill(const TileLayout &tile, unsigned warp) {
  WarpValues values(32);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned reg = 0; reg < tile.numRegisters(); ++reg)
      values[lane].push_back(valueAt(tile.coords({reg, lane, warp, 0})));
  return values;
}

static WarpValues take(const WarpValues &values,
                       llvm::ArrayRef<unsigned> registers) {
  WarpValues result(32);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned reg : registers)
      result[lane].push_back(values[lane][reg]);
  return result;
}

static void runRound(WarpValues &values, const ShuffleRound &round) {
  WarpValues before = values;
  if (round.kind == ShuffleRound::Kind::Permute) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      unsigned from = 0;
      for (unsigned bit = 0; bit < 5; ++bit)
        if ((lane >> bit) & 1)
          from ^= round.sourceLanes[bit];
      values[lane] = before[from];
    }
    return;
  }
  unsigned mask = 1u << round.registerBit;
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned reg = 0; reg < values[lane].size(); ++reg) {
      if (reg & mask)
        continue;
      bool upper = (lane >> round.laneBit) & 1;
      unsigned partner = lane ^ (1u << round.laneBit);
      // Each lane gives one register of the pair and gets into the same one.
      unsigned mine = upper ? reg : reg ^ mask;
      unsigned theirs = upper ? reg ^ mask : reg;
      values[lane][mine] = before[partner][theirs];
    }
}

static void expectConversion(const ConversionPlan &plan,
                             const TileLayout &source,
                             const TileLayout &target) {
  if (plan.kind == ConversionKind::Scratch) {
    std::map<int64_t, int64_t> memory;
    int64_t elementBytes = plan.scratch.elementBytes();
    for (unsigned warp = 0; warp < source.numWarps(); ++warp)
      for (unsigned lane = 0; lane < 32; ++lane)
        for (const VectorAccess &access : plan.stores.accesses)
          for (auto [slot, reg] : llvm::enumerate(access.registers)) {
            int64_t at =
                access.address.evaluate(plan.stores.forms, lane, warp) +
                int64_t(slot) * elementBytes;
            EXPECT_LE(at + elementBytes, plan.scratchBytes());
            memory[at] = valueAt(source.coords({reg, lane, warp, 0}));
          }
    for (unsigned warp = 0; warp < target.numWarps(); ++warp)
      for (unsigned lane = 0; lane < 32; ++lane)
        for (const VectorAccess &access : plan.loads.accesses)
          for (auto [slot, reg] : llvm::enumerate(access.registers)) {
            int64_t at = access.address.evaluate(plan.loads.forms, lane, warp) +
                         int64_t(slot) * elementBytes;
            EXPECT_EQ(memory.at(at),
                      valueAt(target.coords({reg, lane, warp, 0})));
          }
    return;
  }
  EXPECT_EQ(plan.scratchBytes(), 0);
  for (unsigned warp = 0; warp < source.numWarps(); ++warp) {
    WarpValues values = take(fill(source, warp), plan.initialRegisters);
    for (const ShuffleRound &round : plan.rounds)
      runRound(values, round);
    if (plan.kind == ConversionKind::Shuffles)
      values = take(values, plan.finalRegisters);
    EXPECT_EQ(values, fill(target, warp));
  }
}

TEST(Convert, RandomLayoutsOfOneShape) {
  Random random(1);
  std::map<ConversionKind, unsigned> seen;
  for (unsigned round = 0; round < 500; ++round) {
    bool isPartial = round % 5 == 0;
    TileLayout source =
        isPartial ? randomPartialTile(random) : randomTile(random);
    // A layout of the same shape: the same unit with axes shuffled, or a
    // blocked one.
    TileLayout target;
    if (pick(random, 3) == 0 && !isPartial) {
      target = unwrap(blocked(source.shape(), {1, 1}, 4, {1, 0}));
    } else {
      std::vector<Coords> bases;
      LinearLayout unit = unwrap(LinearLayout::get(
          {{"dim0", source.unitShape()[0]}, {"dim1", source.unitShape()[1]}}));
      unsigned regBits = source.unit().axisBits(kRegisterAxis);
      llvm::SmallVector<Coords> lanes, registers, warps;
      for (unsigned bit = 0; bit < regBits; ++bit)
        bases.push_back(source.unit().basis(kRegisterAxis, bit));
      for (unsigned bit = 0; bit < 5; ++bit)
        bases.push_back(source.laneBasis(bit));
      for (unsigned bit = 0; bit < source.warpBits(); ++bit)
        warps.push_back(source.warpBasis(bit));
      // Sometimes registers change among themselves only.
      unsigned shuffled = pick(random, 8) ? bases.size() : regBits;
      std::shuffle(bases.begin(), bases.begin() + shuffled, random);
      lanes.append(bases.end() - 5, bases.end());
      registers.append(bases.begin(), bases.end() - 5);
      if (pick(random, 4) == 0)
        std::swap(lanes[0], warps[0]);
      ASSERT_FALSE(bool(unit.addAxis(kRegisterAxis, registers)));
      ASSERT_FALSE(bool(unit.addAxis(kLaneAxis, lanes)));
      ASSERT_FALSE(bool(unit.addAxis(kWarpAxis, warps)));
      target = unwrap(
          TileLayout::get(unit, source.repetitions(), source.numWarps()));
    }
    ConversionPlan plan = unwrap(planConversion(source, target, 32));
    ++seen[plan.kind];
    expectConversion(plan, source, target);
    auto within = planConversion(source, target, 32, /*allowScratch=*/false);
    if (within) {
      ++seen[within->kind];
      EXPECT_NE(within->kind, ConversionKind::Scratch);
      expectConversion(*within, source, target);
    } else {
      llvm::consumeError(within.takeError());
      EXPECT_EQ(plan.kind, ConversionKind::Scratch);
    }
  }
  // The test is only worth something when it sees every kind.
  EXPECT_GE(seen[ConversionKind::None], 3u);
  EXPECT_GE(seen[ConversionKind::Registers], 3u);
  EXPECT_GE(seen[ConversionKind::Shuffles], 40u);
  EXPECT_GE(seen[ConversionKind::Scratch], 40u);
}

TEST(Convert, AccumulatorToRowsOfSixteenBytes) {
  // 8 columns for each thread: the quad's two lane bits and two bits of the
  // n-tile number change places. No buffer takes their place, however cheap.
  for (int64_t n : {32, 96, 160, 224}) {
    TileLayout source = unwrap(mmaAccumulator(64, n, {4, 1}));
    TileLayout target = unwrap(TileLayout::parse(
        "{register: [0,1] [0,2] [0,4] [8,0]; lane: [0,8] [0,16] [1,0] [2,0] "
        "[4,0]; warp: [16,0] [32,0] -> dim0: 64, dim1: 32} * (dim1 x " +
        std::to_string(n / 32) + ")"));
    ConversionPlan plan = unwrap(planConversion(source, target, 16));
    EXPECT_EQ(plan.kind, ConversionKind::Shuffles);
    EXPECT_TRUE(plan.keepsPacks(2));
    EXPECT_EQ(plan.rounds.size(), 2u);
    EXPECT_EQ(plan.instructions, uint64_t(n / 4) * 3);
    expectConversion(plan, source, target);
  }
}

TEST(Convert, AccumulatorToRowsOfSixteenBytesOfPairs) {
  // Of 4 bits a word has two columns of two rows in each of two blocks of
  // columns.
  for (int64_t n : {128, 256}) {
    TileLayout source = unwrap(mmaAccumulator(16, n, {1, 1}));
    TileLayout target = unwrap(TileLayout::parse(
        "{register: [0,1] [0,2] [0,4] [0,8] [0,16] [8,0]; lane: [0,32] [0,64] "
        "[1,0] [2,0] [4,0] -> dim0: 16, dim1: 128} * (dim1 x " +
        std::to_string(n / 128) + ")"));
    ConversionPlan plan = unwrap(planConversion(source, target, 4));
    EXPECT_EQ(plan.kind, ConversionKind::Shuffles);
    EXPECT_TRUE(plan.movesPacks(8));
    EXPECT_FALSE(plan.keepsPacks(8));
    EXPECT_EQ(plan.rounds.size(), 2u);
    expectConversion(plan, source, target);
  }
}

TEST(Convert, AccumulatorToRowsOfSixteenBytesOfBytes) {
  // A word has two columns of two rows while lanes exchange it; behind that its
  // bytes go to runs of 16 columns.
  for (unsigned warps : {1, 4})
    for (int64_t n : {64, 128, 192}) {
      TileLayout source = unwrap(mmaAccumulator(16 * warps, n, {warps, 1}));
      TileLayout target = unwrap(TileLayout::parse(
          std::string("{register: [0,1] [0,2] [0,4] [0,8] [8,0]; lane: [0,16] "
                      "[0,32] [1,0] [2,0] [4,0]") +
          (warps == 1 ? " -> dim0: 16" : "; warp: [16,0] [32,0] -> dim0: 64") +
          ", dim1: 64} * (dim1 x " + std::to_string(n / 64) + ")"));
      ConversionPlan plan = unwrap(planConversion(source, target, 8));
      EXPECT_EQ(plan.kind, ConversionKind::Shuffles);
      EXPECT_TRUE(plan.movesPacks(4));
      EXPECT_FALSE(plan.keepsPacks(4));
      EXPECT_EQ(plan.rounds.size(), 2u);
      expectConversion(plan, source, target);
    }
}

TEST(Convert, AccumulatorToByteOperand) {
  TileLayout source = unwrap(mmaAccumulator(64, 96, {4, 1}));
  TileLayout target = unwrap(mmaOperandA(64, 96, 8, 32, {4, 1}));
  ConversionPlan plan = unwrap(planConversion(source, target, 8, false));
  EXPECT_EQ(plan.kind, ConversionKind::Shuffles);
  expectConversion(plan, source, target);
}

TEST(Convert, InPlaceAndRegisters) {
  TileLayout source = unwrap(mmaAccumulator(64, 80, {4, 1}));
  TileLayout operand = unwrap(mmaOperandA(64, 80, 16, 16, {4, 1}));
  EXPECT_EQ(unwrap(planConversion(source, operand, 16)).kind,
            ConversionKind::None);
  TileLayout permuted = unwrap(source.permuteRegisters({1, 0}, {0}));
  ConversionPlan plan = unwrap(planConversion(source, permuted, 16));
  EXPECT_EQ(plan.kind, ConversionKind::Registers);
  EXPECT_EQ(plan.cost, 0u);
  expectConversion(plan, source, permuted);
}

TEST(Convert, BetweenWarpsAtOddExtents) {
  for (int64_t n : {40, 80, 96, 144, 176, 192}) {
    TileLayout source = unwrap(mmaAccumulator(64, n, {4, 1}));
    TileLayout target = unwrap(blocked({64, n}, {1, 8}, 4, {1, 0}));
    ConversionPlan plan = unwrap(planConversion(source, target, 16));
    expectConversion(plan, source, target);
    // Where a row's columns are an odd number of 16 the layout gives a warp's
    // rows to that warp, and nothing leaves it.
    bool stays = n % 32 != 0 && n % 16 == 0;
    EXPECT_EQ(plan.kind == ConversionKind::Shuffles, stays) << n;
    EXPECT_EQ(plan.kind == ConversionKind::Scratch, !stays) << n;
    EXPECT_GE(plan.scratchBytes(), stays ? 0 : 64 * n * 2);
  }
  // Row statistics between layouts of one dimension.
  TileLayout rows = unwrap(unwrap(mmaAccumulator(64, 80, {4, 1})).slice(1));
  TileLayout other = unwrap(blocked({64}, {1}, 4, {0}));
  expectConversion(unwrap(planConversion(rows, other, 32)), rows, other);
}

TEST(Convert, Names) {
  EXPECT_EQ(stringifyConversionKind(ConversionKind::None), "none");
  EXPECT_EQ(stringifyConversionKind(ConversionKind::Registers), "registers");
  EXPECT_EQ(stringifyConversionKind(ConversionKind::Shuffles), "shuffles");
  EXPECT_EQ(stringifyConversionKind(ConversionKind::Scratch), "scratch");
}

TEST(Convert, Errors) {
  TileLayout tile = unwrap(mmaAccumulator(64, 64, {4, 1}));
  expectError(planConversion(tile, tile, 2),
              "expected elements of 4, 8, 16, 32, 64 or 128 bits, got 2");
  expectError(planConversion(tile, unwrap(tile.slice(1)), 16),
              "expected layouts of one shape to convert between");
  expectError(
      planConversion(tile, unwrap(mmaAccumulator(64, 64, {2, 1})), 16),
      "expected the same warps and blocks on both sides, got 4 and 2 warps, 1 "
      "and 1 blocks");
  expectError(
      planConversion(tile, unwrap(mmaAccumulator(64, 64, {2, 2})), 16, false),
      "expected a conversion inside each warp, got elements that have to pass "
      "through shared memory");
  TileLayout left = unwrap(
      TileLayout::parse("{register: [2,0]; block: [1,0] -> dim0: 4, dim1: 1}"));
  TileLayout right = unwrap(
      TileLayout::parse("{register: [1,0]; block: [2,0] -> dim0: 4, dim1: 1}"));
  expectError(planConversion(left, right, 16),
              "expected elements to stay in their block");
  TileLayout cube = unwrap(TileLayout::parse(
      "{lane: [1,0,0]; register: [0,1,0] -> dim0: 2, dim1: 2, dim2: 1}"));
  TileLayout other = unwrap(TileLayout::parse(
      "{register: [0,1,0] [1,0,0] -> dim0: 2, dim1: 2, dim2: 1}"));
  expectError(planConversion(cube, other, 16),
              "expected a tile of one or two dimensions to pass through shared "
              "memory, got 3");
}
