//===- BarrierChoices.cpp - Tiles of several kinds at once ----------------===//
//
// Tiles that differ in their trip counts take the same steps up to the end of
// the shorter one's loop. So a tile may have one of several numbers: what is
// computed from it has a value for each, and where a step depends on which
// number it is, the run goes on twice. So may a block where there are no tiles.
//
//===----------------------------------------------------------------------===//

#include "BarrierMachine.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

void Machine::addTile(const NumberList &numbers) {
  openTile = tiles.size();
  tiles.push_back(numbers.front());
  if (numbers.size() > 1)
    choices = numbers;
}

void Machine::openBlocks() {
  areBlocksOpen = true;
  choices.append({0, int64_t(program->blocks.size()), 1});
  firstBlock = program->blocks.front();
}

void Machine::setBlockNumbers(Warp &warp, const Step &step) {
  NumberList numbers = choices.map([&](int64_t block) {
    return program->blocks[block][step.dim] + (step.dim == 0 ? warp.cta : 0);
  });
  if (!numbers.areAllEqual())
    warp.varied[step.dst] = std::move(numbers);
}

bool Machine::asksForBlock() const {
  uint32_t bit = program->numSlots + 1 + program->rings.size();
  return areBlocksOpen && llvm::any_of(warps, [&](const Warp &warp) {
           return warp.state != Warp::Done &&
                  program->getLive(warp.cta, warp.pc).test(bit);
         });
}

/// Adds what a step computes of numbers that are in one run of each operand. A
/// sum of runs is a run.
static bool computeRun(const Step &step, ArrayRef<NumberList::Run> operands,
                       int64_t count, NumberList &results) {
  if (!step.factors.empty()) {
    NumberList::Run sum{step.value, count, 0};
    int64_t added = 0;
    for (auto [number, operand] : llvm::enumerate(operands)) {
      sum.first += step.factors[number] * operand.first;
      sum.distance += step.factors[number] * operand.distance;
      if (!step.added.empty())
        added += step.added[number] * std::max(std::abs(operand.first),
                                               std::abs(operand.at(count - 1)));
    }
    if (!step.added.empty() && added >= step.bound)
      return false;
    results.append(sum);
    return true;
  }
  RegionNumber numbers[3], result;
  for (int64_t index = 0; index < count; ++index) {
    for (auto [place, operand] : llvm::enumerate(operands))
      numbers[place].integer = operand.at(index);
    if (!step.compute(numbers, result))
      return false;
    results.push_back(result.integer);
  }
  return true;
}

void Machine::computeVaried(Warp &warp, const Step &step) {
  // A value that all kinds share is a run of its own, so that operands are
  // alike.
  std::vector<NumberList> same(step.args.size());
  SmallVector<const NumberList *, 3> operands;
  bool isKnown = step.compute || !step.factors.empty();
  for (auto [list, slot] : llvm::zip(same, step.args)) {
    isKnown &= slot != kNoSlot && warp.known[slot];
    if (!isKnown)
      break;
    auto found = warp.varied.find(slot);
    if (found == warp.varied.end())
      list.append({warp.values[slot], choices.size(), 0});
    operands.push_back(found == warp.varied.end() ? &list : &found->second);
  }
  NumberList results;
  if (isKnown) {
    SmallVector<NumberList::Run, 3> parts;
    for (ListWalk walk(operands); isKnown && !walk.isAtEnd();) {
      int64_t count = walk.takeRuns(parts);
      isKnown = computeRun(step, parts, count, results);
    }
  }
  warp.varied.erase(step.dst);
  warp.known[step.dst] = isKnown;
  if (!isKnown)
    return;
  warp.values[step.dst] = results.front();
  if (!results.areAllEqual())
    warp.varied[step.dst] = std::move(results);
}

/// True if all numbers lead to the same outcome, in which the first one counts
/// by itself, or with `isCondition` by whether it is zero; else those with the
/// first one's outcome are noted.
bool Machine::agree(const NumberList &outcomes, bool isCondition) {
  IndexRanges alike = outcomes.find(isCondition ? 0 : outcomes.front());
  if (isCondition && outcomes.front() != 0)
    alike = getOthers(alike, outcomes.size());
  if (alike.size() == 1 && alike.front().second == outcomes.size() &&
      alike.front().first == 0)
    return true;
  parting.kept = std::move(alike);
  return false;
}

/// Whether a step is the same for all numbers: which way it goes, or which
/// places it is about.
bool Machine::agreeOn(Warp &warp, const Step &step) {
  switch (step.code) {
  case Code::Compute:
  case Code::Count:
  case Code::Copy:
    return true;
  case Code::Branch: {
    auto varied = warp.varied.find(step.args[0]);
    if (varied == warp.varied.end())
      return true;
    return agree(varied->second, /*isCondition=*/true);
  }
  default:
    break;
  }
  auto agreeOnSlot = [&](Slot slot) {
    auto varied = warp.varied.find(slot);
    return varied == warp.varied.end() || agree(varied->second);
  };
  // What is written matters where it is read, and whether a product is added
  // to what nobody has written (`agreeOnSum`).
  bool isStore = step.code == Code::Access || step.code == Code::Fill ||
                 step.code == Code::Product;
  if ((!isStore && !llvm::all_of(step.args, agreeOnSlot)) ||
      !agreeOnSlot(step.index))
    return false;
  if (step.touchesMemory())
    for (uint32_t access = step.first; access < step.last; ++access)
      if (!agreeOnSlot(program->accesses[access].index))
        return false;
  return step.code != Code::ReadWord ||
         agreeOnSlot(program->accesses[step.first].index);
}

/// Leaves the numbers that are kept.
void Machine::keep(const IndexRanges &kept) {
  choices = choices.select(kept);
  if (areBlocksOpen)
    firstBlock = program->blocks[choices.front()];
  else
    tiles[openTile] = choices.front();
  for (auto &[place, word] : words) {
    if (word.varied.empty())
      continue;
    word.varied = word.varied.select(kept);
    word.value = word.varied.front();
    if (word.varied.areAllEqual())
      word.varied.clear();
  }
  for (Warp &warp : warps)
    for (auto slot = warp.varied.begin(); slot != warp.varied.end();) {
      slot->second = slot->second.select(kept);
      warp.values[slot->first] = slot->second.front();
      slot = slot->second.areAllEqual() ? warp.varied.erase(slot)
                                        : std::next(slot);
    }
  if (choices.size() == 1) {
    choices.clear();
    areBlocksOpen = false;
  }
}

Machine Machine::split() {
  parting.hasMoved = false;
  if (question) {
    Machine other = *this;
    splitAtQuestion(other);
    return other;
  }
  IndexRanges kept = std::move(parting.kept),
              others = getOthers(kept, choices.size());
  parting.kept.clear();
  Machine other = *this;
  keep(kept);
  other.keep(others);
  return other;
}

void Machine::choose(int64_t index) { keep({{index, index + 1}}); }
