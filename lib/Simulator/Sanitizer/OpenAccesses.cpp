//===- OpenAccesses.cpp - What signals to other CTAs overtake -------------===//

#include "OpenAccesses.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::attn::sim;

/// Returns true in a launch of clusters: signals with the scope of the CTA
/// order nothing for others there, and st.async goes as if to another CTA even
/// where each cluster has one.
static bool tracksOpen(const Exec &x) {
  return x.sanitizing() &&
         (x.cluster.ctas.size() > 1 || x.machine.kernel.reqnctapercluster[0]) &&
         x.machine.config.assumes(Assumption::ClusterScope);
}

/// The registers that an instruction writes hold what a load has read. False
/// where there is none.
static bool setLoad(OpenAccesses &open, const Inst &I, uint32_t load) {
  bool any = false;
  for (unsigned i = 0; i < I.numOps; ++i) {
    if (!I.writes(i) || I.ops[i].cls == RegClass::Sink)
      continue;
    open.loadOf[I.ops[i].meta] = load;
    any = true;
  }
  return any;
}

void mlir::attn::sim::noteLoad(Exec &x, const Inst &I) {
  if (!tracksOpen(x))
    return;
  OpenAccesses &open = x.warp->order.open;
  if (open.loadOf.empty())
    open.loadOf.assign(x.machine.program.regMetas, 0);
  if (!setLoad(open, I, x.pc + 1))
    return;
  UnusedLoad load;
  load.actor = x.warp->order.actor;
  load.epoch = x.warp->order.epoch;
  load.inst = x.pc;
  load.rank = x.cta->rank;
  open.unused.push_back(load);
}

void mlir::attn::sim::noteUse(Warp &warp, const Inst &I) {
  OpenAccesses &open = warp.order.open;
  bool isCopy = I.cls == InstClass::Move;
  uint32_t copied = 0;
  for (unsigned i = 0; i < I.numOps; ++i) {
    uint32_t &load = open.loadOf[I.ops[i].meta];
    if (!load || I.ops[i].cls == RegClass::Sink)
      continue;
    // Of a copy nothing may be left when the program is assembled.
    if (isCopy && !I.writes(i)) {
      copied = load;
      continue;
    }
    llvm::erase_if(open.unused,
                   [&](const UnusedLoad &u) { return u.inst + 1 == load; });
    load = 0;
  }
  if (copied)
    setLoad(open, I, copied);
}

void mlir::attn::sim::noteStore(Exec &x) {
  OpenAccesses &open = x.warp->order.open;
  if (!open.storesFrom && tracksOpen(x))
    open.storesFrom = x.warp->order.epoch;
}

void mlir::attn::sim::completeStores(Exec &x) {
  x.warp->order.open.storesFrom = 0;
  x.warp->order.know.forMemory([&](Clock &clock) {
    llvm::erase_if(clock.unreleased, [&](const UnreleasedStores &stores) {
      return stores.rank == x.cta->rank;
    });
  });
}

void mlir::attn::sim::completeAccesses(Exec &x) {
  completeStores(x);
  x.warp->order.open.unused.clear();
  x.warp->order.know.forMemory([&](Clock &clock) {
    llvm::erase_if(clock.unused, [&](const UnusedLoad &load) {
      return load.rank == x.cta->rank;
    });
  });
}

void mlir::attn::sim::publishOpen(const Warp &warp, Knowledge &to) {
  const OpenAccesses &open = warp.order.open;
  if (open.unused.empty() && !open.storesFrom)
    return;
  UnreleasedStores stores;
  stores.from = open.storesFrom;
  stores.actor = warp.order.actor;
  stores.rank = warp.cta->rank;
  to.forMemory([&](Clock &clock) {
    // Of what a clock does not know it needs no exceptions.
    uint32_t known = clock.getKnownEpoch(stores.actor);
    for (const UnusedLoad &load : open.unused)
      if (load.epoch <= known)
        clock.unused.push_back(load);
    if (stores.from && stores.from <= known)
      clock.unreleased.push_back(stores);
  });
}

void mlir::attn::sim::nameSignal(Knowledge &published, uint32_t inst) {
  auto name = [&](auto &open) {
    if (!open.signal)
      open.signal = inst + 1;
  };
  published.forMemory([&](Clock &clock) {
    llvm::for_each(clock.unused, name);
    llvm::for_each(clock.unreleased, name);
  });
}
