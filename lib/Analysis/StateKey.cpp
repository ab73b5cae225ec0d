//===- StateKey.cpp - When two states go on in the same way ---------------===//
//
// Events are numbered anew, in an order that follows from what they are and not
// from when they were. Counters that only grow are written as differences, and
// places in rings relative to a cursor.
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
  bool sharesWork(uint32_t step) const;
  int64_t bytesOf(const Access &access) const;
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

  bool isShared(uint32_t ring) const;
  void turnRings();
  int64_t turnSlot(uint32_t ring, int64_t slot) const;
  int64_t turnParity(uint32_t ring, int64_t slot, int64_t parity) const;
  int64_t turnValue(const Warp &warp, unsigned slot) const;
  int64_t turnBase(const Access &access) const;
  void orderBarriers();
  void addWords();

  Machine &m;
  std::string key;
  /// How far each ring is turned back.
  SmallVector<int64_t> turns;
  /// The numbers of the barriers in the order of the turned rings, the other
  /// way around, and what is added to their phases.
  std::vector<uint32_t> barrierOrder, barrierPlace;
  std::vector<uint8_t> barrierParity;
  /// The events in their new order.
  std::vector<uint32_t> order;
};

} // namespace mlir::attn::barriers

/// An access that everybody may rely on with all that comes does not matter.
void StateKey::dropAccesses() {
  for (size_t i = 0; i < m.accesses.size();) {
    uint32_t event = m.accesses[i].event;
    bool isTensor = m.accesses[i].isTensor;
    bool isKnown = llvm::all_of(m.warps, [&](const Warp &warp) {
      const Knowledge &knows = warp.knows;
      return warp.state == Warp::Done ||
             (isTensor ? knows.tensor.test(event) && knows.handed.test(event)
                       : knows.generic.test(event) && knows.async.test(event));
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

/// Positions of a ring of depth d go around in 2 d steps, slot and parity.
static constexpr int64_t kParityShift = 16;

static int64_t getPosition(int64_t cursor, int64_t depth) {
  return (cursor & ((1 << kParityShift) - 1)) +
         depth * (cursor >> kParityShift & 1);
}

/// Whether something other than a ring's cursors has touched its bytes, or may.
bool StateKey::isShared(uint32_t ring) const {
  const Program &program = *m.program;
  for (const Warp &warp : m.warps)
    if (warp.state != Warp::Done &&
        program.live[warp.pc].test(program.numSlots + 1 + ring))
      return true;
  return llvm::any_of(m.accesses, [&](const Access &access) {
    return llvm::is_contained(program.accesses[access.info].overlaid, ring);
  });
}

/// A ring is turned back to where the first cursor that still matters stands.
void StateKey::turnRings() {
  turns.assign(m.program->rings.size(), 0);
  SmallVector<bool> isTurned(turns.size(), false);
  for (uint32_t ring = 0; ring < turns.size(); ++ring)
    isTurned[ring] = isShared(ring);
  for (const Warp &warp : m.warps)
    for (unsigned slot : m.program->live[warp.pc].set_bits()) {
      if (slot >= m.program->numSlots || !warp.known[slot] ||
          warp.state == Warp::Done)
        continue;
      const RingUse &use = m.program->ringUses[slot];
      if (use.kind != RingUse::Cursor || isTurned[use.ring])
        continue;
      turns[use.ring] =
          getPosition(warp.values[slot], m.program->rings[use.ring]);
      isTurned[use.ring] = true;
    }
}

int64_t StateKey::turnSlot(uint32_t ring, int64_t slot) const {
  int64_t depth = m.program->rings[ring];
  int64_t part = slot / depth * depth;
  return part + (slot % depth + 2 * depth - turns[ring]) % depth;
}

/// The parity of what is in a slot, as seen from the turned ring.
int64_t StateKey::turnParity(uint32_t ring, int64_t slot,
                             int64_t parity) const {
  int64_t depth = m.program->rings[ring];
  int64_t position = slot % depth + depth * parity;
  return (position + 2 * depth - turns[ring]) % (2 * depth) / depth;
}

int64_t StateKey::turnValue(const Warp &warp, unsigned slot) const {
  const RingUse &use = m.program->ringUses[slot];
  int64_t value = warp.values[slot];
  if (use.kind == RingUse::None)
    return value;
  int64_t depth = m.program->rings[use.ring];
  if (use.kind == RingUse::Index)
    return turnSlot(use.ring, value);
  int64_t cursor = use.kind == RingUse::Cursor ? value : 0;
  if (use.kind == RingUse::Parity) {
    // The cursor that it was taken from is still there, as a rule.
    bool isThere = use.cursor != kNoSlot && warp.known[use.cursor];
    if (isThere)
      cursor = warp.values[use.cursor];
    if (!isThere || (cursor >> kParityShift & 1) != value)
      return 4 * depth + 2 * turns[use.ring] + value;
  }
  int64_t position =
      (getPosition(cursor, depth) + 2 * depth - turns[use.ring]) % (2 * depth);
  return use.kind == RingUse::Cursor ? position : position / depth;
}

int64_t StateKey::turnBase(const Access &access) const {
  const AccessInfo &info = m.program->accesses[access.info];
  if (info.ring == kNoRing)
    return access.base;
  int64_t start = info.footprint.getStart();
  int64_t bytes = info.footprint.slotBytes;
  return start + turnSlot(info.ring, (access.base - start) / bytes) * bytes;
}

void StateKey::orderBarriers() {
  barrierOrder.resize(m.barriers.size());
  barrierPlace.resize(m.barriers.size());
  barrierParity.assign(m.barriers.size(), 0);
  for (uint32_t i = 0; i < m.barriers.size(); ++i)
    barrierPlace[i] = i;
  for (int64_t cta = 0; cta < m.program->cluster; ++cta)
    for (const BarrierArray &array : m.program->arrays)
      for (uint32_t i = 0; array.ring != kNoRing && i < array.count; ++i) {
        uint32_t first = cta * m.perCta + array.first;
        barrierPlace[first + i] = first + turnSlot(array.ring, i);
        barrierParity[first + i] = turnParity(array.ring, i, 0);
      }
  for (uint32_t i = 0; i < m.barriers.size(); ++i)
    barrierOrder[barrierPlace[i]] = i;
}

/// True for steps of which the warps of a partition write a part each.
bool StateKey::sharesWork(uint32_t number) const {
  const Step &step = m.program->steps[number];
  if (!step.isCollective())
    return false;
  for (uint32_t access = step.first; access < step.last; ++access)
    if (m.program->accesses[access].footprint.isWrite() &&
        !m.program->accesses[access].isExact)
      return true;
  return false;
}

/// A number for the bytes of an access, the same for the same bytes.
int64_t StateKey::bytesOf(const Access &access) const {
  auto rangesOf = [&](uint32_t info, unsigned part) {
    const Footprint &footprint = m.program->accesses[info].footprint;
    return ArrayRef<ByteRange>(
        footprint.parts[std::min<size_t>(part, footprint.parts.size() - 1)]);
  };
  ArrayRef<ByteRange> ranges = rangesOf(access.info, access.part);
  for (uint32_t info = 0; info <= access.info; ++info) {
    const Footprint &footprint = m.program->accesses[info].footprint;
    for (unsigned part = 0; part < footprint.parts.size(); ++part)
      if (rangesOf(info, part) == ranges)
        return int64_t(info) * 64 + part;
  }
  return -1;
}

void StateKey::addAccesses() {
  auto describe = [&](const Access &access) {
    bool isShared = sharesWork(access.step);
    int64_t instance = 0;
    // An execution that all warps have behind them is none that comes.
    if (isShared)
      instance = std::max<int64_t>(int64_t(access.instance) -
                                       instanceBase(access.step, access.warp),
                                   -1);
    // Which op read does not matter, only what.
    return std::array<int64_t, 8>{access.cta,
                                  turnBase(access),
                                  bytesOf(access),
                                  access.warp,
                                  access.isWrite,
                                  access.isAsync,
                                  isShared ? access.step : -1,
                                  instance};
  };
  llvm::stable_sort(m.accesses, [&](const Access &a, const Access &b) {
    return describe(a) < describe(b);
  });
  for (const Access &access : m.accesses) {
    number(access.event);
    for (int64_t value : describe(access))
      add(value);
  }
  for (auto &[place, count] : m.instances) {
    if (!sharesWork(place.first))
      continue;
    add(place.first);
    add(place.second);
    add(int64_t(count) - instanceBase(place.first, place.second));
  }
}

void StateKey::addBarriers() {
  for (uint32_t number : barrierOrder) {
    Barrier &barrier = m.barriers[number];
    add(barrier.isLive);
    add(barrier.pending);
    add(barrier.tx);
    // The first phases are special: nothing comes before them.
    add(std::min<int64_t>(barrier.phase, 2));
    add((barrier.phase + barrierParity[number]) % 2);
    this->number(barrier.initEvent);
    this->number(barrier.complete[0]);
    this->number(barrier.complete[1]);
    for (auto &signals : barrier.signals) {
      llvm::stable_sort(signals, [&](uint32_t a, uint32_t b) {
        return m.signals[a].warp < m.signals[b].warp;
      });
      add(signals.size());
      for (uint32_t event : signals) {
        this->number(event);
        add(m.signals[event].warp);
        add(m.signals[event].isRemote);
      }
    }
    llvm::sort(barrier.waits,
               [](const Wait &a, const Wait &b) { return a.warp < b.warp; });
    add(barrier.waits.size());
    for (const Wait &wait : barrier.waits) {
      this->number(wait.event);
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
  if (m.program->tensorColumns == 0)
    return;
  addSet(knows.tensor);
  addSet(knows.handed);
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
  add(warp.state == Warp::AtBarrier ? barrierPlace[warp.barrier] : 0);
  if (mayTakeTile(warp))
    add(m.tiles.size() - warp.tiles);
  for (unsigned slot : m.program->live[warp.pc].set_bits()) {
    if (slot >= m.program->numSlots)
      continue;
    add(warp.known[slot]);
    if (!warp.known[slot])
      continue;
    bool isGroup = m.program->groupSlots.test(slot);
    int64_t value = turnValue(warp, slot);
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
  if (m.program->tensorColumns != 0) {
    addKnowledge(warp.products);
    add(warp.hasSignalled);
  }
}

/// Words in the order of the turned rings.
void StateKey::addWords() {
  std::map<std::pair<uint8_t, int64_t>, const Word *> words;
  for (auto &[place, word] : m.words) {
    Access access;
    access.base = place.second;
    for (auto [number, info] : llvm::enumerate(m.program->accesses)) {
      int64_t start = info.footprint.getStart();
      int64_t end = start + info.footprint.slotBytes * info.footprint.numSlots;
      if (info.ring == kNoRing || access.base < start || access.base >= end)
        continue;
      access.info = number;
      access.base = turnBase(access);
      break;
    }
    words[{place.first, access.base}] = &word;
  }
  for (auto &[place, word] : words) {
    add(place.second);
    add(word->isKnown);
    add(word->value);
    add(word->expected < 0 ? -1 : word->expected - word->reads);
  }
}

std::string StateKey::make() {
  dropAccesses();
  dropWords();
  m.sweep();
  turnRings();
  orderBarriers();
  addAccesses();
  addBarriers();
  for (const TensorMemory &tensor : m.tensors) {
    add(tensor.columns);
    add(tensor.isTaken);
    number(tensor.event);
  }
  add(order.size());
  uint32_t last = m.tiles.size();
  for (const Warp &warp : m.warps) {
    addWarp(warp);
    if (mayTakeTile(warp))
      last = std::min(last, warp.tiles);
  }
  for (uint32_t number : barrierOrder) {
    addKnowledge(m.barriers[number].gathering);
    addKnowledge(m.barriers[number].published);
  }
  for (const Knowledge &knows : m.exits)
    addKnowledge(knows);
  // Tiles that somebody has not come to yet.
  for (size_t i = last; i < m.tiles.size(); ++i)
    add(m.tiles[i]);
  if (m.program->dealsTiles)
    add(m.tiles.size() - m.dealt);
  addWords();
  return std::move(key);
}

std::string barriers::makeStateKey(Machine &machine) {
  return StateKey(machine).make();
}
