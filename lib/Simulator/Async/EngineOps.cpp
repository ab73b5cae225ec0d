//===- EngineOps.cpp - What asynchronous engines share --------------------===//

#include "EngineOps.h"
#include "../Sanitizer/PhaseChecks.h"
#include "MbarrierOps.h"

using namespace mlir::attn::sim;

bool mlir::attn::sim::decideNow(Cluster &cluster, AsyncTiming timing) {
  return timing == AsyncTiming::Issue ||
         (timing == AsyncTiming::Random && cluster.rng() % 2);
}

void mlir::attn::sim::signalBytes(Cluster &cluster, EngineOp &op, Cta *cta,
                                  uint32_t barrier, int64_t bytes) {
  auto it = cta->mbarriers.find(barrier);
  Exec x(*cluster.machine, cluster);
  if (it != cta->mbarriers.end() && !cta->exited) {
    Mbarrier &b = it->second;
    if (op.control) {
      x.warp = op.issuer;
      x.cta = op.issuer->cta;
      x.pc = op.inst;
      b.gathering.control.join(*op.control);
      noteSignal(x, b, *cta, PhaseEvent::Copy, *op.control, 0);
    }
    return completeTx(cluster, b, bytes);
  }
  Finding f;
  f.kind =
      cta->exited ? FindingKind::ExitInFlight : FindingKind::MbarrierMisuse;
  f.message =
      op.describe() + (cta->exited ? " signals a CTA that has exited"
                                   : " signals an mbarrier that is not valid");
  f.second = x.siteOf(op.inst, op.issuer->cta, op.issuer->id, -1);
  f.space = "shared";
  f.offset = barrier;
  f.address = cta->rank << 24 | (SharedBase + barrier);
  f.bytes = 8;
  cluster.machine->report(std::move(f));
}
