//===- ThreadBarriers.cpp - Warp, CTA and cluster barriers ----------------===//
//
// A named barrier counts arrivals in whole warps: a warp arrives when all of
// its live lanes have. The same warp may arrive several times in a generation
// (bar.arrive, then bar.sync). Everybody publishes, only waiters acquire.
//
//===----------------------------------------------------------------------===//

#include "ThreadBarriers.h"
#include "../Machine/TraceRecorder.h"
#include "../PTX/Decoder.h"
#include "../Sanitizer/Ordering.h"
#include "../Sanitizer/PhaseChecks.h"
#include "SyncInstructions.h"
#include "WarpSync.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

void mlir::attn::sim::completeNamedBarrier(Cta &cta, unsigned id) {
  NamedBarrier &b = cta.barriers[id];
  if (!b.expected)
    return;
  uint32_t arrived = b.arrived;
  if (!b.countGiven)
    for (const auto &warp : cta.warps)
      if (!warp->live)
        arrived += 32;
  if (arrived < b.expected)
    return;
  uint64_t generation = b.generation++;
  b.resultVotes = b.votes;
  b.resultTrues = b.trues;
  b.votes = b.trues = 0;
  b.arrived = b.expected = 0;
  Cluster &cluster = *cta.cluster;
  ++cluster.counters.barriers;
  for (const auto &warp : cta.warps) {
    uint32_t waiting = 0;
    for (Split &s : warp->splits)
      if (s.block == BlockKind::NamedBarrier && s.arg == id &&
          s.generation == generation) {
        waiting |= s.mask;
        s.block = BlockKind::None;
      }
    if (waiting == 0 || !cluster.machine->config.sanitize)
      continue;
    acquireInto(*warp, b.gathering);
    // Lanes that came one after the other have met here too.
    if (waiting == warp->live)
      synchroniseLanes(*warp);
  }
  b.gathering.clear();
  b.arrivals.complete();
  cluster.advance();
}

namespace {

enum { BarSync, BarArrive, BarPopc, BarAnd, BarOr };

struct BarAux {
  int kind = BarSync;
  bool aligned = true;
  bool hasCount = false;
};

// ops: id, count or none, destination or none, predicate or none.
void execBar(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const BarAux *>(I.aux);
  if (x.resumed) {
    uint32_t id = x.r32(I.ops[0])[llvm::countr_zero(x.active)];
    if (x.cluster.recorder)
      x.cluster.recorder->wait(*x.warp, id, x.split->generation);
    const NamedBarrier &b = x.cta->barriers[id];
    if (o.kind == BarPopc) {
      forLanes(x.active,
               [&](unsigned lane) { x.r32(I.ops[2])[lane] = b.resultTrues; });
      x.setPoison(I.ops[2], 0);
    } else if (o.kind >= BarAnd) {
      bool r = o.kind == BarAnd ? b.resultTrues == b.resultVotes
                                : b.resultTrues != 0;
      x.setPred(I.ops[2], r ? ~0u : 0);
      x.setPoison(I.ops[2], 0);
    }
    return;
  }
  if (o.aligned && !gatherWarp(x))
    return;
  uint64_t id = x.uniform(I.ops[0], "the barrier's number");
  if (x.action == Action::Fault)
    return;
  if (id >= 16)
    return x.fault(FindingKind::BarrierMisuse,
                   "expected a barrier number below 16, got " + Twine(id));
  uint32_t all = x.machine.warpsPerCta * 32;
  uint64_t count = all;
  if (o.hasCount) {
    count = x.uniform(I.ops[1], "the barrier's thread count");
    if (x.action == Action::Fault)
      return;
    if (count == 0 || count % 32 || count > 1024)
      return x.fault(FindingKind::BarrierMisuse,
                     "expected a multiple of 32 threads at barrier " +
                         Twine(id) + ", got " + Twine(count));
  }
  NamedBarrier &b = x.cta->barriers[id];
  if (!b.expected) {
    b.expected = count;
    b.countGiven = o.hasCount;
    b.firstInst = x.pc;
  } else if (b.expected != count) {
    Finding f;
    f.kind = FindingKind::BarrierMisuse;
    f.message =
        ("barrier " + Twine(id) + " is used with " + Twine(count) +
         " threads while a generation of " + Twine(b.expected) + " is open")
            .str();
    f.first = x.siteOf(b.firstInst, x.cta, -1, -1);
    f.second = x.here();
    f.hint = "all participants of one generation have to name the same count";
    return x.fault(std::move(f));
  }
  if (o.kind >= BarPopc) {
    uint32_t p = x.pred(I.ops[3]) & x.active;
    b.votes += llvm::popcount(x.active);
    b.trues += llvm::popcount(p);
  }
  noteArrival(x, b.arrivals, "barrier " + Twine(id));
  if (x.sanitizing())
    b.gathering.join(release(x));
  uint32_t &partial = b.partial[x.warp->id];
  partial |= x.active;
  if ((x.warp->live & ~partial) == 0) {
    partial = 0;
    b.arrived += 32;
  }
  if (x.cluster.recorder)
    x.cluster.recorder->arrive(*x.warp, id, b.generation);
  if (b.arrived > b.expected)
    return x.fault(FindingKind::BarrierMisuse,
                   "more threads arrive at barrier " + Twine(id) +
                       " than the " + Twine(b.expected) + " that it counts");
  uint64_t generation = b.generation;
  if (o.kind != BarArrive)
    x.block(BlockKind::NamedBarrier, id, generation);
  completeNamedBarrier(*x.cta, id);
  if (o.kind != BarArrive)
    x.countWait("barrier", b.generation == generation);
  x.cluster.advance();
}

Error decodeBarCluster(Decoding &c);

void execWarpSync(Exec &x, const Inst &I) {
  if (x.resumed) {
    warpSynchronised(x);
    return;
  }
  uint32_t mask = x.r32(I.ops[0])[llvm::countr_zero(x.active)];
  uint32_t missing = 0;
  forLanes(x.active, [&](unsigned lane) {
    if (!(x.r32(I.ops[0])[lane] >> lane & 1))
      missing |= 1u << lane;
  });
  if (missing)
    return x.fault(FindingKind::BarrierMisuse,
                   "the executing lane is not in its member mask",
                   llvm::countr_zero(missing));
  uint32_t here = x.active;
  for (Split &s : x.warp->splits)
    if (&s != x.split && s.block == BlockKind::WarpSync && s.arg == mask)
      here |= s.mask;
  if (mask & x.warp->live & ~here) {
    if (x.active != x.splitMask && (mask & x.splitMask & ~x.active))
      return x.fault(FindingKind::BarrierMisuse,
                     "lanes of the member mask do not execute the instruction",
                     llvm::countr_zero(mask & x.splitMask & ~x.active));
    return x.block(BlockKind::WarpSync, mask);
  }
  for (Split &s : x.warp->splits)
    if (&s != x.split && s.block == BlockKind::WarpSync && s.arg == mask)
      s.block = BlockKind::None;
  warpSynchronised(x);
}

Error decodeBar(Decoding &c) {
  bool bar = c.ast.base == "bar";
  if (c.take("warp")) {
    if (!c.take("sync"))
      return c.error("expected '.sync'");
    ATTN_SIM_TRY(c.expectOps(1, 1));
    ATTN_SIM_TRY(c.src(c.ast.ops[0], Type::B32));
    return c.set(execWarpSync, InstClass::Barrier);
  }
  if (c.take("cluster"))
    return decodeBarCluster(c);
  c.take("cta");
  auto *o = c.makeAux<BarAux>();
  o->aligned = c.take("aligned") || bar;
  bool red = false;
  if (c.take("sync"))
    o->kind = BarSync;
  else if (c.take("arrive"))
    o->kind = BarArrive;
  else if (c.take("red"))
    red = true;
  else
    return c.error("expected '.sync', '.arrive' or '.red'");
  Type t = Type::None;
  if (red) {
    StringRef op = c.takeAny({"popc", "and", "or"});
    o->kind = op == "popc" ? BarPopc : op == "and" ? BarAnd : BarOr;
    t = c.takeType();
  }
  size_t first = red ? 1 : 0, last = c.numOps() - (red ? 1 : 0);
  if (c.numOps() < first + 1 || last < first + 1 || last > first + 2)
    return c.error("expected a barrier number and a thread count");
  ATTN_SIM_TRY(c.src(c.ast.ops[first], Type::U32));
  o->hasCount = last == first + 2;
  if (o->hasCount)
    ATTN_SIM_TRY(c.src(c.ast.ops[first + 1], Type::U32));
  else
    c.none();
  if (o->kind == BarArrive && !o->hasCount)
    return c.error("expected a thread count");
  if (red) {
    ATTN_SIM_TRY(c.dst(c.ast.ops[0], t));
    ATTN_SIM_TRY(c.srcPred(c.ast.ops.back()));
  }
  return c.set(execBar, InstClass::Barrier);
}

//===----------------------------------------------------------------------===//
// Cluster barrier
//===----------------------------------------------------------------------===//

void execClusterArrive(Exec &x, const Inst &I) {
  // flags: 1 relaxed, 2 aligned.
  if (I.flags & 2 && !gatherWarp(x))
    return;
  Warp &w = *x.warp;
  ClusterBarrier &b = x.cluster.barrier;
  if (w.clusterBarrier.arrived & x.active)
    return x.fault(FindingKind::BarrierMisuse,
                   "a thread arrives twice at the cluster barrier without "
                   "waiting for it",
                   llvm::countr_zero(w.clusterBarrier.arrived & x.active));
  noteArrival(x, b.arrivals, "the cluster barrier");
  if (x.sanitizing()) {
    if (I.flags & 1) {
      // Publishes initialised mbarriers behind their fence, nothing else.
      b.gathering.join(releaseControl(x));
      b.gathering.generic.cluster = x.cluster.linear;
      for (uint16_t actor : w.mbarriers.fencedInits)
        b.gathering.generic.raise(actor, 1);
      if (x.machine.config.assumes(Assumption::LateSignal))
        for (Warp *other : x.cluster.warps)
          b.gathering.generic.raise(
              other->mbarriers.stream.actor,
              w.order.know.generic.fullOf(other->mbarriers.stream.actor));
    } else {
      b.gathering.join(release(x, SyncScope::Cluster));
    }
  }
  w.clusterBarrier.arrived |= x.active;
  // Lanes of one warp may be a generation apart.
  if (b.generation > w.clusterBarrier.generation)
    w.clusterBarrier.earlier |= w.clusterBarrier.owed;
  w.clusterBarrier.owed |= x.active;
  w.clusterBarrier.generation = b.generation;
  if (x.cluster.recorder)
    x.cluster.recorder->arrive(w, -1, b.generation);
  completeClusterBarrier(x.cluster);
  x.cluster.advance();
}

void execClusterWait(Exec &x, const Inst &I) {
  if (!x.resumed && I.flags & 2 && !gatherWarp(x))
    return;
  ClusterBarrier &b = x.cluster.barrier;
  ClusterArrival &own = x.warp->clusterBarrier;
  bool isEarlier = !(x.active & ~own.earlier);
  bool isOver = isEarlier || b.generation > own.generation;
  if (!x.resumed)
    x.countWait("cluster barrier", !isOver);
  if (x.active & ~own.owed)
    return x.fault(FindingKind::BarrierMisuse,
                   "a thread waits at the cluster barrier before it arrives",
                   llvm::countr_zero(x.active & ~own.owed));
  if (isOver) {
    if (x.cluster.recorder)
      x.cluster.recorder->wait(*x.warp, -1,
                               own.generation - (isEarlier ? 1 : 0));
    own.owed &= ~x.active;
    own.earlier &= ~x.active;
    acquire(x, b.published);
    if (x.active == x.warp->live)
      warpSynchronised(x);
    return;
  }
  x.block(BlockKind::ClusterBarrier, 0, b.generation);
}

Error decodeBarCluster(Decoding &c) {
  bool arrive = c.take("arrive");
  if (!arrive && !c.take("wait"))
    return c.error("expected '.arrive' or '.wait'");
  bool relaxed = c.take("relaxed");
  c.take("release");
  c.take("acquire");
  c.inst.flags = (relaxed ? 1 : 0) | (c.take("aligned") ? 2 : 0);
  ATTN_SIM_TRY(c.expectOps(0, 0));
  return c.set(arrive ? execClusterArrive : execClusterWait,
               InstClass::Barrier);
}

} // namespace

void mlir::attn::sim::completeClusterBarrier(Cluster &cluster) {
  bool any = false;
  for (Warp *w : cluster.warps) {
    any |= (w->clusterBarrier.arrived & w->initial) != 0;
    if (w->live & ~w->clusterBarrier.arrived)
      return;
  }
  if (!any)
    return;
  ClusterBarrier &b = cluster.barrier;
  for (Warp *w : cluster.warps)
    w->clusterBarrier.arrived = 0;
  uint64_t generation = b.generation++;
  b.arrivals.complete();
  b.published = std::move(b.gathering);
  b.gathering = Knowledge();
  wake(cluster, nullptr, BlockKind::ClusterBarrier, 0, generation);
  cluster.advance();
}

void mlir::attn::sim::registerBarrierOps(DecodeTable &table) {
  table["bar"] = table["barrier"] = decodeBar;
}
