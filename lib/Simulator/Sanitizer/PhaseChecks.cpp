//===- PhaseChecks.cpp - Which phase a signal or a wait meets -------------===//

#include "PhaseChecks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::sim;
using llvm::StringRef;

/// Control clocks count epochs of warps, commits of each warp to each CTA,
/// tensor operations of each warp that have completed, and completed phases of
/// mbarriers (Cluster::newPhaseIndex).
static uint32_t commitsTo(const Cluster &cluster, uint32_t warp,
                          const Cta &cta) {
  return cluster.warps.size() + warp * cluster.ctas.size() + cta.rank;
}

static uint32_t completedBy(const Cluster &cluster, uint32_t warp) {
  return cluster.warps.size() * (1 + cluster.ctas.size()) + warp;
}

std::shared_ptr<const Clock> mlir::attn::sim::controlOf(Exec &x) {
  if (!x.sanitizing())
    return nullptr;
  auto clock = std::make_shared<Clock>(x.warp->order.know.control);
  clock->raise(x.warp->index, x.warp->order.epoch);
  return clock;
}

void mlir::attn::sim::noteWait(Exec &x, Mbarrier &b) {
  if (!x.sanitizing())
    return;
  Warp &w = *x.warp;
  PhaseEvent wait;
  wait.warp = w.index;
  // Signals that the warp has sent before do not cover it.
  wait.epoch = ++w.order.epoch;
  wait.inst = x.pc;
  wait.phase = int64_t(b.phase) - 1;
  w.order.know.control.join(b.published.control);
  for (PhaseEvent &earlier : b.waits)
    if (earlier.warp == wait.warp) {
      earlier = wait;
      return;
    }
  b.waits.push_back(wait);
}

/// Whether someone with this clock can tell that the signal has arrived.
static bool knowsOf(const Cluster &cluster, const Cta &owner, const Mbarrier &b,
                    const PhaseEvent &signal, const Clock &control) {
  if (int64_t(control.fullOf(b.phaseIndex)) > signal.phase)
    return true;
  switch (signal.kind) {
  case PhaseEvent::Arrive:
    return control.fullOf(signal.warp) >= signal.epoch;
  case PhaseEvent::Commit:
    return cluster.machine->config.assumes(Assumption::CommitOrder) &&
           control.fullOf(commitsTo(cluster, signal.warp, owner)) >=
               signal.epoch;
  case PhaseEvent::Copy:
    return false;
  }
  return false;
}

uint64_t mlir::attn::sim::knownPhases(Exec &x, const Mbarrier &b) {
  const Clock &control = x.warp->order.know.control;
  auto knowsAll = [&](llvm::ArrayRef<PhaseEvent> signals) {
    return llvm::all_of(signals, [&](const PhaseEvent &p) {
      return knowsOf(x.cluster, *x.cta, b, p, control);
    });
  };
  if (knowsAll(b.previous))
    return b.phase;
  uint64_t known = control.fullOf(b.phaseIndex);
  return b.phase && knowsAll(b.earlier) ? std::max(known, b.phase - 1) : known;
}

void mlir::attn::sim::noteSignal(Exec &x, Mbarrier &b, const Cta &owner,
                                 PhaseEvent::Kind kind, const Clock &control,
                                 uint32_t epoch) {
  if (!x.sanitizing())
    return;
  PhaseEvent signal;
  signal.warp = x.warp->index;
  signal.epoch = epoch;
  signal.inst = x.pc;
  signal.kind = kind;
  signal.phase = b.phase;
  signal.fromOther = x.cta != &owner;
  // Commits of a warp arrive in order, and its arrivals do, so what it sent
  // itself in the same way comes first.
  bool ordered = int64_t(control.fullOf(b.phaseIndex)) >= int64_t(b.phase) ||
                 llvm::all_of(b.previous, [&](const PhaseEvent &p) {
                   return (p.warp == signal.warp && p.kind == kind &&
                           kind != PhaseEvent::Copy) ||
                          knowsOf(x.cluster, owner, b, p, control);
                 });
  if (!ordered && b.phase) {
    Finding f;
    f.kind = FindingKind::MbarrierMisuse;
    f.message =
        llvm::formatv("a signal for phase {0} is not ordered after the "
                      "completion of phase {1}: it may be counted there",
                      b.phase, b.phase - 1)
            .str();
    for (const PhaseEvent &p : b.previous)
      if (!knowsOf(x.cluster, owner, b, p, control)) {
        const Warp &w = *x.cluster.warps[p.warp];
        f.first = x.siteOf(p.inst, w.cta, w.id, -1);
      }
    f.second = x.here();
    f.hint = "wait for the previous phase, or for something that follows its "
             "completion, before the signal";
    x.report(std::move(f));
  }
  if (kind == PhaseEvent::Commit)
    b.gathering.control.raise(commitsTo(x.cluster, signal.warp, owner), epoch);
  for (PhaseEvent &earlier : b.signals)
    if (earlier.warp == signal.warp && earlier.kind == kind) {
      earlier = signal;
      return;
    }
  b.signals.push_back(signal);
}

void mlir::attn::sim::checkCompletion(Cluster &cluster, Mbarrier &b) {
  if (!cluster.machine->config.sanitize)
    return;
  Clock &control = b.gathering.control;
  control.cluster = cluster.linear;
  control.join(b.published.control);
  control.raise(b.phaseIndex, b.phase + 1);
  for (const PhaseEvent &wait : b.waits) {
    if (wait.phase != int64_t(b.phase) - 1 ||
        control.fullOf(wait.warp) >= wait.epoch)
      continue;
    Exec x(*cluster.machine, cluster);
    const Warp &w = *cluster.warps[wait.warp];
    Finding f;
    f.kind = FindingKind::PhaseSlip;
    f.message = llvm::formatv("phase {0} of the mbarrier completes without "
                              "being ordered after a wait for phase {1}: in "
                              "another order the wait would miss its phase",
                              b.phase, wait.phase)
                    .str();
    f.first = x.siteOf(wait.inst, w.cta, w.id, -1);
    if (!b.signals.empty()) {
      const PhaseEvent &s = b.signals.back();
      const Warp &from = *cluster.warps[s.warp];
      f.second = x.siteOf(s.inst, from.cta, from.id, -1);
    }
    f.hint = "whoever waits for a phase has to signal before the next one can "
             "complete";
    cluster.machine->report(std::move(f));
  }
  b.earlier = std::move(b.previous);
  b.previous = std::move(b.signals);
  b.signals.clear();
}

void mlir::attn::sim::noteArrival(Exec &x, BarrierArrivals &arrivals,
                                  const llvm::Twine &what) {
  if (!x.sanitizing())
    return;
  const Warp &w = *x.warp;
  for (const BarrierArrivals::Arrival &p : arrivals.previous) {
    if (p.warp == w.index || w.order.know.control.fullOf(p.warp) >= p.epoch)
      continue;
    const Warp &other = *x.cluster.warps[p.warp];
    Finding f;
    f.kind = FindingKind::BarrierMisuse;
    f.message = ("an arrival at " + what +
                 " is not ordered after its previous generation: it may be "
                 "counted there")
                    .str();
    f.first = x.siteOf(p.inst, other.cta, other.id, -1);
    f.second = x.here();
    f.hint = "wait at the barrier, or for something that the others do after "
             "it, before arriving again";
    x.report(std::move(f));
    break;
  }
  for (BarrierArrivals::Arrival &earlier : arrivals.open)
    if (earlier.warp == w.index) {
      earlier = {w.index, w.order.epoch, x.pc};
      return;
    }
  arrivals.open.push_back({w.index, w.order.epoch, x.pc});
}

void mlir::attn::sim::checkLanded(Cluster &cluster, const Cta &owner,
                                  const Mbarrier &b, const Clock &control,
                                  Site site, StringRef what) {
  for (const auto *list : {&b.previous, &b.signals})
    for (const PhaseEvent &s : *list) {
      if ((s.kind == PhaseEvent::Arrive && !s.fromOther) ||
          knowsOf(cluster, owner, b, s, control))
        continue;
      Exec x(*cluster.machine, cluster);
      const Warp &from = *cluster.warps[s.warp];
      Finding f;
      f.kind = FindingKind::ExitInFlight;
      f.message = (what + " while a signal to one of its mbarriers may be on "
                          "its way")
                      .str();
      f.first = x.siteOf(s.inst, from.cta, from.id, -1);
      f.second = site;
      f.hint = "wait for the signal, or for something that follows its arrival";
      cluster.machine->report(std::move(f));
    }
}

void mlir::attn::sim::noteTensorUse(Exec &x, Cta &cta) {
  if (x.sanitizing() && &cta != x.cta)
    cta.remoteProducts[x.warp->index] = {x.warp->index, x.warp->mma.epoch,
                                         x.pc};
}

void mlir::attn::sim::noteTensorCompletion(Exec &x, Mbarrier &b,
                                           uint32_t epoch) {
  b.gathering.control.raise(completedBy(x.cluster, x.warp->index), epoch);
}

bool mlir::attn::sim::hasSeen(const Exec &x, const WarpEvent &event) {
  return event.warp == x.warp->index ||
         x.warp->order.know.control.fullOf(event.warp) >= event.epoch;
}

bool mlir::attn::sim::hasSeenStart(const Exec &x, const Cta &cta) {
  return llvm::any_of(cta.warps, [&](const std::unique_ptr<Warp> &warp) {
    return x.warp->order.know.control.fullOf(warp->index) > 0;
  });
}

/// Reports tensor operations of other CTAs of which the CTA does not know, when
/// it exits, that they are over.
static void checkTensorUses(Cluster &cluster, Cta &cta, const Site &site) {
  Exec x(*cluster.machine, cluster);
  for (const auto &[index, use] : cta.remoteProducts) {
    if (cta.exitControl.fullOf(completedBy(cluster, index)) >= use.epoch)
      continue;
    const Warp &from = *cluster.warps[index];
    Finding f;
    f.kind = FindingKind::ExitInFlight;
    f.message = "the CTA exits while a tensor operation of the other CTA of "
                "its pair may still use its memory";
    f.first = x.siteOf(use.inst, from.cta, from.id, -1);
    f.second = site;
    f.hint = "wait for a commit behind the operation, or for something that "
             "follows such a wait";
    cluster.machine->report(std::move(f));
  }
}

void mlir::attn::sim::checkExit(Cluster &cluster, Cta &cta) {
  if (!cluster.machine->config.sanitize)
    return;
  Exec x(*cluster.machine, cluster);
  Site site = x.siteOf(~0u, &cta, -1, -1);
  for (const auto &[offset, b] : cta.mbarriers)
    checkLanded(cluster, cta, b, cta.exitControl, site, "the CTA exits");
  for (const auto &[index, touch] : cta.remoteTouches) {
    if (cta.exitControl.fullOf(index) >= touch.first)
      continue;
    const Warp &from = *cluster.warps[index];
    Finding f;
    f.kind = FindingKind::ExitInFlight;
    f.message = "the CTA exits without being ordered after an access of its "
                "shared memory by another CTA";
    f.first = x.siteOf(touch.second, from.cta, from.id, -1);
    f.second = site;
    f.hint = "a cluster barrier after the access and before the exit would "
             "order them";
    cluster.machine->report(std::move(f));
  }
  checkTensorUses(cluster, cta, site);
}
