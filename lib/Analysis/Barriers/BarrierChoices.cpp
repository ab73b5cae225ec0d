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

void Machine::addTile(ArrayRef<int64_t> numbers) {
  openTile = tiles.size();
  tiles.push_back(numbers.front());
  if (numbers.size() > 1)
    choices.assign(numbers.begin(), numbers.end());
}

void Machine::openBlocks() {
  areBlocksOpen = true;
  for (size_t index = 0; index < program->blocks.size(); ++index)
    choices.push_back(index);
  firstBlock = program->blocks.front();
}

void Machine::setBlockNumbers(Warp &warp, const Step &step) {
  std::vector<int64_t> numbers;
  for (int64_t block : choices)
    numbers.push_back(program->blocks[block][step.dim] +
                      (step.dim == 0 ? warp.cta : 0));
  if (!llvm::all_equal(numbers))
    warp.varied[step.dst] = std::move(numbers);
}

bool Machine::asksForBlock() const {
  uint32_t bit = program->numSlots + 1 + program->rings.size();
  return areBlocksOpen && llvm::any_of(warps, [&](const Warp &warp) {
           return warp.state != Warp::Done && program->live[warp.pc].test(bit);
         });
}

void Machine::computeVaried(Warp &warp, const Step &step) {
  // Looked up once, not for each number.
  RegionNumber operands[3], result;
  const std::vector<int64_t> *varied[3] = {};
  bool isKnown = bool(step.compute);
  for (auto [number, slot] : llvm::enumerate(step.args)) {
    isKnown &= slot != kNoSlot && warp.known[slot];
    if (!isKnown)
      break;
    operands[number].integer = warp.values[slot];
    if (auto found = warp.varied.find(slot); found != warp.varied.end())
      varied[number] = &found->second;
  }
  std::vector<int64_t> results;
  results.reserve(choices.size());
  for (size_t index = 0; isKnown && index < choices.size(); ++index) {
    for (size_t number = 0; number < step.args.size(); ++number)
      if (varied[number])
        operands[number].integer = (*varied[number])[index];
    isKnown = step.compute(operands, result);
    results.push_back(result.integer);
  }
  warp.varied.erase(step.dst);
  warp.known[step.dst] = isKnown;
  if (!isKnown)
    return;
  warp.values[step.dst] = results.front();
  if (!llvm::all_equal(results))
    warp.varied[step.dst] = std::move(results);
}

/// True if all numbers lead to the same outcome; else the first one's choice is
/// noted.
bool Machine::agree(ArrayRef<int64_t> outcomes) {
  if (llvm::all_equal(outcomes))
    return true;
  choice.clear();
  for (int64_t outcome : outcomes)
    choice.push_back(outcome == outcomes.front());
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
    return agree(llvm::map_to_vector(
        varied->second, [](int64_t value) { return int64_t(value != 0); }));
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
void Machine::keep(const std::vector<bool> &kept) {
  auto filter = [&](std::vector<int64_t> &numbers) {
    size_t count = 0;
    for (auto [index, number] : llvm::enumerate(numbers))
      if (kept[index])
        numbers[count++] = number;
    numbers.resize(count);
  };
  filter(choices);
  if (areBlocksOpen)
    firstBlock = program->blocks[choices.front()];
  else
    tiles[openTile] = choices.front();
  for (auto &[place, word] : words) {
    if (word.varied.empty())
      continue;
    filter(word.varied);
    word.value = word.varied.front();
    if (llvm::all_equal(word.varied))
      word.varied.clear();
  }
  for (Warp &warp : warps)
    for (auto slot = warp.varied.begin(); slot != warp.varied.end();) {
      filter(slot->second);
      warp.values[slot->first] = slot->second.front();
      slot = llvm::all_equal(slot->second) ? warp.varied.erase(slot)
                                           : std::next(slot);
    }
  if (choices.size() == 1) {
    choices.clear();
    areBlocksOpen = false;
  }
}

Machine Machine::split() {
  if (question) {
    Machine other = *this;
    splitAtQuestion(other);
    return other;
  }
  std::vector<bool> kept = std::move(choice);
  choice.clear();
  Machine other = *this;
  keep(kept);
  kept.flip();
  other.keep(kept);
  return other;
}

void Machine::choose(size_t index) {
  std::vector<bool> kept(choices.size(), false);
  kept[index] = true;
  keep(kept);
}
