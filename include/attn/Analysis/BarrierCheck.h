//===- BarrierCheck.h - Is a kernel's synchronisation right? ----*- C++ -*-===//
//
// One run of all warps of a cluster decides for every order of them, as long as
// certain conditions hold on the way, which are checked first
// (docs/BarrierCheck.md). The run is on the barrier rung, where counts, bytes,
// phases, fences and offsets stand, and follows trip counts, slots and
// parities; values of tiles play no part.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_BARRIERCHECK_H
#define ATTN_ANALYSIS_BARRIERCHECK_H

#include "attn/Analysis/BarrierReport.h"

namespace mlir::attn {

/// Judges a kernel at the barrier rung.
BarrierReport checkBarriers(gpu::GPUFuncOp kernel,
                            const BarrierCheckOptions &options);

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_BARRIERCHECK_H
