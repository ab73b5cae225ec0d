//===- Results.h - Results against arrays -----------------------*- C++ -*-===//

#ifndef ATTN_HARNESS_RESULTS_H
#define ATTN_HARNESS_RESULTS_H

#include "attn/Harness/HarnessReport.h"
#include "attn/Harness/Npy.h"

namespace mlir::attn::sim {

/// Returns the deviation of O that is accepted for these types of q and o, and
/// for the types of sums that the problem states, if it is known.
double getDefaultTolerance(DType q, DType o,
                           const AttentionProblem *problem = nullptr);

/// Compares what a tensor holds with an array of its type, of f32 or of f64:
/// floats by ‖out - expected‖ / ‖expected‖, of which `tolerance` is accepted (a
/// negative one is the default for the type), integers by the largest
/// difference, of which nothing is. Errors: another shape or type.
llvm::Expected<ComparedResult> compareResult(const HarnessTensor &tensor,
                                             const NpyArray &expected,
                                             double tolerance);

} // namespace mlir::attn::sim

#endif // ATTN_HARNESS_RESULTS_H
