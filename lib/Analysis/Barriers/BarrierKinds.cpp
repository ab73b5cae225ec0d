//===- BarrierKinds.cpp - Which tiles there are, and their kinds ----------===//
//
// A tile matters by what conditions, bounds and slots are computed from: tiles
// with the same numbers there are of one kind. So does a block, in what is not
// computed from its tiles.
//
//===----------------------------------------------------------------------===//

#include "BarrierCompiler.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// More tiles than this are not told apart.
static constexpr size_t kMostTiles = 1 << 20;
/// Nor are more CTAs and tiles than these looked at to find which there are.
static constexpr uint64_t kMostRounds = 4 * kMostTiles;

//===----------------------------------------------------------------------===//
// Numbers of one CTA
//===----------------------------------------------------------------------===//

namespace {

/// Numbers of values in one CTA, from those that are given. How a value is
/// computed is looked up once, for all CTAs and tiles.
class Numbers {
public:
  explicit Numbers(const Program &program) : program(program) {}
  /// Forgets all numbers, and takes another CTA.
  void start(std::array<int64_t, 3> first) {
    block = first;
    ++round;
  }
  /// True once more CTAs and tiles were looked at than there is time for.
  bool isExhausted() const { return round > kMostRounds; }
  void set(Value value, int64_t number) { settle(find(value), number); }
  std::optional<int64_t> get(Value value) { return get(find(value)); }

private:
  struct Node {
    Value value;
    /// A constant, or a number of the launch.
    std::function<int64_t()> leaf;
    Arithmetic compute;
    SmallVector<unsigned, 3> operands;
    uint64_t round = 0;
    std::optional<int64_t> number;
  };

  unsigned find(Value value);
  void describe(Node &node);
  std::optional<int64_t> get(unsigned index);
  void settle(unsigned index, std::optional<int64_t> number) {
    nodes[index].round = round;
    nodes[index].number = number;
  }

  const Program &program;
  std::array<int64_t, 3> block = {0, 0, 0};
  uint64_t round = 1;
  llvm::DenseMap<Value, unsigned> places;
  std::vector<Node> nodes;
};

} // namespace

unsigned Numbers::find(Value value) {
  if (auto found = places.find(value); found != places.end())
    return found->second;
  Node node;
  node.value = value;
  describe(node);
  places[value] = nodes.size();
  nodes.push_back(std::move(node));
  return nodes.size() - 1;
}

void Numbers::describe(Node &node) {
  Operation *def = node.value.getDefiningOp();
  if (!def || def->getNumResults() != 1 || def->getNumRegions() != 0)
    return;
  if (std::optional<int64_t> number = getConstantNumber(node.value)) {
    node.leaf = [number = *number] { return number; };
  } else if (auto id = dyn_cast<gpu::BlockIdOp>(def)) {
    node.leaf = [this, dim = unsigned(id.getDimension())] {
      return block[dim];
    };
  } else if (auto id = dyn_cast<gpu::GridDimOp>(def)) {
    unsigned dim = unsigned(id.getDimension());
    if (program.grid[dim] > 0)
      node.leaf = [this, dim] { return program.grid[dim]; };
  } else if (auto id = dyn_cast<gpu::ClusterBlockIdOp>(def)) {
    int64_t ctas = id.getDimension() == gpu::Dimension::x ? program.cluster : 1;
    node.leaf = [this, ctas] { return block[0] % ctas; };
  } else if (def->getNumOperands() != 0 && def->getNumOperands() <= 3 &&
             llvm::all_of(def->getOperandTypes(),
                          [](Type type) { return type.isIntOrIndex(); })) {
    node.compute = getPlainArithmetic(def);
    for (Value operand : def->getOperands())
      node.operands.push_back(find(operand));
  }
}

std::optional<int64_t> Numbers::get(unsigned index) {
  if (nodes[index].round == round)
    return nodes[index].number;
  // What computes it stays unknown until all that it takes is known.
  settle(index, std::nullopt);
  const Node &node = nodes[index];
  if (node.leaf) {
    settle(index, node.leaf());
  } else if (node.compute) {
    RegionNumber operands[3], result;
    for (auto [place, operand] : llvm::enumerate(node.operands)) {
      std::optional<int64_t> number = get(operand);
      if (!number)
        return std::nullopt;
      operands[place].integer = *number;
    }
    if (node.compute(operands, result))
      settle(index, result.integer);
  }
  return nodes[index].number;
}

//===----------------------------------------------------------------------===//
// Which tiles there are
//===----------------------------------------------------------------------===//

/// The numbers of a CTA's tiles in one of its loops, or why they are not known.
static llvm::Expected<std::vector<int64_t>>
walkTiles(Numbers &values, scf::ForOp loop, Value tile, int64_t block) {
  values.start({block, 0, 0});
  auto first = values.get(loop.getLowerBound()),
       last = values.get(loop.getUpperBound()),
       step = values.get(loop.getStep());
  if (!first || !last || !step || *step <= 0 || values.isExhausted() ||
      (loop.getUnsignedCmp() && (*first < 0 || *last < 0)))
    return llvm::createStringError("how many tiles there are is not known");
  std::vector<int64_t> walked;
  int64_t i = *first;
  for (; i < *last; i += *step) {
    values.start({block, 0, 0});
    values.set(loop.getInductionVar(), i);
    std::optional<int64_t> number = values.get(tile);
    if (!number || walked.size() == kMostTiles || values.isExhausted())
      return llvm::createStringError("the number of a tile is not known");
    walked.push_back(*number);
  }
  // A counter that wraps around goes on.
  if (!llvm::isIntN(getWidth(loop.getInductionVar().getType()), i))
    return llvm::createStringError("how many tiles there are is not known");
  return walked;
}

/// What numbers the tiles of a loop that counts those of its CTA and does not
/// need their numbers, so that they are not known by their uses: how many a CTA
/// has is the launch's, and no part of a proof.
Value Compiler::findDistinctNumber(scf::ForOp loop) {
  Value count = loop.getUpperBound();
  auto isNumber = [&](Value value) { return value == loop.getInductionVar(); };
  if (program.grid[0] <= 0 || !reaches(count, isGridSize, isNothing) ||
      !reaches(count, isBlockNumber, isNothing))
    return Value();
  Numbers values(program);
  for (Operation &op : *loop.getBody()) {
    if (op.getNumRegions() != 0 || op.getNumResults() != 1 ||
        !op.getResult(0).getType().isSignlessInteger() ||
        !reaches(op.getResult(0), isBlockNumber, isNothing) ||
        !reaches(op.getResult(0), isNumber, isNothing) ||
        !isTile(loop, op.getResult(0)))
      continue;
    llvm::DenseSet<int64_t> numbers;
    bool isDistinct = true;
    for (int64_t block = 0; isDistinct && block < program.grid[0];
         block += program.cluster) {
      auto walked = llvm::expectedToOptional(
          walkTiles(values, loop, op.getResult(0), block));
      isDistinct = walked && llvm::all_of(*walked, [&](int64_t number) {
                     return numbers.insert(number).second;
                   });
    }
    if (isDistinct)
      return op.getResult(0);
  }
  return Value();
}

/// Tiles that are dealt are those below a bound, which is the same for all
/// CTAs. The first one of each CTA is the same in all of its cluster.
void Compiler::countDealtTiles(scf::WhileOp loop,
                               llvm::SetVector<int64_t> &numbers) {
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
  Numbers values(program);
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
  for (int64_t number = 0; number < *bound && numbers.size() <= kMostTiles;
       ++number)
    numbers.insert(number);
}

/// The numbers of all tiles that some CTA of the grid may take.
void Compiler::enumerateTiles(Operation *op,
                              llvm::SetVector<int64_t> &numbers) {
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return countDealtTiles(loop, numbers);
  auto loop = cast<scf::ForOp>(op);
  Value tile = tileValues.lookup(op);
  Numbers values(program);
  std::vector<int64_t> ofCluster;
  for (int64_t block = 0;
       block < program.grid[0] && numbers.size() <= kMostTiles; ++block) {
    auto walked = walkTiles(values, loop, tile, block);
    if (!walked)
      return fail(op, llvm::toString(walked.takeError()));
    if (block % program.cluster != 0) {
      if (*walked != ofCluster)
        return fail(op, kUnlikeRanks.str());
      continue;
    }
    ofCluster = *walked;
    // No tile is walked twice.
    for (int64_t number : *walked)
      if (!numbers.insert(number))
        return fail(op, "a tile comes twice");
  }
}

/// Which numbers tiles may have that are unknown otherwise. That it is not
/// known stands in the way of nothing.
void Compiler::boundTiles() {
  llvm::SetVector<int64_t> numbers;
  enumerateTiles(tileValues.begin()->first, numbers);
  if (!unsupportedOp && !numbers.empty())
    program.tileRange = {*llvm::min_element(numbers),
                         *llvm::max_element(numbers)};
  unsupportedOp.reset();
}

/// Partitions that compute their tiles in different ways may walk different
/// ones. Where the launch says which, loops over tiles are loops as any other:
/// each kind of CTA is run to its end, which shows whether it matters.
void Compiler::compareTiles() {
  auto other = dyn_cast<scf::ForOp>(tileValues.begin()->first);
  Numbers values(program);
  size_t fewest = SIZE_MAX;
  bool isKnown = other && !program.isOpen && program.grid[0] > 0 &&
                 llvm::all_of(tileValues,
                              [](auto &t) { return isa<scf::ForOp>(t.first); });
  for (int64_t block = 0; isKnown && block < program.grid[0]; ++block) {
    auto ours = llvm::expectedToOptional(
        walkTiles(values, unlikeLoop, tileValues.lookup(unlikeLoop), block));
    auto theirs = llvm::expectedToOptional(
        walkTiles(values, other, tileValues.lookup(other), block));
    isKnown = ours && theirs;
    if (!isKnown || *ours == *theirs ||
        std::max(ours->size(), theirs->size()) >= fewest)
      continue;
    fewest = std::max(ours->size(), theirs->size());
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

static void setTile(Numbers &values, Operation *op, Value tile,
                    int64_t number) {
  values.set(tile, number);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    for (Value argument : loop.getAfterArguments())
      if (isTileNumber(op, tile, argument))
        values.set(argument, number);
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
  llvm::SetVector<int64_t> numbers;
  enumerateTiles(tileValues.begin()->first, numbers);
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
  program.numTiles = numbers.size();
  program.allTiles.assign(numbers.begin(), numbers.end());
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
  std::map<std::vector<int64_t>, int64_t> kinds;
  Numbers values(program);
  for (int64_t number : numbers) {
    std::vector<int64_t> key;
    for (int64_t rank = 0; rank < program.cluster; ++rank) {
      values.start({rank, 0, 0});
      for (auto &[loop, tile] : tileValues)
        setTile(values, loop, tile, number);
      for (const TileKey &of : keys) {
        // What cannot be computed tells all tiles apart.
        int64_t value = values.get(of.value).value_or(number);
        key.push_back(of.decision ? of.decision->decide(value) : value);
      }
    }
    kinds.try_emplace(key, number);
  }
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
  Numbers start(program);
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
  int64_t total = program.grid[0] * program.grid[1] * program.grid[2];
  if (total <= 0 || total > int64_t(kMostTiles))
    return fail(program.kernel, "it depends on the block, and the launch does "
                                "not say how many there are");
  std::map<std::vector<int64_t>, std::array<int64_t, 3>> kinds;
  std::array<int64_t, 3> block;
  Numbers values(program);
  for (block[2] = 0; block[2] < program.grid[2]; ++block[2])
    for (block[1] = 0; block[1] < program.grid[1]; ++block[1])
      for (block[0] = 0; block[0] < program.grid[0];
           block[0] += program.cluster) {
        std::vector<int64_t> key;
        for (int64_t rank = 0; rank < program.cluster; ++rank) {
          values.start({block[0] + rank, block[1], block[2]});
          for (Value value : keys)
            key.push_back(values.get(value).value_or(INT64_MIN));
        }
        kinds.try_emplace(key, block);
      }
  program.blocks.clear();
  for (auto &[key, first] : kinds)
    program.blocks.push_back(first);
}
