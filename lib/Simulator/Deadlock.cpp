//===- Deadlock.cpp - What every warp waits for ---------------------------===//
//
// Who would let a warp go on is taken from the phase before: those who
// signalled in it and have not yet in the one that is waited for.
//
//===----------------------------------------------------------------------===//

#include "Deadlock.h"
#include "Async/TensorOperations.h"
#include "attn/Support/WaitGroups.h"
#include "attn/Support/WarpNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;

namespace {

/// Finds out who waits for what in a cluster that cannot go on.
class Waits {
public:
  Waits(Cluster &cluster) : cluster(cluster), x(*cluster.machine, cluster) {}
  void report();

private:
  CtaNames getStyle() const;
  std::string nameOf(ArrayRef<unsigned> warps) const;
  std::string nameShared(uint32_t offset) const;
  void describe(const Warp &warp, const Split &split, Waiter &waiter);
  void describeMbarrier(const Cta &cta, uint32_t offset, Waiter &waiter);
  void describeNamed(const Warp &warp, uint64_t id, Waiter &waiter);
  void describeCluster(Waiter &waiter);
  std::vector<Waiter> collect();

  Cluster &cluster;
  Exec x;
  /// Of each mbarrier that is waited for, by what waiters call it: a signal
  /// of the phase before.
  std::map<std::string, PhaseEvent> usual;
};

} // namespace

CtaNames Waits::getStyle() const {
  const auto &grid = cluster.machine->config.grid;
  bool isAlone = uint64_t(grid[0]) * grid[1] * grid[2] == 1;
  return isAlone ? CtaNames::None : CtaNames::Grid;
}

std::string Waits::nameOf(ArrayRef<unsigned> warps) const {
  std::vector<WarpName> names;
  for (unsigned index : warps)
    names.push_back({cluster.warps[index]->cta->id, cluster.warps[index]->id});
  return describeWarps(names, getStyle());
}

std::string Waits::nameShared(uint32_t offset) const {
  const Machine &machine = *cluster.machine;
  uint32_t dynamic = llvm::alignTo(machine.kernel.staticShared,
                                   machine.program.dynamicSharedAlign);
  for (const SharedVar &var : machine.program.sharedVars) {
    if (!var.kernel.empty() && var.kernel != machine.kernel.name)
      continue;
    uint32_t begin = var.isDynamic ? dynamic : var.offset;
    if (offset < begin || (!var.isDynamic && offset >= begin + var.bytes))
      continue;
    std::string text = "'" + var.name + "'";
    return offset == begin ? text
                           : text + " + " + std::to_string(offset - begin);
  }
  return "at shared offset " + std::to_string(offset);
}

void Waits::describeMbarrier(const Cta &cta, uint32_t offset, Waiter &waiter) {
  waiter.awaited = "the mbarrier " + nameShared(offset);
  auto found = cta.mbarriers.find(offset);
  if (found == cta.mbarriers.end())
    return;
  const Mbarrier &b = found->second;
  waiter.awaited = llvm::formatv("phase {0} of {1}", b.phase, waiter.awaited);
  if (b.pending > 0)
    waiter.lacks = llvm::formatv("{0} of {1}", b.pending,
                                 describeCount(b.expected, "arrival"));
  if (b.tx != 0)
    waiter.lacks +=
        (waiter.lacks.empty() ? "" : " and ") + describeCount(b.tx, "byte");
  bool isForBytes = b.pending <= 0;
  auto counts = [&](const PhaseEvent &signal) {
    return (signal.kind == PhaseEvent::Copy) == isForBytes;
  };
  for (const PhaseEvent &signal : b.previous) {
    bool hasCome = llvm::any_of(b.signals, [&](const PhaseEvent &other) {
      return other.warp == signal.warp && counts(other);
    });
    if (!counts(signal) || hasCome)
      continue;
    usual.try_emplace(waiter.awaited, signal);
    if (cluster.warps[signal.warp]->done())
      waiter.exited.push_back(signal.warp);
    else
      waiter.awaitedOf.push_back(signal.warp);
  }
}

void Waits::describeNamed(const Warp &warp, uint64_t id, Waiter &waiter) {
  const NamedBarrier &b = warp.cta->barriers[id];
  waiter.awaited = llvm::formatv("barrier {0}", id);
  if (b.expected > b.arrived)
    waiter.lacks = llvm::formatv("{0} of {1}", b.expected - b.arrived,
                                 describeCount(b.expected, "thread"));
  // Whose count is that of the CTA misses all who are not there.
  bool isOfAll = b.expected == cluster.machine->threadsPerCta;
  auto isThere = [&](unsigned index) {
    return llvm::any_of(cluster.warps[index]->splits, [&](const Split &s) {
      return s.block == BlockKind::NamedBarrier && s.arg == id;
    });
  };
  for (const auto &other : warp.cta->warps) {
    bool isUsual = llvm::any_of(b.arrivals.previous,
                                [&](const BarrierArrivals::Arrival &arrival) {
                                  return arrival.warp == other->index;
                                });
    if ((isOfAll || isUsual) && !other->done() && !isThere(other->index))
      waiter.awaitedOf.push_back(other->index);
  }
}

void Waits::describeCluster(Waiter &waiter) {
  waiter.awaited = "the cluster barrier";
  for (const Warp *warp : cluster.warps)
    if (!warp->done() && llvm::none_of(warp->splits, [](const Split &s) {
          return s.block == BlockKind::ClusterBarrier;
        }))
      waiter.awaitedOf.push_back(warp->index);
}

void Waits::describe(const Warp &warp, const Split &s, Waiter &waiter) {
  switch (s.block) {
  case BlockKind::None:
    waiter.awaited = "something that it polls";
    if (s.pollAddress)
      describeMbarrier(*warp.cta, (s.pollAddress & 0xffffff) - SharedBase,
                       waiter);
    return;
  case BlockKind::Converge:
    waiter.awaited = "the other lanes of its warp";
    return;
  case BlockKind::WarpSync:
    waiter.awaited = llvm::formatv("lanes {0:x} at bar.warp.sync", s.arg);
    return;
  case BlockKind::NamedBarrier:
    return describeNamed(warp, s.arg, waiter);
  case BlockKind::ClusterBarrier:
    return describeCluster(waiter);
  case BlockKind::Mbarrier:
    waiter.awaited = "an mbarrier";
    return;
  case BlockKind::Registers:
    waiter.awaited = llvm::formatv("{0} registers a thread", s.arg);
    waiter.lacks =
        describeCount(std::max<int64_t>(int64_t(s.arg - warp.registers) * 32 -
                                            int64_t(warp.cta->freeRegisters),
                                        0),
                      "register") +
        llvm::formatv(" ({0} free in the CTA)", warp.cta->freeRegisters).str();
    return;
  case BlockKind::TensorAlloc:
    waiter.awaited = cluster.pairOf(*warp.cta).requests[warp.cta->rank % 2]
                         ? "the other CTA to allocate tensor memory"
                         : "tensor memory";
    return;
  case BlockKind::AsyncWait:
    waiter.awaited = "its asynchronous operations";
    return;
  }
}

std::vector<Waiter> Waits::collect() {
  std::vector<Waiter> waiters, inner;
  for (const Warp *warp : cluster.warps) {
    bool hasOuter = false;
    for (const Split &s : warp->splits) {
      // Lanes that wait for others of their warp wait for what those wait for.
      bool isInner =
          s.block == BlockKind::Converge || s.block == BlockKind::WarpSync;
      Waiter waiter;
      waiter.warp = warp->index;
      waiter.place = s.pc;
      describe(*warp, s, waiter);
      (isInner ? inner : waiters).push_back(std::move(waiter));
      hasOuter |= !isInner;
    }
    if (hasOuter)
      llvm::erase_if(inner,
                     [&](const Waiter &w) { return w.warp == warp->index; });
  }
  llvm::append_range(waiters, inner);
  return waiters;
}

void Waits::report() {
  WaiterNames names;
  for (const Warp *warp : cluster.warps)
    names.warps.push_back({warp->cta->id, warp->id});
  names.ctas = getStyle();
  WaitGroups found = groupWaiters(collect(), names);
  Finding f;
  f.kind = FindingKind::Deadlock;
  f.message = std::move(found.summary);
  for (WaitGroup &group : found.groups) {
    const Warp &warp = *cluster.warps[group.warps.front()];
    Site site = x.siteOf(group.place, warp.cta, warp.id, -1);
    if (!f.second)
      f.second = site;
    if (!group.isSaid)
      f.notes.push_back({std::move(group.text), std::move(site)});
    auto signal = usual.find(group.awaited);
    if (signal == usual.end())
      continue;
    const Warp &from = *cluster.warps[signal->second.warp];
    f.notes.push_back(
        {"the phase before was signalled here, by " + nameOf({from.index}),
         x.siteOf(signal->second.inst, from.cta, from.id, -1)});
  }
  x.report(std::move(f));
}

void mlir::attn::sim::reportDeadlock(Cluster &cluster) {
  for (const auto &cta : cluster.ctas)
    reportLoneRequests(cluster, *cta, "waits for something else");
  Waits(cluster).report();
}
