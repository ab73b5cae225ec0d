//===- SeenSpills.cpp - Plans of split_q that were seen to spill ----------===//
//
// The sum of a plan's registers does not tell the last few. These plans were
// the planner's choice for a causal problem with f16 or bf16 elements, and
// ptxas 13.0 spilled 4 to 64 bytes of them: scripts/plan-sweep.py, which
// compiles all head dimensions and features, prints them. What the planner
// takes in their place was assembled as well.
//
//===----------------------------------------------------------------------===//

#include "SeenSpills.h"
#include "../../Schedule/Copied/CopiedExtents.h"

using namespace mlir;
using namespace mlir::attn;

namespace {
/// What a problem has to have, any of which is enough.
enum When : unsigned {
  kAlways = 0,
  /// A mask, and strides of the launch.
  kStrides = 1,
  /// Sequences of queries that are packed.
  kPacked = 2,
  kWindow = 4,
  /// A last block of keys that is not full.
  kTail = 8,
  /// Query heads that share a key head.
  kGroups = 16,
  kPages = 32,
};

struct SpillingPlan {
  /// Generation of the chips: 8 for sm_80 to sm_89, 9, 10.
  unsigned generation;
  int64_t headDim, valueDim;
  int64_t blockM, blockN, warps, stages;
  bool qInRegs;
  int64_t parts;
  unsigned when = kAlways;
};
} // namespace

// clang-format off
static constexpr SpillingPlan kSpillingPlans[] = {
    {8, 24, 64, 128, 128, 4, 2, false, 4},
    {8, 32, 64, 128, 128, 4, 2, false, 4},
    {8, 32, 96, 128, 64, 4, 2, true, 2},
    {8, 56, 128, 128, 32, 4, 2, false, 1},
    {8, 56, 160, 64, 128, 4, 2, false, 1},
    {8, 56, 256, 64, 64, 4, 2, false, 1},
    {8, 64, 56, 128, 128, 4, 2, false, 4},
    {8, 64, 64, 128, 64, 4, 2, true, 1, kStrides},
    {8, 64, 64, 128, 128, 4, 2, false, 4, kPages},
    {8, 64, 128, 128, 32, 4, 2, false, 1},
    {8, 64, 160, 64, 128, 4, 2, false, 1},
    {8, 88, 80, 128, 64, 4, 2, false, 1},
    {8, 88, 160, 64, 128, 4, 2, false, 1},
    {8, 96, 160, 64, 128, 4, 2, false, 1},
    {8, 104, 112, 64, 128, 4, 2, true, 1},
    {8, 120, 96, 64, 128, 4, 2, true, 1},
    {8, 120, 128, 64, 128, 4, 2, false, 1},
    {8, 120, 128, 128, 32, 4, 2, false, 1},
    {8, 120, 128, 256, 32, 8, 2, false, 1},
    {8, 120, 256, 128, 64, 8, 2, false, 1},
    {8, 120, 256, 128, 64, 8, 2, false, 2},
    {8, 128, 96, 64, 128, 4, 2, true, 1},
    {8, 136, 144, 128, 32, 4, 2, false, 1},
    {8, 136, 144, 256, 32, 8, 2, false, 1},
    {8, 160, 256, 128, 32, 8, 2, true, 1},
    {8, 176, 256, 128, 32, 8, 2, true, 1},
    {8, 184, 192, 64, 64, 4, 2, true, 1},
    {8, 184, 256, 64, 32, 4, 2, true, 1},
    {8, 184, 256, 128, 32, 8, 2, true, 1},
    {8, 184, 256, 128, 64, 8, 2, false, 1},
    {8, 192, 192, 64, 64, 4, 2, true, 1, kPacked | kWindow},
    {8, 192, 192, 64, 32, 4, 2, true, 1, kPacked | kWindow | kPages},
    {8, 248, 192, 64, 32, 4, 2, true, 1},
    {8, 248, 192, 128, 32, 8, 2, true, 1},
    {8, 248, 256, 64, 32, 4, 2, true, 1},
    {8, 248, 256, 128, 32, 8, 2, true, 1},
    {8, 256, 256, 64, 32, 4, 2, true, 1},
    {8, 256, 256, 128, 32, 8, 2, true, 1, kTail | kPacked | kGroups},
    {9, 40, 40, 128, 128, 4, 2, true, 4, kStrides},
    {9, 64, 64, 128, 64, 4, 2, true, 1, kStrides},
    {9, 80, 80, 128, 128, 4, 2, false, 4, kStrides},
    {10, 40, 40, 128, 128, 4, 2, true, 4, kStrides},
    {10, 64, 64, 128, 64, 4, 2, true, 1, kStrides},
    {10, 72, 80, 128, 128, 4, 2, false, 4},
    {10, 80, 80, 128, 128, 4, 2, false, 4},
    {10, 88, 64, 128, 128, 4, 2, false, 4},
    {10, 88, 160, 64, 128, 4, 2, false, 1},
    {10, 96, 64, 128, 128, 4, 2, false, 4},
    {10, 96, 160, 64, 128, 4, 2, false, 1},
    {10, 104, 160, 128, 128, 8, 2, false, 1},
    {10, 112, 160, 128, 128, 8, 2, false, 1},
    {10, 120, 160, 64, 128, 4, 2, false, 1},
    {10, 128, 128, 64, 128, 4, 2, false, 1, kPacked},
    {10, 128, 160, 64, 128, 4, 2, false, 1},
    {10, 152, 160, 64, 128, 4, 2, false, 1},
    {10, 256, 256, 64, 32, 4, 2, true, 1, kPacked | kGroups},
    {10, 256, 256, 128, 32, 8, 2, true, 1, kPacked | kGroups},
};
// clang-format on

/// What of When a problem has, with this plan.
static unsigned getFeatures(const ProblemFacts &facts, SplitQPlanAttr plan) {
  CopiedExtents extents(facts, plan);
  unsigned features = 0;
  if (extents.dynamicStrides && facts.mask.getKind() != MaskKind::None)
    features |= kStrides;
  if (extents.isPacked)
    features |= kPacked;
  if (extents.isWindowed)
    features |= kWindow;
  if (ShapedType::isDynamic(facts.keys) || facts.keys % plan.getBlockN() != 0)
    features |= kTail;
  if (facts.getGroup() != 1)
    features |= kGroups;
  if (extents.isPaged)
    features |= kPages;
  return features;
}

bool attn::wasSeenToSpill(const ProblemFacts &facts, SplitQPlanAttr plan,
                          const TargetRow &target) {
  if (plan.getSoftmax() == SoftmaxPolicy::Exact)
    return false;
  unsigned features = getFeatures(facts, plan);
  return llvm::any_of(kSpillingPlans, [&](const SpillingPlan &row) {
    return (row.when == kAlways || (row.when & features) != 0) &&
           row.generation == target.instructionCapability / 10 &&
           row.headDim == facts.headDim && row.valueDim == facts.valueDim &&
           row.blockM == plan.getBlockM() && row.blockN == plan.getBlockN() &&
           row.warps == plan.getWarps() && row.stages == plan.getStages() &&
           row.qInRegs == plan.getQInRegs() && row.parts == plan.getParts();
  });
}
