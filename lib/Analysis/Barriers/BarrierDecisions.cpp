//===- BarrierDecisions.cpp - What of its values a program needs ----------===//
//
// A value that no step to come takes does not matter, in CTAs of one rank or of
// each. One that goes from tile to tile and is only compared with constants,
// such as a coordinate that is negative before the first tile, matters by what
// these comparisons say. Tiles and states that differ in such a value alone are
// the same.
//
//===----------------------------------------------------------------------===//

#include "BarrierCompiler.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

std::optional<Decision> barriers::getDecision(Operation *op, Value compared) {
  auto compare = dyn_cast_or_null<arith::CmpIOp>(op);
  APInt constant;
  if (!compare || compare.getLhs() != compared ||
      !matchPattern(compare.getRhs(), m_ConstantInt(&constant)))
    return std::nullopt;
  Decision decision;
  decision.op = op;
  decision.compute = getArithmetic(op);
  decision.constant = constant.getSExtValue();
  return decision;
}

bool Decision::decide(int64_t value) const {
  RegionNumber operands[2], result;
  operands[0].integer = value;
  operands[1].integer = constant;
  return compute(operands, result) && result.integer != 0;
}

/// A value of which something else than a comparison is made, or a copy of it,
/// matters as a whole; the others by the comparisons that it and its copies are
/// used in.
void Compiler::findDecisions() {
  SmallVector<bool> isWhole(program.numSlots, false);
  std::vector<SmallVector<Slot, 2>> copies(program.numSlots);
  std::vector<SmallVector<Decision, 1>> &decisions = program.decisions;
  decisions.resize(program.numSlots);
  auto use = [&](Slot slot) {
    if (slot != kNoSlot)
      isWhole[slot] = true;
  };
  for (const Step &step : program.steps) {
    use(step.index);
    if (step.touchesMemory())
      for (uint32_t access = step.first; access < step.last; ++access)
        use(program.accesses[access].index);
    if (step.code == Code::ReadWord)
      use(program.accesses[step.first].index);
    for (auto [number, slot] : llvm::enumerate(step.args)) {
      if (slot == kNoSlot)
        continue;
      if (step.code == Code::Copy) {
        copies[slot].push_back(step.dst);
        continue;
      }
      std::optional<Decision> decision;
      if (step.code == Code::Compute && number < step.op->getNumOperands())
        decision = getDecision(step.op, step.op->getOperand(number));
      if (decision)
        decisions[slot].push_back(*decision);
      else
        use(slot);
    }
  }
  bool changes = true;
  while (changes) {
    changes = false;
    for (Slot slot = 0; slot < program.numSlots; ++slot)
      for (Slot copy : copies[slot]) {
        changes |= isWhole[copy] && !isWhole[slot];
        isWhole[slot] |= isWhole[copy];
        for (const Decision &decision : decisions[copy])
          if (!llvm::is_contained(decisions[slot], decision)) {
            decisions[slot].push_back(decision);
            changes = true;
          }
      }
  }
  for (Slot slot = 0; slot < program.numSlots; ++slot)
    if (isWhole[slot] || decisions[slot].size() > 60)
      decisions[slot].clear();
}

//===----------------------------------------------------------------------===//
// Values that steps to come take
//===----------------------------------------------------------------------===//

/// Returns the slots that a step takes.
static void collectUses(const Program &program, const Step &step,
                        llvm::BitVector &live) {
  auto use = [&](Slot slot) {
    if (slot != kNoSlot)
      live.set(slot);
  };
  llvm::for_each(step.args, use);
  use(step.index);
  for (uint32_t ring : step.stopsTurns)
    live.set(program.numSlots + 1 + ring);
  if (step.touchesMemory())
    for (uint32_t access = step.first; access < step.last; ++access) {
      use(program.accesses[access].index);
      for (uint32_t ring : program.accesses[access].overlaid)
        live.set(program.numSlots + 1 + ring);
    }
  if (step.code == Code::ReadWord)
    use(program.accesses[step.first].index);
  if (step.code == Code::Tile && step.value != kDealtTile)
    live.set(program.numSlots);
  if (step.code == Code::Launch && step.launch == LaunchNumber::Block)
    live.set(program.numSlots + 1 + program.rings.size());
  if (!step.usesMbarriers())
    return;
  bool isWait = step.code == Code::Wait;
  live.set(program.getBarrierBit(isWait ? BarrierUse::Wait : BarrierUse::Other,
                                 step.array));
  if (!step.isElected)
    live.set(program.getBarrierBit(
        isWait ? BarrierUse::SharedWait : BarrierUse::SharedOther, step.array));
}

/// Returns whether CTAs of a rank go on behind a step, and to its target.
static std::pair<bool, bool> goesOn(const Step &step, uint32_t rank) {
  if (step.code == Code::Exit || step.code == Code::Jump ||
      step.code == Code::Partition)
    return {false, step.target != 0};
  if (step.code != Code::Leader)
    return {true, step.target != 0};
  bool isLeader = (rank & step.where.getClear()) == 0;
  return {isLeader, !isLeader};
}

/// Returns the values and other bits of `Program::live` for each step, as CTAs
/// of a rank take it. `makes` are the unknowns that each step may make.
static std::vector<llvm::BitVector>
findLive(const Program &program, uint32_t rank, size_t bits,
         ArrayRef<SmallVector<size_t, 2>> makes) {
  std::vector<llvm::BitVector> live(program.steps.size(),
                                    llvm::BitVector(bits));
  bool changes = true;
  while (changes) {
    changes = false;
    for (size_t i = program.steps.size(); i-- > 0;) {
      const Step &step = program.steps[i];
      llvm::BitVector now(bits);
      auto [isNext, isTarget] = goesOn(step, rank);
      if (isNext)
        now |= live[i + 1];
      if (isTarget)
        now |= live[step.target];
      for (uint32_t target : step.targets)
        now |= live[target];
      // A value that nothing takes needs nothing.
      bool isFaint = step.dst != kNoSlot &&
                     (step.code == Code::Compute || step.code == Code::Copy) &&
                     !now.test(step.dst);
      if (step.dst != kNoSlot)
        now.reset(step.dst);
      if (!isFaint) {
        collectUses(program, step, now);
        for (size_t kind : makes[i])
          now.set(program.getUnknownBit(kind));
      }
      if (now != live[i]) {
        live[i] = std::move(now);
        changes = true;
      }
    }
  }
  for (llvm::BitVector &values : live)
    for (auto [slot, value] : program.constants)
      values.reset(slot);
  return live;
}

/// Leaves out, of each rank, what CTAs that are no leaders never come to.
void Compiler::computeLiveness() {
  std::vector<SmallVector<size_t, 2>> makes(program.steps.size());
  for (size_t i = 0; program.isOpen && i < program.steps.size(); ++i)
    for (const std::string &kind : getUnknownKinds(program, program.steps[i])) {
      auto known = llvm::find(program.unknownKinds, kind);
      makes[i].push_back(known - program.unknownKinds.begin());
      if (known == program.unknownKinds.end())
        program.unknownKinds.push_back(kind);
    }
  size_t bits = program.getUnknownBit(program.unknownKinds.size());
  bool hasLeaders = llvm::any_of(program.steps, [](const Step &step) {
    return step.code == Code::Leader;
  });
  program.live.resize(hasLeaders ? program.cluster : 1);
  for (auto [rank, live] : llvm::enumerate(program.live))
    live = findLive(program, rank, bits, makes);
  program.acrossTiles.resize(bits);
  for (auto [number, step] : llvm::enumerate(program.steps))
    if (step.code == Code::Tile && step.value == kNextTile)
      for (const std::vector<llvm::BitVector> &live : program.live)
        program.acrossTiles |= live[number];
}
