//===- BarrierPhases.cpp - What barriers count, and who waits for them ----===//

#include "BarrierMachine.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

std::string Machine::nameOf(uint32_t number, bool hasCta) const {
  if (number == barriers.size() - 1)
    return "the cluster's barrier";
  uint32_t cta = number / perCta, local = number % perCta;
  std::string where = hasCta ? llvm::formatv(" of CTA {0}", cta).str() : "";
  if (local >= program->numBarriers) {
    uint32_t id = local - program->numBarriers;
    if (id == 0)
      return "the CTA's barrier" + where;
    return llvm::formatv("named barrier {0}{1}", id, where).str();
  }
  for (const BarrierArray &array : program->arrays)
    if (local < array.first + array.count)
      return llvm::formatv(
                 "'{0}'[{1}]{2}",
                 MBarrierAllocOp(array.op).getName().value_or("barriers"),
                 local - array.first, where)
          .str();
  return "a barrier";
}

//===----------------------------------------------------------------------===//
// Lifetime
//===----------------------------------------------------------------------===//

void Machine::init(Warp &warp, const Step &step) {
  const BarrierArray &array = program->arrays[step.array];
  for (uint32_t i = 0; i < array.count; ++i) {
    uint32_t number = warp.cta * perCta + array.first + i;
    Barrier &barrier = barriers[number];
    if (barrier.isLive)
      return reportCondition(
          BarrierFault::Lifetime, here(warp, number),
          nameOf(warp) + " initialises " + nameOf(number) + ", which is in use",
          {noteAt(barrier.initStep, "it was initialised here")});
    barrier = Barrier();
    barrier.isLive = true;
    barrier.isFenced = step.flag;
    barrier.initStep = warp.pc;
    barrier.count = barrier.pending = step.value;
    barrier.initEvent = newEvent();
    done(warp).generic.set(barrier.initEvent);
    done(warp).cause.set(barrier.initEvent);
  }
}

bool Machine::isUsable(Warp &warp, uint32_t number) {
  Barrier &barrier = barriers[number];
  if (!barrier.isLive) {
    SmallVector<OpNote> notes;
    if (barrier.invalStep)
      notes.push_back(noteAt(barrier.invalStep, "it was invalidated here"));
    reportCondition(BarrierFault::Lifetime, here(warp, number),
                    nameOf(warp) + " uses " + nameOf(number) +
                        (barrier.invalStep ? " after it was invalidated"
                                           : " before it is initialised"),
                    std::move(notes));
    return false;
  }
  if (!known(warp, &Knowledge::generic).test(barrier.initEvent)) {
    reportCondition(
        BarrierFault::Lifetime, here(warp, number),
        nameOf(warp) + " uses " + nameOf(number) +
            " without being ordered after its initialisation",
        {noteAt(barrier.initStep,
                "it is initialised here; a barrier has to stand between")});
    return false;
  }
  return true;
}

void Machine::inval(Warp &warp, const Step &step) {
  const BarrierArray &array = program->arrays[step.array];
  for (uint32_t i = 0; i < array.count; ++i) {
    uint32_t number = warp.cta * perCta + array.first + i;
    if (!isUsable(warp, number))
      return;
    Barrier &barrier = barriers[number];
    EventView cause = known(warp, &Knowledge::cause);
    SmallVector<uint32_t> open(barrier.signals[0].begin(),
                               barrier.signals[0].end());
    if (!knowsCompletion(cause, barrier, 0))
      open.append(barrier.signals[1].begin(), barrier.signals[1].end());
    for (uint32_t event : open)
      if (!cause.test(event))
        return reportCondition(
            BarrierFault::Lifetime, here(warp, number),
            llvm::formatv("{0} invalidates {1} while a signal of {2} may be on "
                          "its way to it",
                          nameOf(warp), nameOf(number),
                          whoIs(signals[event].warp)),
            {noteAt({signals[event].step, signals[event].warp},
                    "the signal; a barrier that its warp comes to after it "
                    "has to stand before the invalidation")});
    for (const Wait &wait : barrier.waits)
      if (!cause.test(wait.event))
        return reportCondition(
            BarrierFault::Lifetime, here(warp, number),
            llvm::formatv("{0} invalidates {1} while {2} may still wait at it",
                          nameOf(warp), nameOf(number), whoIs(wait.warp)),
            {noteAt({wait.step, wait.warp}, "the wait")});
    for (const Warp &other : warps)
      if (other.state == Warp::AtBarrier && other.barrier == number)
        return reportCondition(BarrierFault::Lifetime, here(warp, number),
                               llvm::formatv("{0} invalidates {1} while {2} "
                                             "waits at it",
                                             nameOf(warp), nameOf(number),
                                             nameOf(other)),
                               {noteAt(here(other), "the wait")});
    barrier.isLive = false;
    barrier.invalStep = warp.pc;
  }
}

//===----------------------------------------------------------------------===//
// Signals and phases
//===----------------------------------------------------------------------===//

/// Whether the last phase that completed (level 0), or the one before it, is
/// known to be complete: by a wait or something behind one, or because all of
/// its signals are known. Nobody needs to know of one that never was.
bool Machine::knowsCompletion(EventView cause, const Barrier &barrier,
                              unsigned level) const {
  if (barrier.complete[level] == 0 || cause.test(barrier.complete[0]) ||
      (level == 1 && cause.test(barrier.complete[1])))
    return true;
  for (unsigned phase = 1; phase <= level + 1; ++phase)
    if (!barrier.signals[phase].empty() &&
        cause.contains(barrier.signals[phase]))
      return true;
  return false;
}

static StringRef describe(bool isCopy, bool isOfProducts) {
  return isCopy ? "a copy" : isOfProducts ? "a commit" : "a signal";
}

uint32_t Machine::signal(Warp &warp, uint32_t number, int64_t arrivals,
                         int64_t announced, int64_t bytes, Sender sender) {
  bool isCopy = sender == Sender::Copy;
  Barrier &barrier = barriers[number];
  if (!knowsCompletion(known(warp, &Knowledge::cause), barrier, 0)) {
    reportCondition(
        BarrierFault::Attribution, here(warp, number),
        llvm::formatv("{0} of {1} for phase {2} of {3} is not ordered after "
                      "the completion of phase {4}: it may count there",
                      describe(isCopy, sender == Sender::Products),
                      nameOf(warp), barrier.phase, nameOf(number),
                      barrier.phase - 1),
        {noteAt(barrier.initStep, "initialised here"),
         noteAt({barrier.lastStep, barrier.lastWarp},
                "the last signal of phase " + Twine(barrier.phase - 1) +
                    ", by " + whoIs(barrier.lastWarp) +
                    ", that a wait has to come after")});
    return 0;
  }
  if (sender != Sender::Warp && !barrier.isFenced)
    report(BarrierFault::Proxy, here(warp, number),
           llvm::formatv("{0} of {1} signals {2}, whose initialisation has no "
                         "attn.mbarrier.fence_init after it",
                         describe(isCopy, sender == Sender::Products),
                         nameOf(warp), nameOf(number)),
           {noteAt(barrier.initStep, "initialised here")});
  uint32_t event = newEvent();
  bool isOtherCta = number / perCta != warp.cta;
  bool isRemote = sender != Sender::Warp || isOtherCta;
  addSignal({event, warp.pc, uint16_t(&warp - warps.data()), isRemote});
  barrier.signals[0].push_back(event);
  barrier.lastStep = warp.pc;
  barrier.lastWarp = &warp - warps.data();
  // The wait in the other CTA may acquire at the scope of that CTA alone.
  if (isOtherCta && !hasClusterScope)
    assume(Assumption::ClusterScope);
  if (sender != Sender::Warp) {
    // The copy publishes its own bytes; what its thread did before cannot
    // happen later, but may not be seen.
    barrier.gathering.cause.join(warp.knows.all.cause);
    barrier.gathering.cause.join(warp.knows.elected.cause);
    barrier.gathering.cause.set(event);
    if (!isCopy && isOtherCta)
      handToOtherCta(warp, barrier, event, warp.products);
    else if (!isCopy)
      barrier.gathering.receive(warp.products);
    if (!isCopy && !warp.commits.empty())
      barrier.gathering.cause.join(warp.commits[number / perCta]);
  } else {
    done(warp).cause.set(event);
    if (isOtherCta && !hasClusterScope) {
      Knowledge carried;
      handOn(warp, carried);
      handToOtherCta(warp, barrier, event, carried);
    } else {
      handOn(warp, barrier.gathering);
    }
  }
  barrier.tx += announced - bytes;
  barrier.pending -= arrivals;
  if (barrier.pending < 0) {
    reportCondition(
        BarrierFault::Count, here(warp, number),
        llvm::formatv("phase {0} of {1} expects {2} arrivals, got one more by "
                      "{3}",
                      barrier.phase, nameOf(number), barrier.count,
                      nameOf(warp)),
        {noteAt(barrier.initStep, "initialised here")});
    return 0;
  }
  if (barrier.pending == 0 && barrier.tx < 0) {
    reportCondition(
        BarrierFault::Count, here(warp, number),
        llvm::formatv("phase {0} of {1} gets {2} bytes more than were "
                      "announced for it",
                      barrier.phase, nameOf(number), -barrier.tx),
        {noteAt(barrier.initStep, "initialised here")});
    return 0;
  }
  if (barrier.pending == 0 && barrier.tx == 0)
    complete(number);
  return event;
}

/// Whoever waits for a phase has waited before the next one completes.
void Machine::checkSlip(uint32_t number) {
  Barrier &barrier = barriers[number];
  for (const Wait &wait : barrier.waits)
    if (!barrier.gathering.cause.test(wait.event))
      return reportCondition(
          BarrierFault::Slip,
          Place{wait.step, wait.warp, number, barrier.phase - 1},
          llvm::formatv("phase {0} of {1} completes without being ordered "
                        "after the wait of {2} for phase {3}: the wait may "
                        "miss its phase",
                        barrier.phase, nameOf(number), whoIs(wait.warp),
                        barrier.phase - 1),
          {noteAt(barrier.initStep, "initialised here"),
           noteAt({barrier.lastStep, barrier.lastWarp},
                  "the signal that completes it, by " +
                      whoIs(barrier.lastWarp) +
                      ", which has to come after a signal of the waiting "
                      "warp")});
}

void Machine::complete(uint32_t number) {
  Barrier &barrier = barriers[number];
  checkSlip(number);
  for (const Wait &wait : barrier.waits)
    forget(wait.event);
  barrier.waits.clear();
  forget(barrier.complete[1]);
  barrier.complete[1] = barrier.complete[0];
  barrier.complete[0] = newEvent();
  barrier.published.join(barrier.gathering);
  barrier.gathering.clear();
  barrier.published.cause.set(barrier.complete[0]);
  if (barrier.complete[1])
    barrier.published.cause.set(barrier.complete[1]);
  for (uint32_t event : barrier.signals[2])
    forget(event);
  barrier.signals[2] = std::move(barrier.signals[1]);
  barrier.signals[1] = std::move(barrier.signals[0]);
  barrier.signals[0].clear();
  ++barrier.phase;
  barrier.pending = barrier.count;
  for (Warp &warp : warps)
    if (warp.state == Warp::AtBarrier && warp.barrier == number &&
        warp.phase < barrier.phase)
      wake(warp, barrier);
}

/// The phase that a warp waits for is complete.
void Machine::wake(Warp &warp, Barrier &barrier) {
  if (program->steps[warp.pc].code == Code::Wait) {
    if (!knowsCompletion(known(warp, &Knowledge::cause), barrier, 1))
      reportCondition(
          BarrierFault::EarlyWait, here(warp, warp.barrier),
          llvm::formatv("the wait of {0} for phase {1} of {2} is not ordered "
                        "after the completion of phase {3}: phase {4} "
                        "satisfies it too",
                        nameOf(warp), barrier.phase - 1, nameOf(warp.barrier),
                        barrier.phase - 2, barrier.phase - 3),
          {noteAt(barrier.initStep, "initialised here")});
    Wait wait{newEvent(), warp.pc, uint16_t(&warp - warps.data())};
    auto *earlier = llvm::find_if(barrier.waits, [&](const Wait &other) {
      return other.warp == wait.warp;
    });
    if (earlier == barrier.waits.end()) {
      barrier.waits.push_back(wait);
    } else {
      forget(earlier->event);
      *earlier = wait;
    }
    // Others of its threads may still wait.
    done(warp).cause.set(wait.event);
  } else {
    warp.knows.synchronise();
  }
  learned(warp).join(barrier.published);
  warp.state = Warp::Ready;
  ++warp.pc;
}

bool Machine::getBarrier(Warp &warp, const Step &step, uint32_t &number) {
  const BarrierArray &array = program->arrays[step.array];
  int64_t index = 0;
  if (!get(warp, step.index, index, "the index of the mbarrier"))
    return false;
  if (index < 0 || index >= array.count) {
    reportCondition(
        BarrierFault::Lifetime, here(warp),
        llvm::formatv("{0} uses mbarrier {1} of '{2}', which has "
                      "{3}",
                      nameOf(warp), index,
                      MBarrierAllocOp(array.op).getName().value_or("barriers"),
                      array.count));
    return false;
  }
  number = array.first + index;
  return true;
}

/// True if the warp has gone on, or has stopped for good.
bool Machine::wait(Warp &warp, const Step &step) {
  uint32_t number = 0;
  int64_t parity = 0;
  if (!getBarrier(warp, step, number) ||
      !get(warp, step.args[0], parity, "the parity"))
    return false;
  number += warp.cta * perCta;
  if (!isUsable(warp, number))
    return false;
  if (parity != 0 && parity != 1) {
    fail(warp.pc, llvm::formatv("its parity is {0}, neither 0 nor 1", parity));
    return false;
  }
  Barrier &barrier = barriers[number];
  warp.barrier = number;
  if ((barrier.phase & 1) != parity) {
    wake(warp, barrier);
    --warp.pc;
    return true;
  }
  warp.state = Warp::AtBarrier;
  warp.phase = barrier.phase;
  return false;
}

void Machine::expectOrArrive(Warp &warp, const Step &step) {
  uint32_t index = 0;
  if (!getBarrier(warp, step, index))
    return;
  // A leader alone announces what its CTAs copy.
  if (step.code == Code::Expect && (warp.cta & step.where.getClear()) != 0)
    return;
  // One thread arrives when all of its warp have come.
  if (step.code == Code::Arrive && !step.isElected)
    warp.knows.synchronise();
  step.forEachTarget(warp.cta, program->cluster, [&](uint32_t cta) {
    uint32_t number = cta * perCta + index;
    if (!isUsable(warp, number))
      return false;
    int64_t bytes = step.code == Code::Expect ? step.value * step.times : 0;
    signal(warp, number, step.times, bytes, 0, Sender::Warp);
    return !condition;
  });
}

//===----------------------------------------------------------------------===//
// Barriers of warps
//===----------------------------------------------------------------------===//

/// Arrives at a barrier of `warpCount` warps, and waits for it or not; false if
/// the warp has to wait.
bool Machine::meet(Warp &warp, uint32_t number, int64_t warpCount, bool waits) {
  Barrier &barrier = barriers[number];
  if (barrier.signals[0].empty()) {
    barrier.count = barrier.pending = warpCount;
  } else if (barrier.count != warpCount) {
    reportCondition(
        BarrierFault::Count, here(warp),
        llvm::formatv("{0} comes to {1} with {2} threads, others with {3}",
                      nameOf(warp), nameOf(number), 32 * warpCount,
                      32 * barrier.count),
        {noteAt({barrier.lastStep, barrier.lastWarp}, "one of the others")});
    return false;
  }
  if (!knowsCompletion(warp.knows.all.cause, barrier, 0)) {
    reportCondition(
        BarrierFault::Generation, here(warp),
        llvm::formatv("the arrival of {0} at {1} is not ordered after its "
                      "previous generation: it may count there",
                      nameOf(warp), nameOf(number)),
        {noteAt({barrier.lastStep, barrier.lastWarp},
                "an arrival of that generation, by " +
                    whoIs(barrier.lastWarp))});
    return false;
  }
  uint32_t event = newEvent();
  addSignal({event, warp.pc, uint16_t(&warp - warps.data()), false});
  barrier.signals[0].push_back(event);
  barrier.lastStep = warp.pc;
  barrier.lastWarp = &warp - warps.data();
  warp.knows.all.cause.set(event);
  warp.knows.handOn(barrier.gathering);
  int64_t generation = barrier.phase;
  if (--barrier.pending == 0)
    complete(number);
  if (!waits)
    return true;
  if (barrier.phase > generation) {
    warp.knows.synchronise();
    warp.knows.all.join(barrier.published);
    return true;
  }
  warp.state = Warp::AtBarrier;
  warp.barrier = number;
  warp.phase = generation;
  return false;
}

bool Machine::meetAt(Warp &warp, const Step &step) {
  uint32_t first = warp.cta * perCta + program->numBarriers;
  if (step.code == Code::ClusterBarrier)
    return meet(warp, barriers.size() - 1, warps.size(), true);
  if (step.code == Code::CtaBarrier)
    return meet(warp, first, program->warps, true);
  int64_t id = step.first;
  if (step.index != kNoSlot &&
      !get(warp, step.index, id, "the number of the barrier"))
    return false;
  if (step.flag)
    id += warp.inPartition / 4;
  if (id < 1 || id > 15) {
    fail(warp.pc, llvm::formatv("there is no named barrier {0}", id));
    return false;
  }
  return meet(warp, first + id, step.value / 32, true);
}

/// Two warpgroups meet at each barrier: the one whose turn it is, and the one
/// that passed it on.
bool Machine::takeTurn(Warp &warp, const Step &step) {
  constexpr int64_t kTurnWarps = 8;
  int64_t groups = step.times, own = warp.inPartition / 4;
  if (groups < 2)
    return true;
  uint32_t first = warp.cta * perCta + program->numBarriers + step.value;
  switch (step.code) {
  case Code::TurnStart:
    return own != groups - 1 || meet(warp, first, kTurnWarps, false);
  case Code::TurnTake:
    return meet(warp, first + own, kTurnWarps, true);
  default:
    return meet(warp, first + (own + 1) % groups, kTurnWarps, false);
  }
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

/// What goes to a CTA's memory or barriers from elsewhere has arrived before
/// its last warp exits.
void Machine::checkExit() {
  for (int64_t cta = 0; cta < program->cluster; ++cta) {
    if (tensors[cta].isTaken)
      report(BarrierFault::Lifetime, Place{tensors[cta].takeStep},
             "the kernel ends without an attn.tmem.dealloc of these columns");
    const EventSet &known = exits[cta].cause;
    for (uint32_t i = 0; i < program->numBarriers; ++i) {
      const Barrier &barrier = barriers[cta * perCta + i];
      if (!barrier.isLive)
        continue;
      SmallVector<uint32_t> open(barrier.signals[0].begin(),
                                 barrier.signals[0].end());
      if (!knowsCompletion(known, barrier, 0))
        open.append(barrier.signals[1].begin(), barrier.signals[1].end());
      for (uint32_t event : open) {
        const Signal &found = signals[event];
        if (!found.isRemote || known.test(event))
          continue;
        report(BarrierFault::Exit,
               Place{found.step, found.warp, int64_t(cta * perCta + i)},
               llvm::formatv("the CTA may have exited when this signal of {0} "
                             "comes to {1}",
                             whoIs(found.warp),
                             nameOf(uint32_t(cta * perCta + i))),
               {noteAt(barrier.initStep, "initialised here"),
                noteAt(program->steps.size() - 1,
                       "the exit; a wait or a cluster barrier after the "
                       "signal has to come before it")});
      }
    }
  }
}
