//===- BarrierDecisions.cpp - Values of which only comparisons matter -----===//
//
// A value that goes from tile to tile and is only compared with constants, such
// as a coordinate that is negative before the first tile, matters by what these
// comparisons say. Tiles and states that differ in such a value alone are the
// same.
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
