//===- TightPlans.cpp - Plans with no register to spare -------------------===//

#include "TightPlans.h"
#include "attn/Planner/Facts/RegisterLimit.h"

using namespace mlir;
using namespace mlir::attn;

/// Registers above which a plan's loop keeps nothing for the results.
static constexpr RegisterLimit kRenewedRegisters{"copied.renewed_registers"};
/// Registers from which on a lone tile's rows are left open, and columns of
/// keys, without and with scales of groups of 8-bit keys.
static constexpr RegisterLimit kOpenRegisters{"copied.open_registers"};
static constexpr RegisterLimit kOpenColumns{"copied.open_columns"};
static constexpr RegisterLimit kOpenScaledColumns{"copied.open_scaled_columns"};

bool attn::hasTightLoop(const CopiedPlan &plan, const CopiedExtents &extents) {
  // Slices leave no registers to spare.
  if (plan.getSlice() != 0)
    return true;
  // What rows of K and V do not share is left out.
  return extents.getRegisters(plan).getTotal() -
             extents.getOwnRowRegisters(plan) >
         kRenewedRegisters;
}

bool attn::hasTightQueries(const ProblemFacts &facts, const CopiedPlan &plan,
                           const CopiedExtents &extents) {
  // Fragments of rows that are known not to exist are zeros, which ptxas makes
  // anew where it keeps others.
  if (plan.getRowWarps() != 1 ||
      (facts.hasNarrowKeys() && !hasGroupScales(facts)))
    return false;
  int64_t fewest = facts.hasNarrowKeys() ? kOpenScaledColumns : kOpenColumns;
  return facts.headDim >= fewest &&
         extents.getRegisters(plan).getTotal() >= kOpenRegisters;
}
