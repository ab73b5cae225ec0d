//===- BarrierLateLoads.cpp - Loads that signals may overtake -------------===//
//
// Within its CTA a load has happened when others learn of it. A signal of
// default scope to another CTA lets it happen later, until an instruction has
// used its registers (A4 of docs/Simulator.md): only then is it among the
// events that cannot happen any more, and only those does the signal carry.
//
//===----------------------------------------------------------------------===//

#include "BarrierMachine.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// An instruction takes what these loads have read last.
void Machine::useLoads(Warp &warp, const Step &step) {
  ArrayRef<uint32_t> used =
      ArrayRef(program->usedLoads).slice(step.first, step.last - step.first);
  for (const Access &access : accesses)
    if (access.warp == &warp - warps.data() && !access.isLost &&
        llvm::is_contained(used, access.info))
      done(warp).cause.set(access.event);
}

/// Gives a barrier of another CTA what a signal carries: of late loads those
/// only that are complete.
void Machine::handToOtherCta(const Warp &warp, Barrier &barrier, uint32_t event,
                             Knowledge carried) {
  if (!program->hasLateLoads)
    return barrier.gathering.receive(carried);
  for (const Access &access : accesses) {
    if (!program->accesses[access.info].isLate ||
        carried.cause.test(access.event) || !carried.generic.test(access.event))
      continue;
    carried.generic.reset(access.event);
    carried.async.reset(access.event);
    overtaken.push_back(
        {access.event, event, warp.pc, uint16_t(&warp - warps.data())});
  }
  barrier.gathering.receive(carried);
}

/// A signal that a warp has learned of and that may have overtaken a load.
const Overtaken *Machine::findOvertaking(const Access &load,
                                         const Warp &warp) const {
  const auto *found = llvm::find_if(overtaken, [&](const Overtaken &entry) {
    return entry.load == load.event &&
           (warp.knows.all.cause.test(entry.signal) ||
            warp.knows.elected.cause.test(entry.signal) ||
            warp.knows.shares.cause.test(entry.signal));
  });
  return found == overtaken.end() ? nullptr : found;
}
