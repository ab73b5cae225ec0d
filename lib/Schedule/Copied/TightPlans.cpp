//===- TightPlans.cpp - Plans with no register to spare -------------------===//

#include "TightPlans.h"
#include "attn/Planner/Facts/Factor.h"

using namespace mlir;
using namespace mlir::attn;

/// Registers above which a plan's loop keeps nothing for the results.
static constexpr Factor kRenewedRegisters{"copied.renewed_registers"};
/// Registers from which on a lone tile's rows are left open, and columns of
/// keys, without and with scales of groups of 8-bit keys.
static constexpr Factor kOpenRegisters{"copied.open_registers"};
static constexpr Factor kOpenColumns{"copied.open_columns"};
static constexpr Factor kOpenScaledColumns{"copied.open_scaled_columns"};

bool attn::hasTightLoop(const CopiedPlan &plan, const CopiedExtents &extents) {
  // Slices leave no registers to spare.
  if (plan.getSlice() != 0)
    return true;
  // What rows of K and V do not share was not counted when this was timed.
  double own = double(extents.getOwnRowRegisters(plan));
  return double(extents.getRegisters(plan).getTotal()) - own >
         kRenewedRegisters;
}

bool attn::hasTightQueries(const ProblemFacts &facts, const CopiedPlan &plan,
                           const CopiedExtents &extents) {
  // Fragments of rows that are known not to exist are zeros, which ptxas makes
  // anew where it keeps others.
  if (plan.getRowWarps() != 1 ||
      (facts.hasNarrowKeys() && !hasGroupScales(facts)))
    return false;
  double fewest =
      facts.hasNarrowKeys() ? double(kOpenScaledColumns) : double(kOpenColumns);
  double registers = double(extents.getRegisters(plan).getTotal());
  return double(facts.headDim) >= fewest && registers >= kOpenRegisters;
}
