//===- MbarrierOps.h - Operations on mbarriers ------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_ASYNC_MBARRIEROPS_H
#define ATTN_LIB_SIMULATOR_ASYNC_MBARRIEROPS_H

#include "../Machine/Exec.h"

namespace mlir::attn::sim {

/// The live mbarrier at a shared address, checked; null after a fault.
Mbarrier *findMbarrier(Exec &x, uint32_t address, int lane, Cta **owner);
/// Counts arrivals (their knowledge is in `gathering` already).
void arriveOn(Exec &x, Mbarrier &b, uint32_t count, int lane);
/// Signals bytes of a copy.
void completeTx(Cluster &cluster, Mbarrier &b, int64_t bytes);
/// Completes the phase if nothing is pending.
void checkPhase(Cluster &cluster, Mbarrier &b);
/// Where a signal of `from` to a barrier of `owner` publishes; null when no
/// wait learns anything from it, because its scope ends at its own CTA.
Knowledge *gatheringOf(Mbarrier &b, const Cta &owner, const Cta &from,
                       bool clusterScope);
/// The actor that stamps operations of `issuer` that signal the barrier.
uint16_t signalActor(const Mbarrier &b, const Cta &owner, const Cta &issuer);
/// Epoch with which copies that signal in the current phase are stamped.
uint32_t phaseEpoch(const Mbarrier &b);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_ASYNC_MBARRIEROPS_H
