//===- NarrowKeys.cpp - 8-bit operands ------------------------------------===//

#include "NarrowKeys.h"
#include "CommonChecks.h"
#include "attn/Planner/Facts/Factor.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

llvm::Error attn::checkNarrowKeys(llvm::StringRef schedule,
                                  const ProblemFacts &facts, int64_t step) {
  if (!facts.hasNarrowKeys())
    return llvm::Error::success();
  for (auto [name, dim] : {std::pair("head dimension", facts.headDim),
                           std::pair("value dimension", facts.valueDim)})
    if (dim % step != 0)
      return makeUnsupported(
          schedule, llvm::formatv("a {0} of {1} of 8-bit keys, expected a "
                                  "multiple of {2}",
                                  name, dim, step));
  // Groups of columns have rings of their own.
  if (facts.kScales && facts.scaleGroup % step != 0)
    return makeUnsupported(
        schedule, llvm::formatv("scales of {0} columns, expected a multiple of "
                                "{1}",
                                facts.scaleGroup, step));
  return llvm::Error::success();
}

llvm::Error attn::checkNarrowOperands(llvm::StringRef schedule,
                                      const ProblemFacts &facts,
                                      const TargetRow &target) {
  if (!facts.isNarrow())
    return llvm::Error::success();
  if (!target.has(Capability::Fp8))
    return makeLacking(
        schedule,
        llvm::formatv("8-bit queries on {0}, which has no mma.sync of 8-bit "
                      "floats, expected {1} or a later chip",
                      target.chip, getCapabilityChips(Capability::Fp8)));
  return llvm::Error::success();
}

llvm::Error attn::checkNarrowParts(const ProblemFacts &facts, int64_t keys) {
  if (!facts.isNarrow() || keys % 32 == 0)
    return llvm::Error::success();
  return llvm::createStringError(llvm::formatv(
      "8-bit operands need parts of blocks of multiples of 32 keys, got {0}",
      keys));
}

void attn::setNarrowRange(OnlineSoftmaxOp softmax) {
  bool bets = softmax.getPolicy() == SoftmaxPolicy::Optimistic;
  softmax.setOffset(APFloat(bets ? 3.0f : 8.0f));
  softmax.setGrowth(APFloat(bets ? 4.0f : 0.0f));
  softmax.setLimit(APFloat(440.0f));
}

void attn::setDecidedRange(OnlineSoftmaxOp softmax, FloatType operands) {
  setNarrowRange(softmax);
  double largest =
      APFloat::getLargest(operands.getFloatSemantics()).convertToDouble();
  // Half powers of two are exact in every type.
  double room = std::floor(2 * (std::log2(largest) -
                                softmax.getOffset().convertToFloat())) /
                2;
  // With less a warp whose rows no key decides changes its maxima often. With
  // more the smallest powers of such rows become 0, where slack is needed for
  // it, and rows whose keys are alike but for one lose digits of that one.
  static constexpr Factor kGrowth{"ws_tmem.decided_growth"};
  double growth = kGrowth;
  softmax.setGrowth(APFloat(float(std::min(room, growth))));
  softmax.setSlack(APFloat(float(std::max(growth - room, 0.0))));
}

ArrayRef<SoftmaxPolicy> attn::getUsualPolicies(const ProblemFacts &facts) {
  static constexpr SoftmaxPolicy kOfMaxima[] = {SoftmaxPolicy::Exact};
  if (facts.needsExactMaxima())
    return kOfMaxima;
  static constexpr SoftmaxPolicy wide[] = {SoftmaxPolicy::Optimistic,
                                           SoftmaxPolicy::Exact};
  // A probability that is the largest of its row and no power of two is rounded
  // to the few digits of 8 bits, which a bet on the maximum leads to
  // (docs/Rationale/NarrowTypes.md).
  static constexpr SoftmaxPolicy narrow[] = {SoftmaxPolicy::Threshold,
                                             SoftmaxPolicy::Exact};
  return facts.isNarrow() ? ArrayRef(narrow) : ArrayRef(wide);
}

llvm::Error attn::checkWholeRowScales(llvm::StringRef schedule,
                                      const ProblemFacts &facts) {
  if (!facts.kScales ||
      (facts.scaleGroup == facts.headDim && facts.scaleGroup == facts.valueDim))
    return llvm::Error::success();
  return makeUnsupported(
      schedule, llvm::formatv("scales of {0} columns of keys of {1} and values "
                              "of {2}, expected one of each row",
                              facts.scaleGroup, facts.headDim, facts.valueDim));
}
