//===- StateKey.cpp - When two states go on in the same way ---------------===//
//
// Events are numbered anew, in an order that follows from what they are and not
// from when they were. Counters that only grow are written as differences.
//
//===----------------------------------------------------------------------===//

#include "StateKey.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

namespace mlir::attn::barriers {

class StateKey {
public:
  explicit StateKey(Machine &machine) : m(machine) {}
  std::string make();

private:
  void dropAccesses();
  void dropWords();
  void number(uint32_t event);
  void addAccesses();
  void addBarriers();
  void addWarp(const Warp &warp);
  void addKnowledge(const Knowledge &knows);
  void addSet(const EventSet &set);
  void addEvents(ArrayRef<uint32_t> events);
  void add(int64_t value) {
    key.append(reinterpret_cast<const char *>(&value), sizeof(value));
  }
  int64_t instanceBase(uint32_t step, uint16_t warp) const;
  bool mayTakeTile(const Warp &warp) const {
    return warp.state != Warp::Done &&
           m.program->live[warp.pc].test(m.program->numSlots);
  }

  Machine &m;
  std::string key;
  /// The events in their new order.
  std::vector<uint32_t> order;
};

} // namespace mlir::attn::barriers

/// An access that everybody may rely on with all that comes does not matter.
void StateKey::dropAccesses() {
  for (size_t i = 0; i < m.accesses.size();) {
    uint32_t event = m.accesses[i].event;
    bool isKnown = llvm::all_of(m.warps, [&](const Warp &warp) {
      return warp.state == Warp::Done ||
             (warp.knows.generic.test(event) && warp.knows.async.test(event));
    });
    if (!isKnown) {
      ++i;
      continue;
    }
    m.forget(event);
    m.accesses[i] = m.accesses.back();
    m.accesses.pop_back();
  }
}

/// A word that was read as often as it will be is not read again.
void StateKey::dropWords() {
  for (auto &[place, word] : m.words)
    if (word.reads == word.expected) {
      word.isKnown = false;
      word.value = 0;
    }
}

void StateKey::number(uint32_t event) {
  if (event != 0)
    order.push_back(event);
}

/// Executions of a step are the same one if they have the same number among the
/// warps of a partition.
int64_t StateKey::instanceBase(uint32_t step, uint16_t warp) const {
  uint64_t least = ~uint64_t(0);
  for (auto [index, other] : llvm::enumerate(m.warps)) {
    if (other.cta != m.warps[warp].cta ||
        other.partition != m.warps[warp].partition)
      continue;
    auto found = m.instances.find({step, uint16_t(index)});
    // Warps that never come here have no part in it.
    if (found != m.instances.end())
      least = std::min(least, found->second);
  }
  return least == ~uint64_t(0) ? 0 : least;
}

void StateKey::addAccesses() {
  llvm::sort(m.accesses, [](const Access &a, const Access &b) {
    return std::tie(a.cta, a.base, a.info, a.part, a.warp, a.step, a.isWrite,
                    a.instance) < std::tie(b.cta, b.base, b.info, b.part,
                                           b.warp, b.step, b.isWrite,
                                           b.instance);
  });
  for (const Access &access : m.accesses) {
    number(access.event);
    add(access.cta);
    add(access.base);
    add(access.info);
    add(access.part);
    add(access.warp);
    add(access.step);
    add(access.isWrite);
    // An execution that all warps have behind them is none that comes.
    add(std::max<int64_t>(
        int64_t(access.instance) - instanceBase(access.step, access.warp), -1));
  }
  for (auto &[place, count] : m.instances) {
    add(place.first);
    add(place.second);
    add(int64_t(count) - instanceBase(place.first, place.second));
  }
}

void StateKey::addBarriers() {
  for (Barrier &barrier : m.barriers) {
    add(barrier.isLive);
    add(barrier.pending);
    add(barrier.tx);
    // The first phases are special: nothing comes before them.
    add(barrier.phase < 2 ? barrier.phase : 2 + barrier.phase % 2);
    number(barrier.initEvent);
    number(barrier.complete[0]);
    number(barrier.complete[1]);
    for (auto &signals : barrier.signals) {
      llvm::stable_sort(signals, [&](uint32_t a, uint32_t b) {
        const Signal &one = m.signals[a], &two = m.signals[b];
        return std::tie(one.step, one.warp) < std::tie(two.step, two.warp);
      });
      add(signals.size());
      for (uint32_t event : signals) {
        number(event);
        add(m.signals[event].step);
        add(m.signals[event].warp);
      }
    }
    llvm::sort(barrier.waits,
               [](const Wait &a, const Wait &b) { return a.warp < b.warp; });
    add(barrier.waits.size());
    for (const Wait &wait : barrier.waits) {
      number(wait.event);
      add(wait.warp);
    }
  }
}

void StateKey::addSet(const EventSet &set) {
  int64_t word = 0;
  for (auto [index, event] : llvm::enumerate(order)) {
    word |= int64_t(set.test(event)) << index % 64;
    if (index % 64 == 63) {
      add(word);
      word = 0;
    }
  }
  add(word);
}

void StateKey::addKnowledge(const Knowledge &knows) {
  addSet(knows.generic);
  addSet(knows.async);
  addSet(knows.cause);
}

void StateKey::addEvents(ArrayRef<uint32_t> events) {
  EventSet set;
  for (uint32_t event : events)
    set.set(event);
  addSet(set);
}

void StateKey::addWarp(const Warp &warp) {
  add(warp.state);
  add(warp.pc);
  add(warp.state == Warp::AtBarrier ? warp.barrier : 0);
  if (mayTakeTile(warp))
    add(m.tiles.size() - warp.tiles);
  for (unsigned slot : m.program->live[warp.pc].set_bits()) {
    if (slot == m.program->numSlots)
      continue;
    add(warp.known[slot]);
    if (!warp.known[slot])
      continue;
    bool isGroup = m.program->groupSlots.test(slot);
    int64_t value = warp.values[slot];
    // Groups are told apart by how many came after; those that are complete
    // are all the same.
    if (isGroup)
      value = std::min<int64_t>(warp.closed[1] - value, warp.groups[1].size());
    add(value);
  }
  for (unsigned engine = 0; engine < kGroupEngines; ++engine) {
    addEvents(warp.open[engine]);
    add(warp.groups[engine].size());
    for (const auto &group : warp.groups[engine])
      addEvents(group);
  }
  addKnowledge(warp.knows);
}

std::string StateKey::make() {
  dropAccesses();
  dropWords();
  m.sweep();
  addAccesses();
  addBarriers();
  add(order.size());
  uint32_t last = m.tiles.size();
  for (const Warp &warp : m.warps) {
    addWarp(warp);
    if (mayTakeTile(warp))
      last = std::min(last, warp.tiles);
  }
  for (const Barrier &barrier : m.barriers) {
    addKnowledge(barrier.gathering);
    addKnowledge(barrier.published);
  }
  for (const Knowledge &knows : m.exits)
    addKnowledge(knows);
  // Tiles that somebody has not come to yet.
  for (size_t i = last; i < m.tiles.size(); ++i)
    add(m.tiles[i]);
  if (m.program->dealsTiles)
    add(m.tiles.size() - m.dealt);
  for (auto &[place, word] : m.words) {
    add(place.second);
    add(word.isKnown);
    add(word.value);
    add(word.expected < 0 ? -1 : word.expected - word.reads);
  }
  return std::move(key);
}

std::string barriers::makeStateKey(Machine &machine) {
  return StateKey(machine).make();
}
