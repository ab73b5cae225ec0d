//===- StateKeyEvents.cpp - Phases and signals that still matter ----------===//
//
// Of events that are no accesses the same holds as of accesses: one that
// everybody knows is as one that never was. So a barrier whose last phases all
// know to be complete is as one that was initialised just now.
//
//===----------------------------------------------------------------------===//

#include "StateKey.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// Of these it does not matter in which of the sets of a thread they are.
static constexpr EventSet Knowledge::*kHow[] = {
    &Knowledge::generic, &Knowledge::async, &Knowledge::cause};

bool StateKey::isKnownToAll(uint32_t event, const EventSet &who) const {
  return who.isWithin(knowersOf(event));
}

/// Adds an event to what these sets know.
void StateKey::learn(uint32_t event, ArrayRef<uint64_t> who) {
  for (auto [index, word] : llvm::enumerate(who)) {
    uint64_t &known = knowers[event * knowerWords + index];
    for (uint64_t fresh = word & ~known; fresh != 0; fresh &= fresh - 1)
      sets[64 * index + llvm::countr_zero(fresh)]->set(event);
    known |= word;
  }
}

/// What all threads of a warp know, the elected one and each thread know too.
/// Who has exited needs to know nothing.
void StateKey::learnOwn() {
  for (Warp &warp : m.warps) {
    if (warp.state == Warp::Done) {
      warp.knows = WarpKnowledge();
      warp.products = Knowledge();
      warp.commits.clear();
      continue;
    }
    for (Knowledge *part : {&warp.knows.elected, &warp.knows.shares})
      for (EventSet Knowledge::*how : kHow)
        (part->*how).join(warp.knows.all.*how);
  }
}

/// Returns what those threads of a warp know that may still use mbarriers of an
/// array, if there are any: all of them, or the elected one. It stays known,
/// but for what is learned on a path that may be left out.
const Knowledge *StateKey::findUsers(const Warp &warp, size_t array,
                                     bool isWait) const {
  const llvm::BitVector &live = m.program->getLive(warp.cta, warp.pc);
  auto is = [&](BarrierUse use) {
    return live.test(m.program->getBarrierBit(use, array));
  };
  if (warp.state == Warp::Done ||
      !is(isWait ? BarrierUse::Wait : BarrierUse::Other))
    return nullptr;
  const WarpKnowledge &knows =
      warp.rare.empty() ? warp.knows : warp.rare.front();
  if (is(isWait ? BarrierUse::SharedWait : BarrierUse::SharedOther))
    return &knows.all;
  return Machine::mayBeElected(warp) ? &knows.elected : nullptr;
}

/// What a barrier has published is for those who may still wait at it. That it
/// publishes what all of them know anyway says no more; where nobody will wait,
/// it publishes to nobody.
void StateKey::learnPublished() {
  for (int64_t cta = 0; cta < m.program->cluster; ++cta)
    for (auto [number, array] : llvm::enumerate(m.program->arrays)) {
      Knowledge common;
      bool isWaitedFor = false;
      for (const Warp &warp : m.warps) {
        const Knowledge *waiter = warp.cta == cta
                                      ? findUsers(warp, number, /*isWait=*/true)
                                      : nullptr;
        if (!waiter)
          continue;
        for (EventSet Knowledge::*how : kHow)
          if (isWaitedFor)
            (common.*how).intersect(waiter->*how);
          else
            common.*how = waiter->*how;
        isWaitedFor = true;
      }
      uint32_t first = cta * m.perCta + array.first;
      if (!isWaitedFor)
        std::fill_n(barrierParity.begin() + first, array.count, kNobodyAsks);
      for (uint32_t i = first; i < first + array.count; ++i)
        for (EventSet Knowledge::*how : kHow)
          if (isWaitedFor)
            (m.barriers[i].published.*how).join(common.*how);
          else
            (m.barriers[i].published.*how).clear();
    }
}

/// Who knows all signals of a phase knows that it is complete, and who knows
/// that of a phase knows it of the one before. Written down it stays known
/// where states are joined of which one knows the one, and one the other.
void StateKey::learnCompletions() {
  SmallVector<uint64_t> who;
  auto meet = [&](uint32_t event) {
    ArrayRef<uint64_t> more = wordsOf(event);
    for (auto [index, word] : llvm::enumerate(who))
      word &= index < more.size() ? more[index] : 0;
  };
  for (Barrier &barrier : m.barriers)
    for (unsigned level : {0, 1}) {
      uint32_t complete = barrier.complete[level];
      if (wordsOf(complete).empty() || complete == 0)
        continue;
      who.assign(causes.getWords().begin(), causes.getWords().end());
      for (uint32_t event : barrier.signals[level + 1])
        meet(event);
      if (!barrier.signals[level + 1].empty())
        learn(complete, who);
      if (level == 1 && barrier.complete[0] != 0) {
        who.assign(causes.getWords().begin(), causes.getWords().end());
        meet(barrier.complete[0]);
        learn(complete, who);
      }
      who.assign(causes.getWords().begin(), causes.getWords().end());
      meet(complete);
      for (uint32_t event : barrier.signals[level + 1])
        if (!wordsOf(event).empty())
          learn(event, who);
    }
}

/// A phase that all who may ask for it know to be complete does not matter, nor
/// do its signals: nothing is asked of it that does not hold. Of the one before
/// it only those are asked who wait. Of a barrier of warps all are asked.
void StateKey::dropSignals() {
  const Program &program = *m.program;
  for (auto [index, barrier] : llvm::enumerate(m.barriers)) {
    int64_t cta = index / m.perCta;
    const auto *array = llvm::find_if(program.arrays, [&](const auto &array) {
      return index % m.perCta - array.first < array.count;
    });
    bool isMbarrier = cta < program.cluster && array != program.arrays.end();
    size_t number = array - program.arrays.begin();
    // Those who wait are of the CTA, others may be of each.
    auto isKnownToUsers = [&](uint32_t event, bool byAll) {
      return llvm::none_of(m.warps, [&](const Warp &warp) {
        const Knowledge *waiter = warp.cta == cta
                                      ? findUsers(warp, number, /*isWait=*/true)
                                      : nullptr;
        const Knowledge *other =
            byAll ? findUsers(warp, number, /*isWait=*/false) : nullptr;
        return (waiter && !waiter->cause.test(event)) ||
               (other && !other->cause.test(event));
      });
    };
    // A CTA knows at its exit what one of its warps knows that goes on.
    auto isKnownAtExit = [&](uint32_t event) {
      return m.exits[cta].cause.test(event) ||
             llvm::any_of(m.warps, [&](const Warp &warp) {
               const WarpKnowledge &knows =
                   warp.rare.empty() ? warp.knows : warp.rare.front();
               return warp.cta == cta && warp.state != Warp::Done &&
                      (knows.all.cause.test(event) ||
                       knows.elected.cause.test(event));
             });
    };
    auto isKnown = [&](uint32_t event) {
      if (event == 0)
        return false;
      return isMbarrier
                 ? isKnownAtExit(event) && isKnownToUsers(event, /*byAll=*/true)
                 : isKnownToAll(event, cause);
    };
    auto drop = [&](unsigned level) {
      m.forget(barrier.complete[level]);
      barrier.complete[level] = 0;
      for (uint32_t event : barrier.signals[level + 1])
        m.forget(event);
      barrier.signals[level + 1].clear();
    };
    bool knowsLast = isKnown(barrier.complete[0]);
    // `complete[1]` is not there where it was dropped before.
    bool isAsked = barrier.complete[1] != 0 && isMbarrier &&
                   !isKnownToUsers(barrier.complete[1], /*byAll=*/false);
    if (knowsLast || !isAsked)
      drop(1);
    if (knowsLast)
      drop(0);
    llvm::erase_if(barrier.waits, [&](const Wait &wait) {
      if (!isKnown(wait.event))
        return false;
      m.forget(wait.event);
      return true;
    });
  }
}

void StateKey::addOther(OtherEvent::Kind kind, uint32_t place, uint32_t event,
                        uint32_t step, uint16_t warp, bool isRemote) {
  if (event == 0)
    return;
  OtherEvent other{place, kind, warp, isRemote, 0, event, step};
  if (!summary.others.empty()) {
    OtherEvent &last = summary.others.back();
    uint16_t number = last.number;
    last.number = 0;
    if (last.getKey() == other.getKey())
      other.number = number + 1;
    last.number = number;
  }
  summary.others.push_back(other);
  size_t first = summary.otherKnowers.size();
  summary.otherKnowers.resize(first + knowerWords, 0);
  llvm::copy(wordsOf(event), summary.otherKnowers.begin() + first);
}

void StateKey::addSignals(Barrier &barrier, unsigned level, uint32_t place) {
  SmallVector<uint32_t, 4> &signals = barrier.signals[level];
  auto whose = [&](uint32_t event) {
    const Signal &signal = m.signals[event];
    return std::make_pair(signal.warp, signal.isRemote);
  };
  llvm::stable_sort(
      signals, [&](uint32_t a, uint32_t b) { return whose(a) < whose(b); });
  for (uint32_t event : signals) {
    const Signal &signal = m.signals[event];
    addOther(OtherEvent::Kind(OtherEvent::SignalNow + level), place, event,
             signal.step, signal.warp, signal.isRemote);
  }
}

void StateKey::addBarriers() {
  for (auto [place, number] : llvm::enumerate(barrierOrder)) {
    Barrier &barrier = m.barriers[number];
    bool isMbarrier = number != m.barriers.size() - 1 &&
                      number % m.perCta < m.program->numBarriers;
    // The first of the warps that meet says how many do.
    bool isCounting = isMbarrier || !barrier.signals[0].empty();
    add(barrier.isLive);
    add(barrier.isFenced);
    add(isCounting ? barrier.count : 0);
    add(isCounting ? barrier.pending : 0);
    add(barrier.tx);
    // Nobody asks for the parity of a barrier of warps. Of an mbarrier only
    // those who wait there do: in a CTA whose leader has it, nobody.
    bool hasParity = isMbarrier && barrierParity[number] != kNobodyAsks;
    add(hasParity ? (barrier.phase + barrierParity[number]) % 2 : 0);
    addOther(OtherEvent::Init, place, barrier.initEvent);
    addOther(OtherEvent::Complete, place, barrier.complete[0]);
    addOther(OtherEvent::CompleteBefore, place, barrier.complete[1]);
    for (unsigned level : {0, 1, 2})
      addSignals(barrier, level, place);
    add(barrier.signals[0].size());
    for (uint32_t event : barrier.signals[0]) {
      add(m.signals[event].warp);
      add(m.signals[event].isRemote);
    }
    llvm::sort(barrier.waits,
               [](const Wait &a, const Wait &b) { return a.warp < b.warp; });
    for (const Wait &wait : barrier.waits)
      addOther(OtherEvent::Wait, place, wait.event, wait.step, wait.warp);
  }
}

/// Takes from the machine what a state that stands for its own one does not
/// know of phases and signals, and gives it those that only the other one has.
void StateKey::weakenOthers(const StateSummary &joined) {
  auto own = summary.others.begin();
  for (auto [index, other] : llvm::enumerate(joined.others)) {
    ArrayRef<uint64_t> known = joined.knowersOfOther(index);
    while (own != summary.others.end() && own->getKey() < other.getKey())
      ++own;
    bool isOwn = own != summary.others.end() && own->getKey() == other.getKey();
    EventSet knowers;
    knowers.setWords(known);
    if (!isOwn) {
      setKnowers(addToMachine(other), knowers);
      continue;
    }
    ArrayRef<uint64_t> before =
        summary.knowersOfOther(own - summary.others.begin());
    for (auto [word, pair] : llvm::enumerate(llvm::zip_equal(before, known)))
      for (uint64_t lost = std::get<0>(pair) & ~std::get<1>(pair); lost != 0;
           lost &= lost - 1)
        sets[64 * word + llvm::countr_zero(lost)]->reset(own->event);
  }
}

/// Makes an event that another state has; returns its number.
uint32_t StateKey::addToMachine(const OtherEvent &other) {
  uint32_t event = m.newEvent();
  Barrier &barrier = m.barriers[barrierOrder[other.place]];
  switch (other.kind) {
  case OtherEvent::Complete:
    barrier.complete[0] = event;
    break;
  case OtherEvent::CompleteBefore:
    barrier.complete[1] = event;
    break;
  case OtherEvent::SignalLast:
  case OtherEvent::SignalBefore:
    m.addSignal({event, other.step, other.warp, other.isRemote});
    barrier.signals[other.kind - OtherEvent::SignalNow].push_back(event);
    break;
  case OtherEvent::Wait:
    barrier.waits.push_back({event, other.step, other.warp});
    break;
  case OtherEvent::Init:
  case OtherEvent::SignalNow:
  case OtherEvent::Columns:
    llvm_unreachable("states with the same places have the same ones");
  }
  return event;
}
