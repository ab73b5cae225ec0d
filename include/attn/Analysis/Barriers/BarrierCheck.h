//===- BarrierCheck.h - Is a kernel's synchronisation right? ----*- C++ -*-===//
//
// One run of all warps of a cluster decides for every order of them, as long as
// certain conditions hold on the way, which are checked first
// (docs/BarrierCheck.md). The run is on the barrier rung, where counts, bytes,
// phases, fences and offsets stand, and follows trip counts, slots and
// parities; values of tiles play no part.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_BARRIERS_BARRIERCHECK_H
#define ATTN_ANALYSIS_BARRIERS_BARRIERCHECK_H

#include "attn/Analysis/Barriers/BarrierReport.h"
#include "attn/Launch/SyncSkeleton.h"
#include "attn/Launch/SyncWitness.h"

namespace mlir::attn {

/// Judges a kernel at the barrier rung.
BarrierReport checkBarriers(gpu::GPUFuncOp kernel,
                            const BarrierCheckOptions &options);

/// The witness of a report as a file: who takes part, and an order of the warps
/// of one cluster that leads there. Where the launch's order of tiles shows
/// something else that is wrong, that is in it; where it shows nothing, there
/// is no order.
SyncWitness recordWitness(gpu::GPUFuncOp kernel,
                          const BarrierCheckOptions &options,
                          const BarrierReport &report);

/// What each warp of a proved kernel does about synchronisation, in runs as a
/// launch has them: one cluster that does all tiles, or one of each kind of
/// block. Without runs where no launch can be followed to its end.
SyncSkeleton recordSkeleton(gpu::GPUFuncOp kernel,
                            const BarrierCheckOptions &options);

/// The ops that make warps wait for something or make others' accesses visible
/// and do nothing else, in the order of the kernel: waits for mbarriers and for
/// groups, barriers of warps, fences. Those whose results are used are left
/// out. Empty where the check cannot follow the kernel.
SmallVector<Operation *> getOrderingOps(gpu::GPUFuncOp kernel);

/// What the check says of the kernel of these ops without them; they are taken
/// out while it runs. There is at least one, and they have no uses.
BarrierReport checkWithout(ArrayRef<Operation *> ops,
                           const BarrierCheckOptions &options);

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_BARRIERS_BARRIERCHECK_H
