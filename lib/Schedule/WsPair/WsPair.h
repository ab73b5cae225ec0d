//===- WsPair.h - The schedule ws_pair --------------------------*- C++ -*-===//
//
// For heads whose results are too wide for the registers of one warpgroup: two
// CTAs of a cluster share a tile of 128 query rows, 64 for each of two
// warpgroups. A CTA computes scores and probabilities of its half of the keys
// of a block, which it sends to the other one, and has half of the columns of
// the results. So keys and values are loaded once for 128 rows.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WSPAIR_WSPAIR_H
#define ATTN_LIB_SCHEDULE_WSPAIR_WSPAIR_H

#include "../Core/RoleRegisters.h"
#include "attn/Planner/Facts/RegisterLimit.h"
#include "attn/Schedule/Core/Schedule.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::attn {

struct TilePlan;

/// Rows of a tile: those of two warpgroups. A cluster has two CTAs with the
/// same rows.
inline constexpr int64_t kPairRows = 128, kPairWarpgroups = 2;
inline constexpr int64_t kPairCTAs = 2;

/// Registers that a thread asks for that loads, and one that multiplies.
inline constexpr RegisterLimit kPairLoaderRegisters{"ws_pair.loader_registers"};
inline int64_t getPairRegisters(WsPairPlanAttr plan) {
  return divideRegisters(plan.getThreads(), kPairLoaderRegisters,
                         kPairWarpgroups);
}

/// Keys of a block of whose scores a CTA has all rows.
inline int64_t getOwnKeys(WsPairPlanAttr plan) {
  return plan.getBlockN() / kPairCTAs;
}

/// Columns of the results of a CTA.
inline int64_t getOwnColumns(const ProblemFacts &facts) {
  return facts.valueDim / kPairCTAs;
}

/// Slices of the rows of Q and K, and of the CTA's columns of V.
inline int64_t countKeySlices(const ProblemFacts &facts, WsPairPlanAttr plan) {
  return llvm::divideCeil(facts.headDim, plan.getSlice());
}
inline int64_t countValueSlices(const ProblemFacts &facts,
                                WsPairPlanAttr plan) {
  return llvm::divideCeil(getOwnColumns(facts), plan.getSlice());
}

/// Bytes of the rings and of their mbarriers, and of what the CTAs exchange.
ResourceSum getPairSharedBytes(const ProblemFacts &facts, WsPairPlanAttr plan);

/// Returns which tiles CTAs walk under a plan.
TilePlan getTilePlan(WsPairPlanAttr plan);

/// Emits the kernel of a plan in tile IR.
LogicalResult emitWsPair(KernelContext &context, WsPairPlanAttr plan);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSPAIR_WSPAIR_H
