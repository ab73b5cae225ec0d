//===- Ordering.cpp - What warps publish and learn ------------------------===//

#include "Ordering.h"

using namespace mlir::attn::sim;

/// Loads whose registers have been used have read their cells (assumption A3).
/// Looks for a use between the load and the release.
void mlir::attn::sim::retireUsedLoads(Exec &x) {
  Warp &w = *x.warp;
  if (w.pendingLoads.empty() || !x.machine.config.assumes(Assumption::LoadUse))
    return;
  const auto &code = x.machine.program.code;
  while (!w.pendingLoads.empty()) {
    auto [pc, epoch, registers] = w.pendingLoads.front();
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
    w.know.tensor.raise(w.tmemLdActor, epoch);
    w.pendingLoads.pop_front();
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

Knowledge mlir::attn::sim::release(Exec &x) {
  Knowledge k;
  if (!x.sanitizing())
    return k;
  retireUsedLoads(x);
  k = x.warp->know;
  // Others learn of tensor operations what has been waited for.
  for (uint16_t actor :
       {x.warp->mmaActor, x.warp->tmemLdActor, x.warp->tmemStActor})
    k.tensor.dropPart(actor);
  if (!x.machine.config.assumes(Assumption::NoTensorFence)) {
    k.tensor.join(x.warp->tensorAcquired);
    k.tensor.limit(x.warp->tmemLdActor, x.warp->fencedLoads);
    k.tensor.limit(x.warp->tmemStActor, x.warp->fencedStores);
  }
  bool all = (x.active & x.warp->live) == x.warp->live;
  for (Clock *clock : k.getStreams()) {
    if (clock->ActorEpochs::empty())
      continue;
    for (uint16_t actor : {x.warp->cpActor, x.warp->bulkActor}) {
      Component c = clock->get(actor);
      if (c.lanes == 0 && c.part > c.full)
        publishOwn(*clock, actor, all, x.active, c.part);
    }
  }
  publishOwn(k.generic, x.warp->actor, all, x.active, x.warp->epoch);
  k.control.raise(x.warp->index, x.warp->epoch);
  ++x.warp->epoch;
  return k;
}

Knowledge mlir::attn::sim::releaseControl(Exec &x) {
  Knowledge k;
  if (!x.sanitizing())
    return k;
  k.control = x.warp->know.control;
  k.control.raise(x.warp->index, x.warp->epoch);
  ++x.warp->epoch;
  return k;
}

void mlir::attn::sim::acquireInto(Warp &warp, const Knowledge &from) {
  // What comes back about this warp's own accesses adds nothing but `full`.
  Clock &generic = warp.know.generic;
  Component own = generic.get(warp.actor);
  generic.join(from.generic);
  own.full = std::max(own.full, from.generic.fullOf(warp.actor));
  generic.set(warp.actor, own);
  warp.know.async.join(from.async);
  warp.know.asyncGlobal.join(from.asyncGlobal);
  warp.know.genericShared.join(from.genericShared);
  for (const auto &[rank, clock] : from.asyncOf)
    warp.know.asyncOf[rank].join(clock);
  warp.know.control.join(from.control);
  if (warp.cta->cluster->machine->config.assumes(Assumption::NoTensorFence))
    warp.know.tensor.join(from.tensor);
  else
    warp.tensorAcquired.join(from.tensor);
}

void mlir::attn::sim::synchroniseLanes(Warp &warp) {
  warp.know.generic.raise(warp.actor, warp.epoch);
  ++warp.epoch;
  for (Clock *clock : warp.know.getStreams())
    for (uint16_t actor : {warp.cpActor, warp.bulkActor}) {
      Component c = clock->get(actor);
      if (c.lanes == 0 && c.part > c.full)
        clock->raise(actor, c.part);
    }
}

void mlir::attn::sim::acquire(Exec &x, const Knowledge &from) {
  if (x.sanitizing())
    acquireInto(*x.warp, from);
}

void mlir::attn::sim::warpSynchronised(Exec &x) {
  if (x.sanitizing())
    synchroniseLanes(*x.warp);
}
