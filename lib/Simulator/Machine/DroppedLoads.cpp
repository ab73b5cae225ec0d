//===- DroppedLoads.cpp - Races of loads that nobody needs ----------------===//

#include "DroppedLoads.h"
#include "Cluster.h"

using namespace mlir::attn::sim;

void DroppedLoads::prepare(Warp &warp) const {
  warp.visits.assign(2 * fates.countSlots(), 0);
}

void DroppedLoads::note(Warp &warp, uint32_t pc, uint32_t reached,
                        uint32_t active) const {
  uint32_t slot = fates.getSlot(pc);
  warp.visits[2 * slot] |= reached;
  warp.visits[2 * slot + 1] |= active;
}

/// Lanes to which the value of a load has made a difference.
static uint32_t getUsed(const Warp &warp, const LoadFate &fate) {
  uint32_t used = 0;
  for (const LoadUse &use : fate.uses) {
    uint32_t lanes = warp.visits[2 * use.slot + !use.isGuard];
    used |= use.isShared && lanes ? ~0u : lanes;
  }
  return used;
}

void DroppedLoads::decide(Held each, uint32_t unused) {
  if (!(each.lanes & ~unused)) {
    std::lock_guard<std::mutex> lock(mutex);
    machine.result.droppedLoadRaces += each.count;
    return;
  }
  for (uint64_t i = 0; i < each.count; ++i)
    machine.report(each.race);
}

bool DroppedLoads::hold(const Stamp &reader, const Finding &race) {
  if (!fates.find(reader.inst) || reader.flags & (Stamp::Strong | Stamp::Async))
    return false;
  uint32_t lanes = reader.lane == Stamp::AllLanes ? ~0u : 1u << reader.lane;
  Reader key = makeReader(reader);
  unsigned other = race.second ? race.second->ptxLine : 0;
  std::unique_lock<std::mutex> lock(mutex);
  if (finished.count(reader.cluster)) {
    auto it = dropped.find(key);
    uint32_t unused = it == dropped.end() ? 0 : it->second;
    lock.unlock();
    decide({race, lanes, 1}, unused);
    return true;
  }
  Held &each = held[{key, other}];
  if (!each.count)
    each.race = race;
  each.lanes |= lanes;
  ++each.count;
  return true;
}

void DroppedLoads::finish(Cluster &cluster) {
  std::vector<std::pair<Held, uint32_t>> decided;
  {
    std::lock_guard<std::mutex> lock(mutex);
    finished.insert(cluster.linear);
    for (Warp *warp : cluster.warps)
      for (const LoadFate &fate : fates.get()) {
        Reader reader{cluster.linear, warp->cta->rank, warp->id, fate.inst};
        // Lanes that a stamp of all of them stands for have not all read.
        uint32_t read = warp->visits[2 * fate.slot + 1];
        uint32_t unused = ~getUsed(*warp, fate);
        if (read & unused)
          dropped[reader] = read == (read & unused) ? ~0u : unused;
        for (auto it = held.lower_bound({reader, 0});
             it != held.end() && !(reader < it->first.first);
             it = held.erase(it))
          decided.push_back({std::move(it->second),
                             dropped.count(reader) ? dropped[reader] : 0});
      }
  }
  for (auto &[each, unused] : decided)
    decide(std::move(each), unused);
}
