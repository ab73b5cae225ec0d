//===- ThreadBarriers.h - CTA and cluster barriers --------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_INSTRUCTIONS_THREADBARRIERS_H
#define ATTN_LIB_SIMULATOR_INSTRUCTIONS_THREADBARRIERS_H

#include "../Machine/Cluster.h"

namespace mlir::attn::sim {

/// Releases what waits on the barrier when its count is reached. Called after
/// arrivals and after threads have exited.
void completeNamedBarrier(Cta &cta, unsigned id);
void completeClusterBarrier(Cluster &cluster);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_INSTRUCTIONS_THREADBARRIERS_H
