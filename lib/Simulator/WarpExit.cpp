//===- WarpExit.cpp - What is left when threads exit ----------------------===//

#include "WarpExit.h"
#include "Async/TensorOperations.h"
#include "Instructions/ThreadBarriers.h"
#include "Sanitizer/PhaseChecks.h"

using namespace mlir::attn::sim;

void mlir::attn::sim::exitAtBarriers(Warp &warp) {
  Cta &cta = *warp.cta;
  for (unsigned id = 0; id < cta.barriers.size(); ++id) {
    NamedBarrier &b = cta.barriers[id];
    uint32_t partial = b.partial[warp.id];
    if (partial && (warp.live & ~partial) == 0) {
      b.partial[warp.id] = 0;
      b.arrived += 32;
    }
    completeNamedBarrier(cta, id);
  }
  completeClusterBarrier(*cta.cluster);
  if (!warp.live) {
    cta.exitControl.join(warp.order.know.control);
    cta.exitControl.raise(warp.index, warp.order.epoch);
  }
  if (cta.liveThreads || cta.exited)
    return;
  cta.exited = true;
  Cluster &cluster = *cta.cluster;
  checkExit(cluster, cta);
  reportLoneRequests(cluster, cta, "exits");
  if (cta.tmem && !cta.tmem->allocations.empty()) {
    Exec x(*cluster.machine, cluster);
    Finding f;
    f.kind = FindingKind::TensorMemoryMisuse;
    f.message = "the CTA exits with tensor memory allocated";
    f.second = x.siteOf(~0u, &cta, -1, -1);
    for (const auto &[column, columns] : cta.tmem->allocations)
      if (const auto &freed = columns.freed) {
        const WarpEvent &event = freed->event;
        const Warp &from = *cluster.warps[event.warp];
        f.first = x.siteOf(event.inst, from.cta, from.id, -1);
      }
    f.hint = "tcgen05.dealloc has to come before the last thread exits";
    cluster.machine->report(std::move(f));
  }
  for (const auto &op : cluster.engine)
    if (op->touches(&cta)) {
      Exec x(*cluster.machine, cluster);
      Finding f;
      f.kind = FindingKind::ExitInFlight;
      f.message =
          "the CTA exits while " + op->describe() + " still uses its memory";
      f.second = x.siteOf(op->inst, op->issuer->cta, op->issuer->id, -1);
      f.hint = "wait for the operation before the last thread exits";
      cluster.machine->report(std::move(f));
    }
}
