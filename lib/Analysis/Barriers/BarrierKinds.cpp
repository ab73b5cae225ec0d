//===- BarrierKinds.cpp - Which tiles there are, and their kinds ----------===//
//
// A tile matters by what conditions, bounds and slots are computed from: tiles
// with the same numbers there are of one kind. So does a block, in what is not
// computed from its tiles.
//
//===----------------------------------------------------------------------===//

#include "../Tiles/LaunchNumbers.h"
#include "../Tiles/ValueForms.h"
#include "BarrierCompiler.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

static LaunchShape getShape(const Program &program) {
  return {program.grid, program.cluster};
}

/// Tiles of a launch with more of them are not followed one after the other.
static constexpr int64_t kMostReplayed = 1 << 16;

//===----------------------------------------------------------------------===//
// Which tiles there are
//===----------------------------------------------------------------------===//

/// What numbers the tiles of a loop that counts those of its CTA and does not
/// need their numbers, so that they are not known by their uses: how many a CTA
/// has is the launch's, and no part of a proof.
Value Compiler::findDistinctNumber(scf::ForOp loop) {
  Value count = loop.getUpperBound();
  auto isNumber = [&](Value value) { return value == loop.getInductionVar(); };
  if (program.grid[0] <= 0 || !reaches(count, isGridSize, isNothing) ||
      !reaches(count, isBlockNumber, isNothing))
    return Value();
  LaunchNumbers values(getShape(program));
  for (Operation &op : *loop.getBody()) {
    if (op.getNumRegions() != 0 || op.getNumResults() != 1 ||
        !op.getResult(0).getType().isSignlessInteger() ||
        !reaches(op.getResult(0), isBlockNumber, isNothing) ||
        !reaches(op.getResult(0), isNumber, isNothing) ||
        !isTile(loop, op.getResult(0)))
      continue;
    TileSet tiles;
    bool isDistinct = true;
    for (int64_t block = 0; isDistinct && block < program.grid[0];
         block += program.cluster) {
      auto walked = llvm::expectedToOptional(
          walkTiles(values, loop, op.getResult(0), block));
      isDistinct = walked.has_value();
      if (walked)
        tiles.add(*walked);
    }
    isDistinct = isDistinct && tiles.areDistinct().value_or(false);
    if (isDistinct)
      return op.getResult(0);
  }
  return Value();
}

/// Tiles that are dealt are those below a bound, which is the same for all
/// CTAs. The first one of each CTA is the same in all of its cluster.
void Compiler::countDealtTiles(scf::WhileOp loop, TileSet &tiles) {
  Value tile = tileValues.lookup(loop);
  auto argument = cast<BlockArgument>(tile);
  Value first = loop.getInits()[argument.getArgNumber()];
  auto compare =
      loop.getConditionOp().getCondition().getDefiningOp<arith::CmpIOp>();
  // A negative number is no tile to an unsigned comparison.
  bool isBelow = compare && compare.getLhs() == tile &&
                 (compare.getPredicate() == arith::CmpIPredicate::ult ||
                  (compare.getPredicate() == arith::CmpIPredicate::slt &&
                   program.areTilesCounts));
  LaunchNumbers values(getShape(program));
  std::optional<int64_t> bound, ofCluster;
  for (int64_t block = 0; isBelow && block < program.grid[0]; ++block) {
    values.start({block, 0, 0});
    if (values.isExhausted())
      return fail(loop, "how many tiles there are is not known");
    std::optional<int64_t> own = values.get(compare.getRhs());
    isBelow = own && (!bound || *bound == *own);
    bound = own;
    std::optional<int64_t> number = values.get(first);
    if (!number)
      return fail(loop, "its first tile is not known");
    if (block % program.cluster != 0 && *number != *ofCluster)
      return fail(loop, kUnlikeRanks.str());
    ofCluster = number;
  }
  if (!isBelow || !bound)
    return fail(loop, "how many tiles there are is not known");
  tiles.addBelow(*bound);
}

/// The numbers of all tiles that some CTA of the grid may take.
void Compiler::enumerateTiles(Operation *op, TileSet &tiles) {
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return countDealtTiles(loop, tiles);
  auto loop = cast<scf::ForOp>(op);
  Value tile = tileValues.lookup(op);
  LaunchNumbers values(getShape(program));
  WalkedTiles ofCluster;
  for (int64_t block = 0; block < program.grid[0]; ++block) {
    auto walked = walkTiles(values, loop, tile, block);
    if (!walked)
      return fail(op, llvm::toString(walked.takeError()));
    if (block % program.cluster != 0) {
      if (!walked->areSame(ofCluster))
        return fail(op, kUnlikeRanks.str());
      continue;
    }
    ofCluster = *walked;
    tiles.add(ofCluster);
  }
  // No tile is walked twice.
  std::optional<bool> areDistinct = tiles.areDistinct();
  if (!areDistinct)
    return fail(op, kManyKinds.str());
  if (!*areDistinct)
    fail(op, "a tile comes twice");
}

/// Which numbers tiles may have that are unknown otherwise. That it is not
/// known stands in the way of nothing.
void Compiler::boundTiles() {
  TileSet tiles;
  enumerateTiles(tileValues.begin()->first, tiles);
  if (!unsupportedOp && tiles.size() > 0)
    program.tileRange = {tiles.getLeast(), tiles.getGreatest()};
  unsupportedOp.reset();
}

/// Partitions that compute their tiles in different ways may walk different
/// ones. Where the launch says which, loops over tiles are loops as any other:
/// each kind of CTA is run to its end, which shows whether it matters.
void Compiler::compareTiles() {
  auto other = dyn_cast<scf::ForOp>(tileValues.begin()->first);
  LaunchNumbers values(getShape(program));
  int64_t fewest = INT64_MAX;
  bool isKnown = other && !program.isOpen && program.grid[0] > 0 &&
                 llvm::all_of(tileValues,
                              [](auto &t) { return isa<scf::ForOp>(t.first); });
  for (int64_t block = 0; isKnown && block < program.grid[0]; ++block) {
    auto ours = llvm::expectedToOptional(
        walkTiles(values, unlikeLoop, tileValues.lookup(unlikeLoop), block));
    auto theirs = llvm::expectedToOptional(
        walkTiles(values, other, tileValues.lookup(other), block));
    isKnown = ours && theirs;
    if (!isKnown || ours->areSame(*theirs) ||
        std::max(ours->count, theirs->count) >= fewest)
      continue;
    fewest = std::max(ours->count, theirs->count);
    program.unlikeTiles = {
        {other, describeTiles(other, *theirs, block)},
        {unlikeLoop, describeTiles(unlikeLoop, *ours, block)}};
  }
  if (!isKnown)
    return fail(unlikeLoop, kUnlikeTiles.str());
  program.unlikeLoop = unlikeLoop;
  hasSeveralLoops = true;
}

//===----------------------------------------------------------------------===//
// Kinds of tiles
//===----------------------------------------------------------------------===//

/// True for what stands for the tile: its value, and in the body of a while
/// loop what that is there.
static bool isTileNumber(Operation *op, Value tile, Value value) {
  if (value == tile)
    return true;
  auto loop = dyn_cast<scf::WhileOp>(op);
  return loop && llvm::any_of(llvm::zip(loop.getConditionOp().getArgs(),
                                        loop.getAfterArguments()),
                              [&](auto pair) {
                                return std::get<0>(pair) == tile &&
                                       std::get<1>(pair) == value;
                              });
}

/// The values that stand for the tile in a loop over tiles.
static SmallVector<Value> getTileNumbers(Operation *op, Value tile) {
  SmallVector<Value> numbers = {tile};
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    llvm::copy_if(loop.getAfterArguments(), std::back_inserter(numbers),
                  [&](Value value) { return isTileNumber(op, tile, value); });
  return numbers;
}

/// The values at the top of a tile's body that are computed from the tile, and
/// that what matters is computed from. What comes from the tile before has been
/// computed there.
SmallVector<Compiler::TileKey> Compiler::collectKeys(Operation *loop) {
  Value tile = tileValues.lookup(loop);
  auto isTileValue = [&](Value value) { return value == tile; };
  Block *body = isa<scf::ForOp>(loop) ? cast<scf::ForOp>(loop).getBody()
                                      : cast<scf::WhileOp>(loop).getAfterBody();
  llvm::DenseMap<Value, bool> carried;
  auto isCarried = [&](Value value) {
    auto [known, isNew] = carried.try_emplace(value);
    if (isNew) {
      bool isFromBefore = reaches(
          value,
          [&](Value source) {
            auto argument = dyn_cast<BlockArgument>(source);
            return argument && argument.getOwner() == body &&
                   !isTileNumber(loop, tile, source);
          },
          isTileValue);
      carried[value] = isFromBefore;
      return isFromBefore;
    }
    return known->second;
  };
  SmallVector<TileKey> keys;
  llvm::DenseSet<std::pair<Value, Operation *>> seen;
  for (auto &[op, root] : roots) {
    if (!loop->isProperAncestor(op))
      continue;
    SmallVector<TileKey> worklist = {{root, std::nullopt}};
    while (!worklist.empty()) {
      TileKey key = worklist.pop_back_val();
      Operation *decides = key.decision ? key.decision->op : nullptr;
      if (!seen.insert({key.value, decides}).second ||
          !reaches(key.value, isTileValue, isNothing))
        continue;
      Operation *def = key.value.getDefiningOp();
      if (key.value == tile ||
          (def && def->getBlock() == body && def->getNumRegions() == 0 &&
           !isCarried(key.value))) {
        keys.push_back(key);
        continue;
      }
      for (Value source : sourcesOf(key.value)) {
        // What is decided of a copy is decided of what is copied.
        std::optional<Decision> decision = getDecision(def, source);
        bool isCopy = llvm::is_contained(flow.lookup(key.value), source);
        worklist.push_back({source, decision ? decision
                                    : isCopy ? key.decision
                                             : std::nullopt});
      }
    }
  }
  return keys;
}

void Compiler::classifyTiles() {
  if (program.grid[0] <= 0)
    return fail(tileValues.begin()->first,
                "the launch does not say how many CTAs there are");
  TileSet all;
  enumerateTiles(tileValues.begin()->first, all);
  if (unsupportedOp)
    return;
  for (auto &[op, root] : roots)
    for (auto &[loop, tile] : tileValues)
      if (loop->isProperAncestor(op)) {
        auto isNumber = [tile = tile](Value value) { return value == tile; };
        if (reaches(root, isBlockNumber, isNumber) &&
            reaches(root, isNumber, isNothing))
          return fail(op, "it depends on the tile and on the block besides");
      }
  program.numTiles = all.size();
  program.allTiles = all.list(kMostReplayed);
  // Values that are computed in the same way count once.
  SmallVector<TileKey> keys;
  llvm::StringSet<> texts;
  for (auto &[loop, tile] : tileValues)
    for (const TileKey &key : collectKeys(loop)) {
      std::string text = textOf(key.value, tile);
      if (key.decision)
        text += textOf(key.decision->op->getResult(0), {});
      if (texts.insert(text).second)
        keys.push_back(key);
    }
  SmallVector<Value> tileNumbers, keyValues;
  for (auto &[loop, tile] : tileValues)
    llvm::append_range(tileNumbers, getTileNumbers(loop, tile));
  for (const TileKey &key : keys)
    keyValues.push_back(key.value);
  std::map<std::vector<int64_t>, int64_t> kinds;
  LaunchNumbers values(getShape(program));
  auto classify = [&](int64_t number) {
    std::vector<int64_t> key;
    for (int64_t rank = 0; rank < program.cluster; ++rank) {
      values.start({rank, 0, 0});
      for (Value tile : tileNumbers)
        values.set(tile, number);
      for (const TileKey &of : keys) {
        // What cannot be computed tells all tiles apart.
        int64_t value = values.get(of.value).value_or(number);
        key.push_back(of.decision ? of.decision->decide(value) : value);
      }
    }
    kinds.try_emplace(key, number);
  };
  bool areFew = true;
  if (all.areAllBelow()) {
    areFew = forKinds(getShape(program), {{{0, all.size()}, {0, 1}, {0, 1}}},
                      /*isOfTile=*/true, tileNumbers, keyValues,
                      [&](std::array<int64_t, 3> at) { classify(at[0]); });
  } else {
    areFew = all.size() <= kMostTiles;
    llvm::for_each(all.list(kMostTiles), classify);
  }
  if (!areFew)
    return fail(tileValues.begin()->first, kManyKinds.str());
  for (auto &[key, number] : kinds)
    program.tileNumbers.push_back(number);
}

/// What depends on the block, other than through its tiles, tells blocks apart.
void Compiler::classifyBlocks() {
  SmallVector<Value> keys;
  auto isTile = [&](Value value) {
    return llvm::any_of(tileValues,
                        [&](const auto &tile) { return tile.second == value; });
  };
  llvm::DenseSet<Value> seen;
  LaunchNumbers start(getShape(program));
  for (auto &[op, root] : roots) {
    // Which tiles a loop walks does not tell blocks apart.
    if (tileValues.contains(op) || !reaches(root, isBlockNumber, isTile))
      continue;
    SmallVector<Value> worklist = {root};
    while (!worklist.empty()) {
      Value value = worklist.pop_back_val();
      if (!seen.insert(value).second || !reaches(value, isBlockNumber, isTile))
        continue;
      Operation *def = value.getDefiningOp();
      if (def && def->getNumRegions() == 0 && start.get(value)) {
        keys.push_back(value);
        continue;
      }
      llvm::append_range(worklist, sourcesOf(value));
    }
  }
  if (keys.empty())
    return;
  if (llvm::any_of(program.grid, [](int64_t blocks) { return blocks <= 0; }))
    return fail(program.kernel, "it depends on the block, and the launch does "
                                "not say how many there are");
  std::map<std::vector<int64_t>, std::array<int64_t, 3>> kinds;
  LaunchNumbers values(getShape(program));
  auto classify = [&](std::array<int64_t, 3> block) {
    std::vector<int64_t> key;
    for (int64_t rank = 0; rank < program.cluster; ++rank) {
      values.start({block[0] + rank, block[1], block[2]});
      for (Value value : keys)
        key.push_back(values.get(value).value_or(INT64_MIN));
    }
    kinds.try_emplace(key, block);
  };
  Domain domain;
  for (auto [range, blocks] : llvm::zip(domain, program.grid))
    range = {0, blocks};
  if (!forKinds(getShape(program), domain, /*isOfTile=*/false, {}, keys,
                classify))
    return fail(program.kernel, kManyKinds.str());
  program.blocks.clear();
  for (auto &[key, first] : kinds)
    program.blocks.push_back(first);
}
