//===- PhaseChecks.h - Which phase a signal or a wait meets -----*- C++ -*-===//
//
// Signals and waits name no phase: they meet the one that is current. These
// checks prove from the control clocks that they meet the one that was meant,
// whatever the schedule: a signal comes after the previous phase has completed,
// the next phase completes after every wait for this one, and a CTA exits after
// what is sent to it has arrived and after the tensor operations of others that
// use its memory.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_SANITIZER_PHASECHECKS_H
#define ATTN_LIB_SIMULATOR_SANITIZER_PHASECHECKS_H

#include "../Machine/Exec.h"

namespace mlir::attn::sim {

/// What the executing warp has done so far, for a signal that it sends now.
std::shared_ptr<const Clock> controlOf(Exec &x);

/// A wait by the executing warp has succeeded.
void noteWait(Exec &x, Mbarrier &b);
/// Completed phases of the barrier that the executing warp knows of, before it
/// waits there.
uint64_t knownPhases(Exec &x, const Mbarrier &b);
/// A signal arrives that was sent when `control` was known. For commits `epoch`
/// is their number among those of the warp to this CTA.
void noteSignal(Exec &x, Mbarrier &b, const Cta &owner, PhaseEvent::Kind kind,
                const Clock &control, uint32_t epoch);
/// A phase is about to complete, with what its signals knew in `gathering`.
void checkCompletion(Cluster &cluster, Mbarrier &b);
/// The executing warp is about to arrive at a CTA or cluster barrier: that
/// comes after everybody's arrival in the generation before, or it may be
/// counted there.
void noteArrival(Exec &x, BarrierArrivals &arrivals, const llvm::Twine &what);
/// The owner of a barrier stops using it: what was sent there has arrived.
void checkLanded(Cluster &cluster, const Cta &owner, const Mbarrier &b,
                 const Clock &control, Site site, llvm::StringRef what);
/// Notes that the newest tensor operation of the executing warp uses memory of
/// the CTA.
void noteTensorUse(Exec &x, Cta &cta);
/// Notes that a commit of the executing warp arrives, which covers its tensor
/// operations up to an epoch.
void noteTensorCompletion(Exec &x, Mbarrier &b, uint32_t epoch);
/// Returns whether the executing warp can tell that another warp has executed
/// something.
bool hasSeen(const Exec &x, const WarpEvent &event);
/// Returns whether the executing warp can tell that a CTA has started.
bool hasSeenStart(const Exec &x, const Cta &cta);
/// A CTA exits: nothing is on its way to it.
void checkExit(Cluster &cluster, Cta &cta);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_SANITIZER_PHASECHECKS_H
