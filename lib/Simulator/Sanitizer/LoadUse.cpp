//===- LoadUse.cpp - Loads that nothing has used --------------------------===//

#include "LoadUse.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::attn::sim;

/// Whether signals to other CTAs may order loads. Without A4 they publish
/// nothing else either.
static bool tracksLoads(const Exec &x) {
  return x.sanitizing() && x.cluster.ctas.size() > 1 &&
         x.machine.config.assumes(Assumption::ClusterScope);
}

/// The registers that an instruction writes hold what a load has read. False
/// where there is none.
static bool setLoad(LoadUse &loads, const Inst &I, uint32_t load) {
  bool any = false;
  for (unsigned i = 0; i < I.numOps; ++i) {
    if (!(I.written >> i & 1) || I.ops[i].cls == RegClass::Sink)
      continue;
    loads.loadOf[I.ops[i].meta] = load;
    any = true;
  }
  return any;
}

void mlir::attn::sim::noteLoad(Exec &x, const Inst &I) {
  if (!tracksLoads(x))
    return;
  LoadUse &loads = x.warp->order.loads;
  if (loads.loadOf.empty())
    loads.loadOf.assign(x.machine.program.regMetas, 0);
  if (!setLoad(loads, I, x.pc + 1))
    return;
  UnusedLoad load;
  load.actor = x.warp->order.actor;
  load.epoch = x.warp->order.epoch;
  load.inst = x.pc;
  load.rank = x.cta->rank;
  loads.unused.push_back(load);
}

void mlir::attn::sim::noteUse(Warp &warp, const Inst &I) {
  LoadUse &loads = warp.order.loads;
  bool isCopy = I.cls == InstClass::Move;
  uint32_t copied = 0;
  for (unsigned i = 0; i < I.numOps; ++i) {
    uint32_t &load = loads.loadOf[I.ops[i].meta];
    if (!load || I.ops[i].cls == RegClass::Sink)
      continue;
    // Of a copy nothing may be left when the program is assembled.
    if (isCopy && !(I.written >> i & 1)) {
      copied = load;
      continue;
    }
    llvm::erase_if(loads.unused,
                   [&](const UnusedLoad &u) { return u.inst + 1 == load; });
    load = 0;
  }
  if (copied)
    setLoad(loads, I, copied);
}

void mlir::attn::sim::completeLoads(Exec &x) {
  x.warp->order.loads.unused.clear();
  x.warp->order.know.forMemory([&](Clock &clock) {
    llvm::erase_if(clock.unused, [&](const UnusedLoad &load) {
      return load.rank == x.cta->rank;
    });
  });
}

void mlir::attn::sim::publishUnused(const Warp &warp, Knowledge &to) {
  const auto &unused = warp.order.loads.unused;
  if (unused.empty())
    return;
  to.forMemory(
      [&](Clock &clock) { clock.unused.append(unused.begin(), unused.end()); });
}

void mlir::attn::sim::nameSignal(Knowledge &published, uint32_t inst) {
  published.forMemory([&](Clock &clock) {
    for (UnusedLoad &load : clock.unused)
      if (!load.signal)
        load.signal = inst + 1;
  });
}
