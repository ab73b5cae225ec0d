//===- LaunchNumbers.cpp - Numbers of one CTA -----------------------------===//
//
// Which tiles a CTA walks follows from a few of them where their numbers grow
// by as much every few turns, as they do by the size of the grid.
//
//===----------------------------------------------------------------------===//

#include "LaunchNumbers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseSet.h"
#include <map>
#include <numeric>

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

unsigned LaunchNumbers::find(Value value) {
  if (auto found = places.find(value); found != places.end())
    return found->second;
  Node node;
  node.value = value;
  describe(node);
  places[value] = nodes.size();
  nodes.push_back(std::move(node));
  return nodes.size() - 1;
}

void LaunchNumbers::describe(Node &node) {
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
    if (launch.grid[dim] > 0)
      node.leaf = [this, dim] { return launch.grid[dim]; };
  } else if (auto id = dyn_cast<gpu::ClusterBlockIdOp>(def)) {
    int64_t ctas = id.getDimension() == gpu::Dimension::x ? launch.cluster : 1;
    node.leaf = [this, ctas] { return block[0] % ctas; };
  } else if (def->getNumOperands() != 0 && def->getNumOperands() <= 3 &&
             llvm::all_of(def->getOperandTypes(),
                          [](Type type) { return type.isIntOrIndex(); })) {
    node.compute = getPlainArithmetic(def);
    for (Value operand : def->getOperands())
      node.operands.push_back(find(operand));
  }
}

std::optional<int64_t> LaunchNumbers::get(unsigned index) {
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
// Which tiles a CTA walks
//===----------------------------------------------------------------------===//

/// Longer periods are walked one by one.
static constexpr int64_t kMostTurns = 16;

namespace {

/// Every so many turns of a loop a value grows by the same number; which one
/// may depend on the turn that it is counted from. It may be always zero.
struct Growth {
  int64_t turns = 1;
  bool isZero = true;
};

/// Finds out how values of a loop grow.
class Growths {
public:
  explicit Growths(scf::ForOp loop) : loop(loop) {}
  std::optional<Growth> get(Value value);

private:
  std::optional<Growth> getModulo(Operation *op);
  scf::ForOp loop;
  llvm::DenseMap<Value, std::optional<Growth>> known;
};

} // namespace

/// A remainder of the counter repeats.
std::optional<Growth> Growths::getModulo(Operation *op) {
  if (op->getOperand(0) != loop.getInductionVar())
    return std::nullopt;
  if (isa<arith::TruncIOp>(op) && op->getResult(0).getType().isInteger(1))
    return Growth{2, true};
  if (op->getNumOperands() != 2)
    return std::nullopt;
  std::optional<int64_t> by = getConstantNumber(op->getOperand(1));
  if (isa<arith::AndIOp>(op) && by && llvm::isPowerOf2_64(*by + 1))
    return Growth{*by + 1, true};
  if (isa<arith::RemUIOp>(op) && by && *by > 0)
    return Growth{*by, true};
  return std::nullopt;
}

std::optional<Growth> Growths::get(Value value) {
  if (value == loop.getInductionVar())
    return Growth{1, false};
  Operation *def = value.getDefiningOp();
  if (!def || !loop->isProperAncestor(def))
    return Growth();
  if (def->getNumRegions() != 0 || def->getNumOperands() > 3)
    return std::nullopt;
  auto [place, isNew] = known.try_emplace(value);
  if (!isNew)
    return place->second;
  bool areZero = true, areKnown = true;
  Growth all;
  for (Value operand : def->getOperands()) {
    std::optional<Growth> growth = get(operand);
    areKnown &= growth.has_value();
    if (!areKnown)
      break;
    areZero &= growth->isZero;
    all.turns = std::lcm(all.turns, growth->turns);
  }
  std::optional<Growth> found;
  if (areKnown && areZero)
    found = all;
  else if (def->getNumOperands() > 0 && (found = getModulo(def)))
    ;
  else if (areKnown &&
           (isa<arith::AddIOp, arith::SubIOp>(def) ||
            (isa<arith::MulIOp, arith::SelectOp>(def) &&
             get(def->getOperand(0))->isZero) ||
            (isa<arith::MulIOp>(def) && get(def->getOperand(1))->isZero)))
    found = Growth{all.turns, false};
  if (found && found->turns > kMostTurns)
    found.reset();
  return known[value] = found;
}

std::vector<int64_t> WalkedTiles::getFirst(int64_t most) const {
  std::vector<int64_t> first;
  most = std::min(most, count);
  for (int64_t index = 0; takesTurns && index < most; ++index)
    first.push_back(runs[index % runs.size()].at(index / runs.size()));
  for (const NumberList::Run &run : runs)
    for (int64_t index = 0; index < run.count && int64_t(first.size()) < most;
         ++index)
      first.push_back(run.at(index));
  return first;
}

bool WalkedTiles::areSame(const WalkedTiles &other) const {
  if (count != other.count)
    return false;
  if (takesTurns == other.takesTurns && runs == other.runs)
    return true;
  return getFirst(count) == other.getFirst(count);
}

llvm::Expected<WalkedTiles> barriers::walkTiles(LaunchNumbers &values,
                                                scf::ForOp loop, Value tile,
                                                int64_t block) {
  values.start({block, 0, 0});
  auto first = values.get(loop.getLowerBound()),
       last = values.get(loop.getUpperBound()),
       step = values.get(loop.getStep());
  if (!first || !last || !step || *step <= 0 || values.isExhausted() ||
      (loop.getUnsignedCmp() && (*first < 0 || *last < 0)))
    return llvm::createStringError("how many tiles there are is not known");
  WalkedTiles walked;
  walked.count =
      *first < *last ? int64_t(llvm::divideCeil(*last - *first, *step)) : 0;
  // A counter that wraps around goes on.
  if (!llvm::isIntN(getWidth(loop.getInductionVar().getType()),
                    *first + walked.count * *step))
    return llvm::createStringError("how many tiles there are is not known");
  auto getNumber = [&](int64_t turn) {
    values.start({block, 0, 0});
    values.set(loop.getInductionVar(), *first + turn * *step);
    return values.get(tile);
  };
  constexpr StringLiteral unknown = "the number of a tile is not known";
  std::optional<Growth> growth;
  if (*first >= 0)
    growth = Growths(loop).get(tile);
  int64_t turns = growth ? growth->turns : 0;
  walked.takesTurns = growth && walked.count > 3 * turns;
  for (int64_t turn = 0; walked.takesTurns && turn < turns; ++turn) {
    int64_t count = llvm::divideCeil(walked.count - turn, turns);
    auto number = getNumber(turn), next = getNumber(turn + turns),
         end = getNumber(turn + (count - 1) * turns);
    if (!number || !next || !end)
      return llvm::createStringError(unknown);
    NumberList::Run run{*number, count, *next - *number};
    walked.runs.push_back(run);
    // A sum that has left its type is another number.
    walked.takesTurns = run.at(count - 1) == *end;
  }
  if (walked.takesTurns)
    return walked;
  NumberList numbers;
  for (int64_t turn = 0; turn < walked.count; ++turn) {
    std::optional<int64_t> number = getNumber(turn);
    if (!number || turn == kMostTiles || values.isExhausted())
      return llvm::createStringError(unknown);
    numbers.push_back(*number);
  }
  walked.runs.assign(numbers.getRuns().begin(), numbers.getRuns().end());
  return walked;
}

//===----------------------------------------------------------------------===//
// All tiles
//===----------------------------------------------------------------------===//

void TileSet::addBelow(int64_t bound) {
  WalkedTiles all;
  all.runs.push_back({0, bound, 1});
  all.count = bound;
  if (bound > 0)
    add(all);
}

void TileSet::add(const WalkedTiles &tiles) {
  count += tiles.count;
  for (const NumberList::Run &run : tiles.runs)
    for (int64_t number : {run.first, run.at(run.count - 1)}) {
      least = std::min(least, number);
      greatest = std::max(greatest, number);
    }
  walks.push_back(tiles);
}

std::vector<int64_t> TileSet::list(int64_t most) const {
  std::vector<int64_t> all;
  if (count > most)
    return all;
  for (const WalkedTiles &walk : walks)
    llvm::append_range(all, walk.getFirst(walk.count));
  return all;
}

/// Numbers at one distance are others if they leave another remainder, or if
/// one run of them ends before the next one begins.
std::optional<bool> TileSet::areDistinct() const {
  int64_t distance = 0;
  bool isOne = true;
  for (const WalkedTiles &walk : walks)
    for (const NumberList::Run &run : walk.runs)
      if (run.count > 1) {
        int64_t own = std::abs(run.distance);
        isOne &= own != 0 && (distance == 0 || distance == own);
        distance = own;
      }
  if (!isOne) {
    if (count > kMostTiles)
      return std::nullopt;
    std::vector<int64_t> all = list(kMostTiles);
    llvm::sort(all);
    return std::adjacent_find(all.begin(), all.end()) == all.end();
  }
  distance = std::max<int64_t>(distance, 1);
  std::map<int64_t, std::vector<std::pair<int64_t, int64_t>>> ranges;
  for (const WalkedTiles &walk : walks)
    for (const NumberList::Run &run : walk.runs) {
      auto [first, last] = std::minmax({run.first, run.at(run.count - 1)});
      int64_t remainder = (first % distance + distance) % distance;
      ranges[remainder].push_back({first, last});
    }
  for (auto &[remainder, alike] : ranges) {
    llvm::sort(alike);
    for (size_t next = 1; next < alike.size(); ++next)
      if (alike[next].first <= alike[next - 1].second)
        return false;
  }
  return true;
}
