//===- TileLayoutTest.cpp - Register tiles against brute force ------------===//

#include "attn/Layout/TileLayout.h"
#include "LayoutTesting.h"
#include "attn/Layout/NamedLayouts.h"
#include <map>
#include <set>

using namespace mlir::attn;
using namespace mlir::attn::testing;

/// The definition in TileLayout.h, written out.
static Coords expectedCoords(const TileLayout &tile, TileIndex index) {
  unsigned inUnit = index.reg % tile.numUnitRegisters();
  unsigned rest = index.reg / tile.numUnitRegisters();
  Coords result =
      tile.unit().apply({inUnit, index.lane, index.warp, index.block});
  Coords stride = tile.unitShape();
  for (const Repetition &rep : tile.repetitions()) {
    result[rep.dim] += stride[rep.dim] * (rest % rep.count);
    stride[rep.dim] *= rep.count;
    rest /= rep.count;
  }
  return result;
}

template <typename Visit>
static void forEachPlace(const TileLayout &tile, Visit visit) {
  for (unsigned warp = 0; warp < tile.numWarps(); ++warp)
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned reg = 0; reg < tile.numRegisters(); ++reg)
        visit(TileIndex{reg, lane, warp, 0});
}

static Coords dropped(Coords coords, unsigned dim) {
  coords.erase(coords.begin() + dim);
  return coords;
}

TEST(TileLayout, CoordsCoverTheShape) {
  Random random(1);
  for (unsigned round = 0; round < 120; ++round) {
    TileLayout tile =
        round % 2 ? randomPartialTile(random) : randomTile(random);
    std::set<Coords> seen;
    unsigned lanes = tile.laneBroadcastMask(), warps = tile.warpBroadcastMask();
    forEachPlace(tile, [&](TileIndex index) {
      Coords coords = tile.coords(index);
      EXPECT_EQ(coords, expectedCoords(tile, index));
      bool isNew = seen.insert(coords).second;
      EXPECT_EQ(isNew, !(index.lane & lanes) && !(index.warp & warps));
    });
    EXPECT_EQ(seen.size(), size_t(tile.numElements()));
    EXPECT_TRUE(tile.isDisjoint());
    for (const Coords &coords : allCoords(tile.shape())) {
      std::optional<TileIndex> place = tile.find(coords);
      ASSERT_TRUE(place);
      EXPECT_EQ(tile.coords(*place), coords);
      EXPECT_EQ(place->lane & lanes, 0u);
      EXPECT_EQ(place->warp & warps, 0u);
    }
    EXPECT_FALSE(tile.find({tile.shape()[0], 0}));
    EXPECT_FALSE(tile.find({0, -1}));
    EXPECT_FALSE(tile.find({0}));
  }
}

TEST(TileLayout, SliceIsAReduction) {
  Random random(2);
  for (unsigned round = 0; round < 120; ++round) {
    TileLayout tile =
        round % 2 ? randomPartialTile(random) : randomTile(random);
    for (unsigned dim = 0; dim < 2; ++dim) {
      TileLayout slice = unwrap(tile.slice(dim));
      EXPECT_EQ(slice.numWarps(), tile.numWarps());
      auto registers = tile.sliceRegisters(dim);
      EXPECT_EQ(slice.shape(), dropped(tile.shape(), dim));
      forEachPlace(tile, [&](TileIndex index) {
        TileIndex there = index;
        there.reg = registers[index.reg];
        EXPECT_EQ(slice.coords(there), dropped(tile.coords(index), dim));
      });
      // No register of the slice repeats another one.
      std::set<Coords> seen;
      for (unsigned reg = 0; reg < slice.numRegisters(); ++reg)
        EXPECT_TRUE(seen.insert(slice.registerCoords(reg)).second);
      // Executed: sum over registers, then butterflies over the lane and warp
      // bits, gives every thread the sums of its rows.
      // Not so along the dimension on which not all warps exist.
      bool isWhole = tile.unitShape()[dim] <= tile.shape()[dim];
      ASSERT_EQ(tile.isSeparable(dim), isWhole);
      if (!isWhole)
        continue;
      auto value = [](const Coords &coords) {
        return 1 + 1000 * coords[0] + 7 * coords[1] * coords[1];
      };
      std::map<Coords, int64_t> expected;
      for (const Coords &coords : allCoords(tile.shape()))
        expected[dropped(coords, dim)] += value(coords);
      unsigned threads = 32 * tile.numWarps();
      std::vector<std::vector<int64_t>> partial(
          threads, std::vector<int64_t>(slice.numRegisters(), 0));
      forEachPlace(tile, [&](TileIndex index) {
        partial[32 * index.warp + index.lane][registers[index.reg]] +=
            value(tile.coords(index));
      });
      auto butterfly = [&](unsigned threadMask) {
        auto before = partial;
        for (unsigned thread = 0; thread < threads; ++thread)
          for (unsigned reg = 0; reg < slice.numRegisters(); ++reg)
            partial[thread][reg] += before[thread ^ threadMask][reg];
      };
      for (unsigned bit : tile.laneBitsAlong(dim))
        butterfly(1u << bit);
      for (unsigned bit : tile.warpBitsAlong(dim))
        butterfly(32u << bit);
      forEachPlace(slice, [&](TileIndex index) {
        EXPECT_EQ(partial[32 * index.warp + index.lane][index.reg],
                  expected[slice.coords(index)]);
      });
    }
  }
}

TEST(TileLayout, DiagonalLanesAreNotSeparable) {
  TileLayout tile = unwrap(TileLayout::parse(
      "{register: [0,1]; lane: [1,1] [2,0] -> dim0: 4, dim1: 2}"));
  EXPECT_FALSE(tile.isSeparable(0));
  EXPECT_FALSE(tile.isSeparable(1));
  EXPECT_FALSE(tile.isDisjoint());
}

TEST(TileLayout, ContiguityAlongBothDimensions) {
  Random random(3);
  for (unsigned round = 0; round < 60; ++round) {
    TileLayout tile = randomTile(random);
    for (unsigned dim = 0; dim < 2; ++dim) {
      unsigned width = tile.contiguity(dim);
      auto contiguous = [&](unsigned width) {
        if (tile.numRegisters() % width)
          return false;
        bool result = true;
        forEachPlace(tile, [&](TileIndex index) {
          TileIndex first = index;
          first.reg -= index.reg % width;
          Coords expected = tile.coords(first);
          result &= expected[dim] % width == 0;
          expected[dim] += index.reg % width;
          result &= tile.coords(index) == expected;
        });
        return result;
      };
      EXPECT_TRUE(contiguous(width));
      EXPECT_FALSE(contiguous(2 * width));
    }
  }
}

TEST(TileLayout, PermutedRegistersHoldTheSame) {
  Random random(4);
  for (unsigned round = 0; round < 120; ++round) {
    TileLayout tile =
        round % 2 ? randomPartialTile(random) : randomTile(random);
    llvm::SmallVector<unsigned> bits, order;
    for (unsigned bit = 0; bit < tile.unit().axisBits(kRegisterAxis); ++bit)
      bits.push_back(bit);
    std::shuffle(bits.begin(), bits.end(), random);
    // Repetitions along dim1 before those along dim0.
    for (unsigned dim : {1, 0})
      for (unsigned i = 0; i < tile.repetitions().size(); ++i)
        if (tile.repetitions()[i].dim == dim)
          order.push_back(i);
    TileLayout permuted = unwrap(tile.permuteRegisters(bits, order));
    EXPECT_TRUE(tile.sameUpToRegisters(permuted));
    auto registers = permuted.registersFrom(tile);
    ASSERT_TRUE(registers);
    forEachPlace(permuted, [&](TileIndex index) {
      TileIndex source = index;
      source.reg = (*registers)[index.reg];
      EXPECT_EQ(permuted.coords(index), tile.coords(source));
    });
    EXPECT_EQ(tile.canonical().registersFrom(tile), tile.registersFrom(tile));
    TileLayout swapped = tile.transposed({1, 0});
    EXPECT_EQ(swapped.transposed({1, 0}), tile);
    forEachPlace(tile, [&](TileIndex index) {
      Coords coords = tile.coords(index);
      EXPECT_EQ(swapped.coords(index), Coords({coords[1], coords[0]}));
    });
  }
}

TEST(TileLayout, CanonicalFormsMeet) {
  TileLayout a = unwrap(TileLayout::parse(
      "{register: [1,0]; lane: -> dim0: 2, dim1: 1} * (dim1 x 2, dim1 x 6)"));
  TileLayout b = unwrap(TileLayout::parse(
      "{register: [1,0] [0,1] [0,2]; lane: -> dim0: 2, dim1: 4} * (dim1 x 3)"));
  EXPECT_NE(a, b);
  EXPECT_EQ(a.canonical(), b.canonical());
}

TEST(TileLayout, OtherThreadsAreNotRegisters) {
  TileLayout rows = unwrap(blocked({64, 40}, {1, 8}, 2, {1, 0}));
  TileLayout cols = unwrap(blocked({64, 40}, {8, 1}, 2, {0, 1}));
  EXPECT_FALSE(rows.registersFrom(cols));
  EXPECT_FALSE(rows.sameUpToRegisters(cols));
  EXPECT_FALSE(
      rows.registersFrom(unwrap(blocked({64, 48}, {1, 8}, 2, {1, 0}))));
  EXPECT_FALSE(
      rows.registersFrom(unwrap(blocked({64, 40}, {1, 8}, 4, {1, 0}))));
}

TEST(TileLayout, TextRoundTrip) {
  Random random(5);
  for (unsigned round = 0; round < 50; ++round) {
    TileLayout tile = randomTile(random);
    EXPECT_EQ(unwrap(TileLayout::parse(tile.str())), tile);
    tile = randomPartialTile(random);
    EXPECT_EQ(unwrap(TileLayout::parse(tile.str())), tile);
  }
  EXPECT_EQ(unwrap(mmaAccumulator(48, 8, {3, 1})).str(),
            "{register: [0,1] [8,0]; lane: [0,2] [0,4] [1,0] [2,0] [4,0]; "
            "warp: [16,0] [32,0]; block: -> dim0: 64, dim1: 8} of 3 warps");
  EXPECT_EQ(unwrap(mmaAccumulator(32, 40, {1, 1})).str(),
            "{register: [0,1] [8,0]; lane: [0,2] [0,4] [1,0] [2,0] [4,0]; "
            "warp:; block: -> dim0: 16, dim1: 8} * (dim1 x 5, dim0 x 2)");
}

TEST(TileLayout, ConstructionErrors) {
  auto parse = [](llvm::StringRef text) { return TileLayout::parse(text); };
  expectError(parse("{lane: -> dim1: 1}"),
              "expected dimension 0 to be 'dim0', got 'dim1'");
  expectError(parse("{thread: -> dim0: 1}"),
              "expected an axis among register, lane, warp, block, got "
              "'thread'");
  expectError(parse("{lane: [1] [2] [4] [8] [16] [32] -> dim0: 64}"),
              "expected at most 32 lanes, got 64");
  std::string many = "{register:";
  for (unsigned bit = 0; bit < 17; ++bit)
    many += " [0]";
  expectError(parse(many + " -> dim0: 1}"),
              "expected at most 65536 registers, got 131072");
  expectError(parse("{lane: [1] -> dim0: 4}"),
              "expected the unit to hold every element, got rank 1 of 2 bits");
  expectError(parse("{lane: -> dim0: 1} * (dim1 x 2)"),
              "expected a dimension of the unit at character 27 of the layout, "
              "got 'x 2)'");
  expectError(parse("{lane: -> dim0: 1} * (dim0 x 0)"),
              "expected a positive repetition count, got 0");
  expectError(parse("{lane: -> dim0: 1} * (dim0 x 70000)"),
              "expected at most 65536 registers, got 1 x 70000");
  expectError(parse("{lane: -> dim0: 1} * (row x 2)"),
              "expected 'dim' at character 22 of the layout, got 'row x 2)'");
  expectError(parse("{lane: -> dim0: 1} +"),
              "expected the end at character 19 of the layout, got '+'");
  std::string warps = "{warp: [1,0] [2,0] -> dim0: 4, dim1: 1}";
  EXPECT_EQ(unwrap(parse(warps + " * (dim1 x 5) of 3 warps")).shape(),
            Coords({3, 5}));
  EXPECT_EQ(unwrap(parse("{warp: [0] [0] -> dim0: 1} of 3 warps")).shape(),
            Coords({1}));
  expectError(parse(warps + " of 2 warps"),
              "expected more than half of the unit's 4 warps, got 2");
  expectError(parse(warps + " of 5 warps"),
              "expected more than half of the unit's 4 warps, got 5");
  expectError(parse(warps + " of 0 warps"), "expected 1 to 32 warps, got 0");
  expectError(parse(warps + " * (dim0 x 2) of 3 warps"),
              "expected no repetition along dim0, which 3 warps share, no "
              "power of two");
  expectError(parse("{warp: [2] [1] -> dim0: 4} of 3 warps"),
              "expected warp bits 0 to 1 of 3 warps to count along one "
              "dimension");
  expectError(parse("{warp: [1,0] [2,0]; lane: [4,0] -> dim0: 8, dim1: 1} of 3 "
                    "warps"),
              "expected 3 warps to be alone at the end of dim0");
  expectError(parse("{warp: [1,1] [2,2] -> dim0: 4, dim1: 4} of 3 warps"),
              "expected the unit to hold every element, got rank 2 of 4 bits");
  expectError(
      TileLayout::get(LinearLayout::identity("lane", 2, "dim0"), {{3, 2}}),
      "expected a repetition along one of 1 dimensions, got dim3");
}

TEST(TileLayout, QueryErrors) {
  TileLayout tile = unwrap(mmaAccumulator(32, 40, {1, 1}));
  expectError(tile.slice(2), "expected a dimension below 2, got 2");
  expectError(tile.permuteRegisters({0, 0}, {0, 1}),
              "expected a permutation of 2 register bits");
  expectError(tile.permuteRegisters({1, 0}, {0}),
              "expected a permutation of 2 repetitions");
  TileLayout nested =
      unwrap(TileLayout::parse("{lane: -> dim0: 1} * (dim0 x 2, dim0 x 3)"));
  expectError(nested.permuteRegisters({}, {1, 0}),
              "expected repetitions of dim0 to keep their order");
  EXPECT_TRUE(nested.sliceRegisters(1).empty());
}
