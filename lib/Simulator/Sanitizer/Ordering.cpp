//===- Ordering.cpp - What warps publish and learn ------------------------===//

#include "Ordering.h"
#include "OpenAccesses.h"

using namespace mlir::attn::sim;

/// Loads whose registers have been used have read their cells (assumption A3).
/// Looks for a use between the load and the release.
void mlir::attn::sim::retireUsedLoads(Exec &x) {
  Warp &w = *x.warp;
  if (w.tcgen05.pendingLoads.empty() ||
      !x.machine.config.assumes(Assumption::LoadUse))
    return;
  const auto &code = x.machine.program.code;
  while (!w.tcgen05.pendingLoads.empty()) {
    auto [pc, epoch, registers] = w.tcgen05.pendingLoads.front();
    const Inst &load = code[pc];
    llvm::SmallVector<uint32_t, 32> metas;
    for (unsigned r = 0; r < registers; ++r)
      metas.push_back(load.ops[1 + r].meta);
    llvm::sort(metas);
    bool used = false;
    // A release before the load in the text was reached around a loop.
    uint32_t end = x.pc > pc ? x.pc : uint32_t(code.size());
    for (uint32_t i = pc + 1; i < end && !used; ++i)
      for (unsigned k = 1; k < code[i].numOps && !used; ++k)
        used =
            std::binary_search(metas.begin(), metas.end(), code[i].ops[k].meta);
    if (!used)
      break;
    w.order.know.tensor.raise(w.tcgen05.loads.actor, epoch);
    w.tcgen05.pendingLoads.pop_front();
  }
}

/// What `lanes` publish of one of the warp's own streams.
static void publishOwn(Clock &clock, uint16_t actor, bool all, uint32_t lanes,
                       uint32_t upTo) {
  if (all) {
    clock.raise(actor, upTo);
    clock.dropPart(actor);
  } else {
    clock.setPart(actor, std::max(clock.fullOf(actor), upTo), lanes);
  }
}

Knowledge mlir::attn::sim::release(Exec &x, SyncScope scope) {
  Knowledge k;
  if (!x.sanitizing())
    return k;
  retireUsedLoads(x);
  if (scope != SyncScope::Cta)
    completeAccesses(x);
  k = x.warp->order.know;
  publishOpen(*x.warp, k);
  // Others learn of tensor operations what has been waited for.
  for (uint16_t actor : {x.warp->mma.actor, x.warp->tcgen05.loads.actor,
                         x.warp->tcgen05.stores.actor})
    k.tensor.dropPart(actor);
  if (!x.machine.config.assumes(Assumption::NoTensorFence)) {
    k.tensor.join(x.warp->tcgen05.acquired);
    k.tensor.limit(x.warp->tcgen05.loads.actor, x.warp->tcgen05.fencedLoads);
    k.tensor.limit(x.warp->tcgen05.stores.actor, x.warp->tcgen05.fencedStores);
  }
  bool all = (x.active & x.warp->live) == x.warp->live;
  for (Clock *clock : k.getStreams()) {
    if (clock->ActorEpochs::empty())
      continue;
    for (uint16_t actor : {x.warp->cpAsync.stream.actor, x.warp->bulk.actor}) {
      Component c = clock->get(actor);
      if (c.lanes == 0 && c.part > c.full)
        publishOwn(*clock, actor, all, x.active, c.part);
    }
  }
  publishOwn(k.generic, x.warp->order.actor, all, x.active,
             x.warp->order.epoch);
  k.control.raise(x.warp->index, x.warp->order.epoch);
  ++x.warp->order.epoch;
  return k;
}

Knowledge mlir::attn::sim::releaseControl(Exec &x) {
  Knowledge k;
  if (!x.sanitizing())
    return k;
  k.control = x.warp->order.know.control;
  k.control.raise(x.warp->index, x.warp->order.epoch);
  ++x.warp->order.epoch;
  return k;
}

void mlir::attn::sim::acquireInto(Warp &warp, const Knowledge &from) {
  // What comes back about this warp's own accesses adds nothing but `full`.
  Clock &generic = warp.order.know.generic;
  Component own = generic.get(warp.order.actor);
  generic.join(from.generic);
  own.full = std::max(own.full, from.generic.fullOf(warp.order.actor));
  generic.set(warp.order.actor, own);
  warp.order.know.async.join(from.async);
  warp.order.know.asyncGlobal.join(from.asyncGlobal);
  warp.order.know.genericShared.join(from.genericShared);
  for (const auto &[rank, clock] : from.asyncOf)
    warp.order.know.asyncOf[rank].join(clock);
  warp.order.know.control.join(from.control);
  if (warp.cta->cluster->machine->config.assumes(Assumption::NoTensorFence))
    warp.order.know.tensor.join(from.tensor);
  else
    warp.tcgen05.acquired.join(from.tensor);
}

void mlir::attn::sim::synchroniseLanes(Warp &warp) {
  warp.order.know.generic.raise(warp.order.actor, warp.order.epoch);
  ++warp.order.epoch;
  for (Clock *clock : warp.order.know.getStreams())
    for (uint16_t actor : {warp.cpAsync.stream.actor, warp.bulk.actor}) {
      Component c = clock->get(actor);
      if (c.lanes == 0 && c.part > c.full)
        clock->raise(actor, c.part);
    }
}

void mlir::attn::sim::acquire(Exec &x, const Knowledge &from) {
  if (x.sanitizing())
    acquireInto(*x.warp, from);
}

void mlir::attn::sim::acquireOwn(Exec &x, const Knowledge &from,
                                 uint32_t lanes) {
  if (!x.sanitizing())
    return;
  LaneExchange &known = x.warp->order.exchanged;
  Component own = from.generic.get(x.warp->order.actor);
  if (own.lanes == 0 || own.part < known.epoch)
    return;
  bool isSame = own.part == known.epoch && own.lanes == known.from;
  known = {own.part, own.lanes, lanes | (isSame ? known.to : 0)};
}

void mlir::attn::sim::warpSynchronised(Exec &x) {
  if (x.sanitizing())
    synchroniseLanes(*x.warp);
}
