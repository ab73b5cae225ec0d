//===- WsTmemSpills.cpp - What ptxas was seen to spill of ws_tmem ---------===//
//
// Sums of registers do not tell: the partitions have unlike budgets.
//
//===----------------------------------------------------------------------===//

#include "../Core/AttentionEmitter.h"
#include "WsTmem.h"

using namespace mlir;
using namespace mlir::attn;

int64_t attn::getTmemBetKeys(bool beside) { return beside ? 96 : 64; }

/// True if a block has all keys, and LLVM knows it.
static bool hasOneBlock(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  return !ShapedType::isDynamic(facts.keys) && facts.keys <= plan.getBlockN();
}

/// What ptxas 13.0 was seen to spill of 128 keys under a mask where LLVM leaves
/// loops out, on chips whose loads have no maximum: 76 to 256 bytes of one
/// block of keys at D 80 and 96, and of one head in all, packed ones among
/// them, whose tiles need no place among heads, there and wherever the last
/// block is not full. Of 112 keys none.
static bool spillsStraight(const ProblemFacts &facts, WsTmemPlanAttr plan,
                           const TargetRow &target) {
  constexpr int64_t kMostKeys = 112, kNarrow = 64, kWide = 112;
  if (!facts.mask.hasRight() || !plan.getOwnBlocks() || plan.getPBeside() ||
      plan.getEpilogue() != EpilogueKind::Staged ||
      target.has(Capability::Tcgen05LdRed) || plan.getBlockN() <= kMostKeys)
    return false;
  bool isBetween = facts.valueDim > kNarrow && facts.valueDim < kWide;
  if (hasOneBlock(facts, plan) && isBetween && !facts.cuSeqlensK)
    return true;
  bool isRagged =
      !ShapedType::isDynamic(facts.keys) && facts.keys % plan.getBlockN() != 0;
  int64_t heads =
      plan.getPackHeads() ? facts.heads / facts.getGroup() : facts.heads;
  return facts.batch == 1 && heads == 1 && (isRagged || isBetween);
}

/// What ptxas 13.0 was seen to spill of a bet on 96 keys under a mask: 4 to 68
/// bytes at D 80 and 96, unless a softcap takes the place of products, and of
/// packed sequences under a window where maxima come with the scores. Of 80
/// keys none.
static bool spillsBet(const ProblemFacts &facts, WsTmemPlanAttr plan,
                      const TargetRow &target) {
  constexpr int64_t kMostKeys = 80, kNarrow = 64;
  bool isMasked = facts.mask.hasLeft() || facts.mask.hasRight();
  if (plan.getSoftmax() != SoftmaxPolicy::Optimistic || !isMasked ||
      !plan.getOwnBlocks() || !plan.getPBeside() ||
      plan.getBlockN() <= kMostKeys)
    return false;
  bool changesScores = getScoreCost(facts).registers != 0;
  if (facts.valueDim > kNarrow && (!changesScores || facts.mask.hasLeft()))
    return true;
  return facts.cuSeqlensK && facts.mask.hasLeft() &&
         target.has(Capability::Tcgen05LdRed);
}

/// What ptxas 13.0 was seen to spill of a bet on three blocks of 96 keys, a
/// number that LLVM knows, without a mask: 24 bytes in all 17 problems of a
/// sweep over head dimensions that took it, on chips whose loads have no
/// maximum.
static bool spillsThreeBlocks(const ProblemFacts &facts, WsTmemPlanAttr plan,
                              const TargetRow &target) {
  constexpr int64_t kMostKeys = 80, kBlocks = 3;
  return plan.getSoftmax() == SoftmaxPolicy::Optimistic && plan.getPBeside() &&
         plan.getBlockN() > kMostKeys &&
         !target.has(Capability::Tcgen05LdRed) && !facts.mask.hasLeft() &&
         !facts.mask.hasRight() && !facts.cuSeqlensK &&
         !ShapedType::isDynamic(facts.keys) &&
         llvm::divideCeil(facts.keys, plan.getBlockN()) == kBlocks;
}

bool WsTmemSchedule::isExpectedToSpill(const ProblemFacts &facts,
                                       PlanAttrInterface planAttr,
                                       const TargetRow &target) const {
  auto plan = cast<WsTmemPlanAttr>(planAttr);
  int64_t block = plan.getBlockN();
  // One query under a mask from the top left has a block or none, which LLVM
  // knows, as it does of one from the bottom right where one block is all:
  // straight code, which spilled 180 to 264 bytes at D 80 and 96 with 128 keys,
  // with 112 and 64 none.
  constexpr int64_t kMostKeysOfOne = 112;
  bool isStraight =
      facts.mask.getAlign() == MaskAlign::TopLeft || hasOneBlock(facts, plan);
  if (facts.queries == 1 && facts.mask.hasRight() && isStraight &&
      plan.getOwnBlocks() && plan.getBlockN() > kMostKeysOfOne)
    return true;
  if (plan.getSoftmax() == SoftmaxPolicy::Optimistic &&
      block > getTmemBetKeys(plan.getPBeside()))
    return true;
  // Regions of masks in a bet on long blocks: 16 to 36 bytes at D 128, Dv 64,
  // unless results leave through memory of their own.
  if (plan.getSoftmax() == SoftmaxPolicy::Optimistic && facts.hasMaskMod() &&
      plan.getOwnBlocks() && block > 64 &&
      plan.getEpilogue() != EpilogueKind::Staged)
    return true;
  // A softcap over 128 keys spilled 16 bytes at D 72, over 112 none.
  constexpr int64_t kMostChangedScores = 112;
  if (getScoreCost(facts).registers != 0 &&
      plan.getBlockN() > kMostChangedScores)
    return true;
  // One block of keys that a window cuts on the left is straight code, too: 4
  // to 32 bytes of 128 keys where probabilities lie beside scores.
  if (hasOneBlock(facts, plan) && facts.mask.hasLeft() && plan.getPBeside() &&
      plan.getBlockN() > kMostChangedScores)
    return true;
  if (spillsStraight(facts, plan, target) || spillsBet(facts, plan, target) ||
      spillsThreeBlocks(facts, plan, target))
    return true;
  // A scale below 0, beside keys that a window leaves out on the left, spilled
  // 8 to 36 bytes over 128 keys where maxima come with the scores and rows of
  // results have 104 columns and more; over 112 keys none, of 96 columns none.
  constexpr int64_t kMostColumnsOfMinima = 96;
  if (facts.scale < 0 && facts.mask.hasLeft() &&
      target.has(Capability::Tcgen05LdRed) &&
      facts.valueDim > kMostColumnsOfMinima &&
      plan.getBlockN() > kMostChangedScores)
    return true;
  // More than seven of 16 exponentials by a polynomial, which no plan is chosen
  // with, spilled 4 to 692 bytes over 128 keys in 11 of 39 problems, over 112
  // and fewer in none of 11.
  constexpr int64_t kMostByPolynomial = 7;
  if (plan.getPolynomial() > kMostByPolynomial &&
      plan.getBlockN() > kMostChangedScores)
    return true;
  return std::max(block, facts.valueDim) + kTmemBesideRegisters >
         kTmemSoftmaxRegisters;
}
