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

/// An access that everybody may rely on with all that comes does not matter.
void StateKey::dropAccesses() {
  for (size_t i = 0; i < m.accesses.size();) {
    uint32_t event = m.accesses[i].event;
    bool isTensor = m.accesses[i].isTensor;
    if (!isKnownToAll(event, isTensor ? tensor : generic) ||
        !isKnownToAll(event, isTensor ? handed : async)) {
      ++i;
      continue;
    }
    m.forget(event);
    m.accesses.replaceByLast(i);
  }
}

/// A word that was read as often as it will be is not read again. In its first
/// life it is read as often as others that the same op writes, and as in a run
/// before.
void StateKey::dropWords() {
  for (auto &[place, word] : m.words)
    for (auto &[other, known] : m.words)
      if (word.expected < 0 && known.step == word.step)
        word.expected = known.expected;
  for (auto &[place, word] : m.words)
    if (m.reads.expected && word.expected < 0)
      if (auto known = m.reads.expected->find(word.step);
          known != m.reads.expected->end())
        word.expected = known->second;
  for (auto &[place, word] : m.words)
    if (word.reads == word.expected) {
      word.isKnown = false;
      word.value = 0;
      word.sum.reset();
      word.varied.clear();
    }
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

/// All warps of a partition have executed a step as often, which is as if none
/// had.
bool StateKey::isInStep(uint32_t step, uint16_t warp) const {
  std::optional<uint64_t> count;
  for (auto [index, other] : llvm::enumerate(m.warps)) {
    if (other.cta != m.warps[warp].cta ||
        other.partition != m.warps[warp].partition)
      continue;
    auto found = m.instances.find({step, uint16_t(index)});
    if (found == m.instances.end() ||
        found->second != count.value_or(found->second))
      return false;
    count = found->second;
  }
  return true;
}

/// Positions of a ring of depth d go around in 2 d steps, slot and parity.
static constexpr int64_t kParityShift = 16;

static int64_t getPosition(int64_t cursor, int64_t depth) {
  return (cursor & ((1 << kParityShift) - 1)) +
         depth * (cursor >> kParityShift & 1);
}

/// Returns whether something else than a ring's cursors has touched its bytes,
/// or may, or a step to come does not turn with the ring.
bool StateKey::isShared(uint32_t ring) const {
  const Program &program = *m.program;
  for (const Warp &warp : m.warps)
    if (warp.state != Warp::Done &&
        program.getLive(warp.cta, warp.pc).test(program.numSlots + 1 + ring))
      return true;
  return llvm::any_of(m.accesses, [&](const Access &access) {
    return llvm::is_contained(program.accesses[access.info].overlaid, ring);
  });
}

/// A ring is turned back to where the first cursor that still matters stands.
/// CTAs signal slots of each other, which are the same ones in each of them. A
/// ring of one slot turns by its parity, which only the own CTA waits for, and
/// so does one that keeps its slots.
void StateKey::turnRings() {
  size_t count = m.program->rings.size();
  turns.assign(count * m.program->cluster, 0);
  SmallVector<bool> isTurned(turns.size(), false);
  for (size_t index = 0; index < turns.size(); ++index)
    isTurned[index] = isShared(index % count);
  for (const Warp &warp : m.warps)
    for (unsigned slot : m.program->getLive(warp.cta, warp.pc).set_bits()) {
      if (slot >= m.program->numSlots || !warp.known[slot] ||
          warp.state == Warp::Done)
        continue;
      const RingUse &use = m.program->ringUses[slot];
      if (use.kind != RingUse::Cursor || isTurned[warp.cta * count + use.ring])
        continue;
      const Ring &ring = m.program->rings[use.ring];
      int64_t position = getPosition(warp.values[slot], ring.depth);
      if (ring.keepsSlots)
        position = position / ring.depth * ring.depth;
      for (int64_t cta = 0; cta < m.program->cluster; ++cta)
        if (!ring.turnsAlone() || cta == warp.cta) {
          turnOf(use.ring, cta) = position;
          isTurned[cta * count + use.ring] = true;
        }
    }
}

int64_t StateKey::turnSlot(uint32_t ring, int64_t slot) const {
  int64_t depth = m.program->rings[ring].depth;
  int64_t part = slot / depth * depth;
  return part + (slot % depth + 2 * depth - turns[ring]) % depth;
}

/// The slot that `turnSlot` makes `slot` of.
int64_t StateKey::turnSlotOn(uint32_t ring, int64_t slot) const {
  int64_t depth = m.program->rings[ring].depth;
  int64_t part = slot / depth * depth;
  return part + (slot % depth + turns[ring]) % depth;
}

/// The parity of what is first in a slot, as seen from the turned ring.
int64_t StateKey::turnParity(uint32_t ring, int64_t cta, int64_t slot) {
  int64_t depth = m.program->rings[ring].depth;
  return (slot % depth + 2 * depth - turnOf(ring, cta)) % (2 * depth) / depth;
}

int64_t StateKey::turnValue(const Warp &warp, unsigned slot, int64_t value) {
  const RingUse &use = m.program->ringUses[slot];
  if (ArrayRef<Decision> decisions = m.program->decisions[slot];
      use.kind == RingUse::None && !decisions.empty()) {
    int64_t outcomes = 0;
    for (const Decision &decision : decisions)
      outcomes = 2 * outcomes + decision.decide(value);
    return outcomes;
  }
  if (use.kind == RingUse::None || use.kind == RingUse::Between)
    return value;
  int64_t depth = m.program->rings[use.ring].depth;
  int64_t turn = turnOf(use.ring, warp.cta);
  if (use.kind == RingUse::Index)
    return turnSlot(use.ring, value);
  int64_t cursor = use.kind == RingUse::Cursor ? value : 0;
  if (use.kind == RingUse::Parity) {
    // The cursor that it was taken from is still there, as a rule.
    bool isThere = use.cursor != kNoSlot && warp.known[use.cursor] &&
                   !warp.varied.count(use.cursor);
    if (isThere)
      cursor = warp.values[use.cursor];
    if (!isThere || (cursor >> kParityShift & 1) != value)
      return 4 * depth + 2 * turn + value;
  }
  int64_t position =
      (getPosition(cursor, depth) + 2 * depth - turn) % (2 * depth);
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
        barrierParity[first + i] = turnParity(array.ring, cta, i);
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

/// The groups of accesses that are pending.
void StateKey::findGroups() {
  for (auto [number, warp] : llvm::enumerate(m.warps))
    for (unsigned engine = 0; engine < kGroupEngines; ++engine) {
      int64_t first = int64_t(number * kGroupEngines + engine) << 16;
      size_t count = warp.groups[engine].size();
      for (uint32_t event : warp.open[engine])
        groupOf[event] = first + 1;
      for (auto [index, group] : llvm::enumerate(warp.groups[engine]))
        for (uint32_t event : group)
          groupOf[event] = first + 2 + (count - index);
    }
}

/// Which op loaded matters as long as a use of its registers may come.
int64_t StateKey::findUser(const Access &access) const {
  constexpr int64_t kNobody = -1, kLost = -2;
  if (!m.program->accesses[access.info].isLate)
    return kNobody;
  const WarpKnowledge &knows = m.warps[access.warp].knows;
  for (const Knowledge *part : {&knows.all, &knows.elected, &knows.shares})
    if (part->cause.test(access.event))
      return kNobody;
  return access.isLost ? kLost : access.step;
}

AccessKey StateKey::describe(const Access &access) const {
  bool isShared = sharesWork(access.step);
  int64_t instance = 0;
  // An execution that all warps have behind them is none that comes.
  if (isShared)
    instance = std::max<int64_t>(
        int64_t(access.instance) - instanceBase(access.step, access.warp), -1);
  // Which op read does not matter, only what. What one thread has started it
  // waits for by itself.
  return {access.cta,
          turnBase(access),
          bytesOf(access),
          access.warp,
          access.isWrite,
          access.isAsync + 2 * m.program->steps[access.step].isElected,
          isShared ? access.step : findUser(access),
          instance,
          groupOf.lookup(access.event)};
}

/// Exchanges the rows and the columns of 64 words, halves first.
static void transpose(std::array<uint64_t, 64> &rows) {
  uint64_t mask = 0xffffffff;
  for (unsigned width = 32; width != 0; width /= 2, mask ^= mask << width)
    for (unsigned row = 0; row < 64; row = ((row | width) + 1) & ~width) {
      uint64_t moved = ((rows[row] >> width) ^ rows[row | width]) & mask;
      rows[row] ^= moved << width;
      rows[row | width] ^= moved;
    }
}

/// From what each set knows to who knows each event, all at once.
void StateKey::transposeSets() {
  size_t eventWords = 0;
  for (const EventSet *set : sets)
    eventWords = std::max(eventWords, set->getWords().size());
  knowerWords = llvm::divideCeil(sets.size(), 64);
  knowers.assign(64 * eventWords * knowerWords, 0);
  for (size_t event = 0; event < eventWords; ++event)
    for (size_t block = 0; block < knowerWords; ++block) {
      std::array<uint64_t, 64> rows = {};
      uint64_t any = 0;
      for (size_t i = 64 * block; i < std::min(sets.size(), 64 * block + 64);
           ++i)
        if (event < sets[i]->getWords().size())
          any |= rows[i % 64] = sets[i]->getWords()[event];
      if (any == 0)
        continue;
      transpose(rows);
      for (size_t i = 0; i < 64; ++i)
        knowers[(64 * event + i) * knowerWords + block] = rows[i];
    }
}

/// Who knew an event when the sets were transposed; empty for nobody.
ArrayRef<uint64_t> StateKey::wordsOf(uint32_t event) const {
  if (event * knowerWords >= knowers.size())
    return {};
  return ArrayRef<uint64_t>(knowers).slice(event * knowerWords, knowerWords);
}

EventSet StateKey::knowersOf(uint32_t event) const {
  EventSet result;
  result.setWords(wordsOf(event));
  return result;
}

/// Two accesses that are the same are as one of which is known what is known of
/// both.
void StateKey::addAccesses() {
  std::vector<std::pair<AccessKey, uint32_t>> order;
  order.reserve(m.accesses.size());
  for (auto [index, access] : llvm::enumerate(m.accesses))
    order.push_back({describe(access), uint32_t(index)});
  llvm::sort(order);
  summary.accesses.reserve(order.size());
  std::vector<bool> kept(order.size(), true);
  for (auto &[key, index] : order) {
    const Access &access = m.accesses[index];
    if (summary.accesses.empty() || summary.accesses.back().first != key) {
      summary.accesses.push_back({key, {access, knowersOf(access.event)}});
      continue;
    }
    StateSummary::Known &known = summary.accesses.back().second;
    known.knowers.intersect(knowersOf(access.event));
    setKnowers(known.access.event, known.knowers);
    m.forget(access.event);
    kept[index] = false;
  }
  m.accesses.keep(kept);
  for (auto &[place, count] : m.instances) {
    if (!sharesWork(place.first) || isInStep(place.first, place.second))
      continue;
    add(place.first);
    add(place.second);
    add(int64_t(count) - instanceBase(place.first, place.second));
  }
}

/// In place of a value, one of each kind of the last tile.
void StateKey::addVaried(const NumberList &values) {
  add(INT64_MIN);
  summary.kinds.add(values);
}

void StateKey::addGroup(ArrayRef<uint32_t> events) {
  std::vector<AccessKey> keys;
  for (const Access &access : m.accesses)
    if (llvm::is_contained(events, access.event))
      keys.push_back(describe(access));
  llvm::sort(keys);
  add(keys.size());
  for (const AccessKey &key : keys)
    for (int64_t value : key)
      add(value);
}

/// Returns true if `turnValue` leaves all values of a slot as they are.
static bool isComparedAsItIs(const Program &program, unsigned slot) {
  RingUse::Kind kind = program.ringUses[slot].kind;
  return kind == RingUse::Between ||
         (kind == RingUse::None && program.decisions[slot].empty());
}

void StateKey::addWarp(const Warp &warp) {
  add(warp.state);
  add(warp.pc);
  add(warp.state == Warp::AtBarrier ? barrierPlace[warp.barrier] : 0);
  if (mayTakeTile(warp))
    add(m.tiles.size() - warp.tiles);
  for (unsigned slot : m.program->getLive(warp.cta, warp.pc).set_bits()) {
    if (slot >= m.program->numSlots)
      continue;
    add(warp.known[slot]);
    auto sum = warp.unknown.find(slot);
    bool isOpen = sum != warp.unknown.end();
    auto varied = warp.varied.find(slot);
    if (summary.leavesOutCounts && m.program->counts.test(slot) &&
        (isOpen || warp.known[slot])) {
      StateSummary::Count count{uint32_t(&warp - m.warps.data()), slot, {}, {}};
      if (isOpen) {
        count.unknowns = sum->second.plus(Affine(-sum->second.constant));
        count.numbers.push_back(sum->second.constant);
        open.sums.push_back(count.unknowns);
      } else if (varied != warp.varied.end()) {
        count.numbers = varied->second;
      } else {
        count.numbers.push_back(warp.values[slot]);
      }
      summary.counts.push_back(std::move(count));
      continue;
    }
    if (isOpen) {
      add(INT64_MAX);
      open.sums.push_back(sum->second);
    }
    if (!warp.known[slot])
      continue;
    bool isGroup = m.program->groupSlots.test(slot);
    auto turn = [&](int64_t number) {
      int64_t value = turnValue(warp, slot, number);
      // Groups are told apart by how many came after; those that are complete
      // are all the same.
      return isGroup ? std::min<int64_t>(warp.closed[1] - value,
                                         warp.groups[1].size())
                     : value;
    };
    if (varied == warp.varied.end())
      add(turn(warp.values[slot]));
    else if (!isGroup && isComparedAsItIs(*m.program, slot))
      addVaried(varied->second);
    else
      addVaried(varied->second.map(turn));
  }
  for (unsigned engine = 0; engine < kGroupEngines; ++engine)
    add(warp.groups[engine].size());
  add(warp.hasOpenStores);
  add(warp.hasSignalled | warp.heardOfNone << 1 |
      int64_t(warp.commits.size()) << 2);
  add(warp.rare.size());
  // What will be pending again behind a path that may be left out.
  for (const auto &groups : warp.rareGroups) {
    add(groups.size());
    for (const auto &group : groups)
      addGroup(group);
  }
}

/// All sets of events, in an order that is the same in states with one text.
void StateKey::collectSets() {
  // With `isOfAll` of all threads of a warp that goes on.
  auto collect = [&](Knowledge &knows, bool isOfAll = false) {
    if (isOfAll) {
      generic.set(sets.size());
      async.set(sets.size() + 1);
      cause.set(sets.size() + 2);
    }
    causes.set(sets.size() + 2);
    sets.append({&knows.generic, &knows.async, &knows.cause});
    if (m.program->tensorColumns == 0)
      return;
    if (isOfAll) {
      tensor.set(sets.size());
      handed.set(sets.size() + 1);
    }
    sets.append({&knows.tensor, &knows.handed});
  };
  for (Warp &warp : m.warps) {
    bool goesOn = warp.state != Warp::Done;
    collect(warp.knows.all, goesOn);
    collect(warp.knows.shares);
    if (Machine::mayBeElected(warp))
      collect(warp.knows.elected);
    if (m.program->tensorColumns != 0)
      collect(warp.products);
    for (EventSet &earlier : warp.commits) {
      causes.set(sets.size());
      sets.push_back(&earlier);
    }
    for (WarpKnowledge &knows : warp.rare) {
      collect(knows.all, goesOn);
      collect(knows.shares);
      collect(knows.elected);
    }
    for (EventSet &made : warp.rareEvents)
      sets.push_back(&made);
  }
  for (uint32_t number : barrierOrder) {
    collect(m.barriers[number].gathering);
    collect(m.barriers[number].published);
  }
  for (Knowledge &knows : m.exits)
    collect(knows);
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
    if (word->sum) {
      add(INT64_MAX);
      open.sums.push_back(*word->sum);
    } else if (word->varied.empty())
      add(word->value);
    else
      addVaried(word->varied);
    add(word->expected < 0 ? -1 : word->expected - word->reads);
  }
}

/// It goes over all sets of events, and over the state a few times.
void StateKey::countWork(Work &work) const {
  work.add((sets.size() + knowers.size() / 64 + summary.places.size() / 64) /
               4 +
           summary.accesses.size() + summary.others.size() +
           m.instances.size() * m.warps.size() / 16 +
           m.accesses.size() * m.program->accesses.size() / 64);
  work.take(summary.facts);
  work.take(m.facts);
  if (open.counted)
    work.take(m.unknowns->ofEachLaunch);
}

StateSummary &StateKey::summarise(Work &work) {
  m.settleDifferences();
  if (m.program->hasOpenTiles())
    m.forgetTrips();
  dropWords();
  m.sweep();
  turnRings();
  orderBarriers();
  learnOwn();
  learnPublished();
  collectSets();
  transposeSets();
  learnCompletions();
  dropAccesses();
  dropSignals();
  findGroups();
  addAccesses();
  addBarriers();
  for (auto [cta, tensor] : llvm::enumerate(m.tensors)) {
    add(tensor.columns);
    add(tensor.isTaken | tensor.waits << 1 | tensor.isBegun << 2 |
        tensor.isOver << 3);
    summary.written.push_back(tensor.written);
    addOther(OtherEvent::Columns, m.barriers.size() + cta, tensor.event);
  }
  uint32_t last = m.tiles.size();
  if (m.program->dealsTiles)
    last = std::min(last, m.dealt);
  for (const Warp &warp : m.warps) {
    addWarp(warp);
    if (mayTakeTile(warp))
      last = std::min(last, warp.tiles);
  }
  // Tiles that somebody has not come to yet.
  for (size_t i = last; i < m.tiles.size(); ++i)
    if (m.program->hasOpenTiles())
      open.sums.push_back(m.getOpenTile(i));
    else if (i == m.openTile && !m.choices.empty())
      addVaried(m.choices);
    else
      add(m.tiles[i]);
  if (m.asksForBlock())
    addVaried(m.choices);
  if (m.program->dealsTiles)
    add(m.tiles.size() - m.dealt);
  addWords();
  if (m.unknowns)
    addUnknowns();
  summary.kinds.finish();
  countWork(work);
  return summary;
}
