//===- BarrierDifferences.cpp - Comparisons of a loop's counter -----------===//
//
// A counter that is compared with an unknown number matters by the difference
// of both, which grows by the same number in each trip. Where that is kept in
// place of them, a state does not say how many trips there were. One that goes
// away from zero is compared with the same outcome from there on.
//
//===----------------------------------------------------------------------===//

#include "BarrierCompiler.h"
#include "BarrierMachine.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// Factors and constants from here on are not followed.
static constexpr unsigned kMostFactorBits = 16;
static constexpr int64_t kMostConstant = int64_t(1) << 31;

bool Compiler::Difference::add(scf::ForOp loop, Value value, int64_t factor) {
  APInt number;
  Operation *def = value.getDefiningOp();
  if (value == loop.getInductionVar()) {
    trips += factor;
    tripsAdded += std::abs(factor);
    return true;
  }
  if (matchPattern(value, m_ConstantInt(&number))) {
    constant += factor * number.getSExtValue();
    constantsAdded += std::abs(factor * number.getSExtValue());
    return constantsAdded < kMostConstant;
  }
  if (!loop->isAncestor(value.getParentRegion()->getParentOp())) {
    terms[value] += factor;
    added[value] += std::abs(factor);
    return true;
  }
  if (isa_and_nonnull<arith::MulIOp>(def))
    for (unsigned place : {0, 1})
      if (matchPattern(def->getOperand(place), m_ConstantInt(&number)) &&
          number.isSignedIntN(kMostFactorBits) &&
          std::abs(factor) < kMostConstant)
        return add(loop, def->getOperand(1 - place),
                   factor * number.getSExtValue());
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(def))
    return false;
  return add(loop, def->getOperand(0), factor) &&
         add(loop, def->getOperand(1),
             isa<arith::SubIOp>(def) ? -factor : factor);
}

std::optional<Compiler::Difference>
Compiler::findDifference(scf::ForOp op, Operation *compare) {
  auto cmp = dyn_cast<arith::CmpIOp>(compare);
  if (!cmp || cmp.getPredicate() >= arith::CmpIPredicate::ult ||
      !isDemanded(cmp.getResult()) || differences.contains(compare))
    return std::nullopt;
  Difference difference;
  difference.compare = compare;
  if (!difference.add(op, cmp.getLhs(), 1) ||
      !difference.add(op, cmp.getRhs(), -1) || difference.trips == 0)
    return std::nullopt;
  return difference;
}

/// Sums of few bits wrap around soon, which is followed where it can be.
bool Compiler::isKeptAsDifference(const Difference &difference) const {
  Type type = difference.compare->getOperand(0).getType();
  return program.isOpen || getWidth(type) >= 32;
}

SmallVector<Compiler::Difference> Compiler::findDifferences(scf::ForOp op) {
  SmallVector<Difference> found;
  if (!getConstantIntValue(op.getStep()))
    return found;
  op.getBody()->walk([&](Operation *compare) {
    auto difference = findDifference(op, compare);
    if (difference && isKeptAsDifference(*difference))
      found.push_back(std::move(*difference));
  });
  return found;
}

/// Sets the differences as they are in the first trip.
void Compiler::emitDifferences(scf::ForOp op) {
  for (Difference &difference : findDifferences(op)) {
    Slot slot = newTemporary();
    Step &step = emit(Code::Compute, op);
    step.dst = slot;
    step.flag = true;
    step.value = difference.constant;
    int64_t by = *getConstantIntValue(op.getStep());
    difference.terms[op.getLowerBound()] += difference.trips;
    if (!program.isOpen) {
      // The counter goes up to its bound, and a step further.
      difference.terms[op.getUpperBound()] += 0;
      difference.added[op.getLowerBound()] += difference.tripsAdded;
      difference.added[op.getUpperBound()] += difference.tripsAdded;
      step.bound = kMostConstant - difference.constantsAdded -
                   std::min(difference.tripsAdded * by, kMostConstant);
    }
    for (auto [value, factor] : difference.terms) {
      step.args.push_back(slotOf(value));
      step.factors.push_back(factor);
      if (!program.isOpen)
        step.added.push_back(difference.added.lookup(value));
    }
    int64_t growth = difference.trips * by;
    differences[difference.compare] = {op, slot, growth};
    program.growths.push_back({slot, growth});
    if (growth < 0)
      program.counters.push_back(slot);
  }
}

void Compiler::emitNextDifferences(scf::ForOp op) {
  op.getBody()->walk([&](Operation *compare) {
    auto found = differences.find(compare);
    // An inner loop's differences are its own.
    if (found == differences.end() || found->second.loop != op)
      return;
    Step &step = emit(Code::Compute, op);
    step.dst = found->second.slot;
    step.args = {step.dst};
    step.factors = {1};
    step.value = found->second.growth;
  });
}

/// A comparison of which the difference is known is one with zero.
bool Compiler::emitComparison(Operation *op) {
  auto found = differences.find(op);
  if (found == differences.end())
    return false;
  Step &step = emit(Code::Compute, op);
  step.dst = slotOf(op->getResult(0));
  step.args = {found->second.slot};
  step.compute = [compare = getArithmetic(op)](const RegionNumber *x,
                                               RegionNumber &result) {
    RegionNumber both[2];
    both[0].integer = x[0].integer;
    both[1].integer = 0;
    return compare(both, result);
  };
  return true;
}

/// A difference whose sign does not change any more is as one of which that is
/// all that is known.
void Machine::settleDifferences() {
  for (auto [slot, growth] : program->growths)
    for (Warp &warp : warps) {
      int64_t sign = growth < 0 ? -1 : 1;
      std::optional<Affine> value = getOpen(warp, slot);
      if (value && !warp.varied.count(slot) &&
          facts.imply(value->times(sign).plus(Affine(-1))))
        set(warp, slot, sign);
    }
}
