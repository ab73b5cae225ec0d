//===- TightPlans.h - Plans with no register to spare -----------*- C++ -*-===//
//
// What a kernel gives up where the sum of registers is near the limit. The
// sums from which on it does so are limits of the register model.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_COPIED_TIGHTPLANS_H
#define ATTN_LIB_SCHEDULE_COPIED_TIGHTPLANS_H

#include "CopiedExtents.h"

namespace mlir::attn {

/// Returns true if the loop over blocks is to keep nothing for the results:
/// what they need of the thread is computed again after it.
bool hasTightLoop(const CopiedPlan &plan, const CopiedExtents &extents);

/// Returns true if zeros in the place of rows that a lone tile lacks take
/// registers that a plan has not. Such rows are asked for as if it were not
/// known that they are missing.
bool hasTightQueries(const ProblemFacts &facts, const CopiedPlan &plan,
                     const CopiedExtents &extents);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COPIED_TIGHTPLANS_H
