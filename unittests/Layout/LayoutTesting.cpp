//===- LayoutTesting.cpp - Helpers of the layout tests --------------------===//

#include "LayoutTesting.h"
#include <algorithm>

namespace mlir::attn::testing {

LinearLayout randomLayout(Random &random) {
  int64_t sizeX = int64_t(1) << pick(random, 5);
  int64_t sizeY = int64_t(1) << pick(random, 5);
  LinearLayout layout = unwrap(LinearLayout::get({{"x", sizeX}, {"y", sizeY}}));
  for (llvm::StringRef axis : {"a", "b", "c"}) {
    llvm::SmallVector<Coords> bases;
    for (unsigned bit = pick(random, 4); bit > 0; --bit)
      bases.push_back({pick(random, sizeX), pick(random, sizeY)});
    EXPECT_FALSE(bool(layout.addAxis(axis, bases)));
  }
  return layout;
}

LinearLayout randomBijection(Random &random) {
  while (true) {
    unsigned bitsX = pick(random, 4), bitsY = pick(random, 4);
    unsigned bitsA = pick(random, bitsX + bitsY + 1);
    LinearLayout layout = unwrap(LinearLayout::get(
        {{"x", int64_t(1) << bitsX}, {"y", int64_t(1) << bitsY}}));
    for (auto [axis, bits] :
         {std::pair("a", bitsA), std::pair("b", bitsX + bitsY - bitsA)}) {
      llvm::SmallVector<Coords> bases;
      for (unsigned bit = 0; bit < bits; ++bit)
        bases.push_back({pick(random, 1u << bitsX), pick(random, 1u << bitsY)});
      EXPECT_FALSE(bool(layout.addAxis(axis, bases)));
    }
    if (layout.isInvertible())
      return layout;
  }
}

TileLayout randomTile(Random &random) {
  unsigned bits[2] = {pick(random, 6), pick(random, 6)};
  std::vector<Coords> bases;
  for (unsigned dim = 0; dim < 2; ++dim)
    for (unsigned bit = 0; bit < bits[dim]; ++bit) {
      bases.emplace_back(2, 0);
      bases.back()[dim] = int64_t(1) << bit;
    }
  std::shuffle(bases.begin(), bases.end(), random);
  LinearLayout unit = unwrap(LinearLayout::get(
      {{"dim0", int64_t(1) << bits[0]}, {"dim1", int64_t(1) << bits[1]}}));
  llvm::SmallVector<Coords> lanes, warps, registers;
  for (const Coords &basis : bases) {
    unsigned choice = pick(random, 4);
    if (choice < 2 && lanes.size() < 5)
      lanes.push_back(basis);
    else if (choice == 2 && warps.size() < 2)
      warps.push_back(basis);
    else
      registers.push_back(basis);
  }
  while (lanes.size() < 5)
    lanes.insert(lanes.begin() + pick(random, lanes.size() + 1), Coords(2, 0));
  while (warps.size() < 2)
    warps.insert(warps.begin() + pick(random, warps.size() + 1), Coords(2, 0));
  EXPECT_FALSE(bool(unit.addAxis(kRegisterAxis, registers)));
  EXPECT_FALSE(bool(unit.addAxis(kLaneAxis, lanes)));
  EXPECT_FALSE(bool(unit.addAxis(kWarpAxis, warps)));
  llvm::SmallVector<Repetition> reps;
  for (unsigned i = pick(random, 4); i > 0; --i)
    reps.push_back({pick(random, 2), 1 + pick(random, 3)});
  return unwrap(TileLayout::get(unit, reps));
}

TileLayout randomPartialTile(Random &random) {
  TileLayout tile = randomTile(random);
  unsigned along = pick(random, 2),
           groups = llvm::ArrayRef<unsigned>({3, 5, 6, 7})[pick(random, 4)];
  unsigned bits = groups == 3 ? 2 : 3;
  Coords size = tile.unitShape();
  LinearLayout unit =
      unwrap(LinearLayout::get({{"dim0", size[0] << (along == 0 ? bits : 0)},
                                {"dim1", size[1] << (along == 1 ? bits : 0)}}));
  for (llvm::StringRef axis : {kRegisterAxis, kLaneAxis, kWarpAxis}) {
    llvm::SmallVector<Coords> bases;
    for (unsigned bit = 0; bit < tile.unit().axisBits(axis); ++bit)
      bases.push_back(tile.unit().basis(axis, bit));
    for (unsigned bit = 0; axis == kWarpAxis && bit < bits; ++bit) {
      bases.emplace_back(2, 0);
      bases.back()[along] = size[along] << bit;
    }
    EXPECT_FALSE(bool(unit.addAxis(axis, bases)));
  }
  llvm::SmallVector<Repetition> reps;
  for (const Repetition &rep : tile.repetitions())
    if (rep.dim != along)
      reps.push_back(rep);
  return unwrap(TileLayout::get(unit, reps, tile.numWarps() * groups));
}

std::vector<Coords> allCoords(llvm::ArrayRef<int64_t> shape) {
  std::vector<Coords> result = {Coords()};
  for (int64_t extent : shape) {
    std::vector<Coords> longer;
    for (const Coords &prefix : result)
      for (int64_t value = 0; value < extent; ++value) {
        longer.push_back(prefix);
        longer.back().push_back(value);
      }
    result = std::move(longer);
  }
  return result;
}

} // namespace mlir::attn::testing
