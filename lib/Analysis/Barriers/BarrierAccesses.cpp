//===- BarrierAccesses.cpp - Who touches which bytes, and in which order --===//

#include "BarrierMachine.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// Of a word that is handed over.
static constexpr int64_t kWordBytes = 4;

static StringRef describe(const Access &access) {
  if (access.isAsync)
    return access.isWrite ? "asynchronous write" : "asynchronous read";
  return access.isWrite ? "write" : "read";
}

/// Puts an access where its slot is.
void Machine::moveTo(Access &access, int64_t base) const {
  ArrayRef<ByteRange> ranges =
      program->accesses[access.info].footprint.parts[access.part];
  access.base = base;
  access.hull = {base + ranges.front().begin, base + ranges.back().end};
}

/// Whether one of them can matter to the other where they touch the same bytes:
/// reads of two warps neither conflict nor stand for each other.
static bool canMatter(const Access &a, const Access &b) {
  return a.isWrite || b.isWrite || a.warp == b.warp;
}

/// Whether accesses whose hulls overlap share a byte. Ranges of a footprint
/// stand in order.
bool Machine::overlap(const Access &a, const Access &b) const {
  ArrayRef<ByteRange> ofB = program->accesses[b.info].footprint.parts[b.part];
  // As a rule a copy to a slot comes behind reads of parts of it.
  if (ofB.size() == 1 && b.hull.begin <= a.hull.begin &&
      a.hull.end <= b.hull.end)
    return true;
  ArrayRef<ByteRange> ofA = program->accesses[a.info].footprint.parts[a.part];
  int64_t shift = b.base - a.base;
  const ByteRange *one = ofA.begin(), *two = ofB.begin();
  while (one != ofA.end() && two != ofB.end())
    if (one->end <= two->begin + shift)
      ++one;
    else if (two->end + shift <= one->begin)
      ++two;
    else
      return true;
  return false;
}

/// True if b covers a.
bool Machine::isWithin(const Access &a, const Access &b) const {
  ArrayRef<ByteRange> ofA = program->accesses[a.info].footprint.parts[a.part];
  ArrayRef<ByteRange> ofB = program->accesses[b.info].footprint.parts[b.part];
  int64_t shift = b.base - a.base;
  return llvm::all_of(ofA, [&](ByteRange one) {
    return llvm::any_of(ofB, [&](ByteRange two) {
      return two.begin + shift <= one.begin && one.end <= two.end + shift;
    });
  });
}

void Machine::reportRace(const Access &first, const Access &second,
                         BarrierFault fault) {
  const Footprint &footprint = program->accesses[second.info].footprint;
  const Footprint &other = program->accesses[first.info].footprint;
  std::string where = footprint.getName().str();
  if (other.getMemory() != footprint.getMemory())
    where += (Twine("', whose ") + (second.isTensor ? "columns" : "bytes") +
              " are also those of '" + other.getName())
                 .str();
  std::string text = llvm::formatv(
      "{0} by {1} of '{2}' is not ordered after {3} by {4}", describe(second),
      whoIs(second.warp), where, describe(first), whoIs(first.warp));
  if (program->cluster > 1)
    text += llvm::formatv(", in the memory of CTA {0}", second.cta);
  SmallVector<OpNote> notes = {
      noteAt({first.step, first.warp}, Twine("the ") + describe(first))};
  const Warp &warp = warps[second.warp];
  const WarpKnowledge &knows = warp.knows;
  EventSet Knowledge::*how =
      second.isAsync ? &Knowledge::async : &Knowledge::generic;
  if (const Overtaken *entry = findOvertaking(first, warp)) {
    text += ": a signal to another CTA may overtake the read";
    notes.push_back(noteAt(
        {entry->step, entry->warp},
        "the signal: nothing has used what was read by then; it has to stand "
        "after the first use, or to have the scope of the cluster "
        "(cluster-scope)"));
  } else if (overtakesLoads(footprint.getEngine()) &&
             program->accesses[first.info].isLate &&
             known(warp, &Knowledge::generic).test(first.event)) {
    text += ": st.async may overtake the read, of which nothing has used what "
            "was read by then";
  } else if (!second.isTensor && ((knows.elected.*how).test(first.event) ||
                                  (knows.shares.*how).test(first.event))) {
    // What one thread of the warp knows, others do not.
    text += ": the threads of the warp have not waited for each other since";
  }
  if (fault == BarrierFault::Proxy)
    text += ": there is no attn.fence.proxy_async between them";
  else if (fault == BarrierFault::TensorFence)
    text += ": there is no attn.tcgen05.fence between them";
  report(fault, Place{second.step, second.warp}, std::move(text),
         std::move(notes));
}

/// Of a list so many are gone through in the time of one that is looked into.
static constexpr size_t kLookedAtOnce = 32;

/// Holds a new access against those that matter, and drops those that it
/// stands for: who is ordered behind it is ordered behind them.
void Machine::checkAccess(Warp &warp, const Access &made) {
  EventView generic = known(warp, &Knowledge::generic);
  EventView async = known(warp, &Knowledge::async);
  EventView own = made.isAsync ? async : generic;
  const Step &step = program->steps[made.step];
  bool isCollective = step.isCollective();
  bool isExact = program->accesses[made.info].isExact;
  // From other CTAs only signals lead there, which carry what they order.
  bool mayOvertake =
      warp.cta == made.cta &&
      overtakesLoads(program->accesses[made.info].footprint.getEngine());
  accesses.markNear(made);
  work.add((accesses.size() + words.size()) / kLookedAtOnce);
  size_t i = 0;
  while ((i = accesses.findNear(i)) < accesses.size()) {
    work.add(1);
    const Access &earlier = accesses[i];
    if (!canMatter(earlier, made) || !overlap(earlier, made)) {
      ++i;
      continue;
    }
    bool isKnown = made.isTensor ? knowsTensor(warp, earlier, made)
                                 : own.test(earlier.event);
    bool isOvertaken = mayOvertake && program->accesses[earlier.info].isLate &&
                       !known(warp, &Knowledge::cause).test(earlier.event);
    isKnown &= !isOvertaken;
    // A6: hardware does not let a copy overtake a read that a signal has
    // followed.
    if (!isKnown && profile == OrderProfile::Hw && made.isAsync &&
        made.isWrite && !earlier.isWrite && !earlier.isAsync && !isOvertaken &&
        !made.isTensor && generic.test(earlier.event)) {
      isKnown = true;
      assume(Assumption::NoProxyFenceWar);
    }
    // The warps of one execution of an op share its elements out.
    bool isSame = isCollective && !isExact && earlier.step == made.step &&
                  earlier.instance == made.instance &&
                  earlier.warp != made.warp;
    if ((earlier.isWrite || made.isWrite) && !isKnown && !isSame)
      reportRace(earlier, made,
                 !generic.test(earlier.event) || !made.isAsync
                     ? BarrierFault::Race
                 : made.isTensor ? BarrierFault::TensorFence
                                 : BarrierFault::Proxy);
    // A write stands for all before it only if its footprint is no more than
    // what it writes; else for what the same warp did there before by the same
    // op. That rules most of them out, and is the least to look at.
    bool isOwn = earlier.warp == made.warp && earlier.isAsync == made.isAsync;
    if (made.isWrite ? !isExact && (!isOwn || earlier.step != made.step)
                     : !isOwn || earlier.isWrite) {
      ++i;
      continue;
    }
    // On a path that may be left out only a read, and only for one that all
    // who learn of the new one know too.
    bool isSafe =
        warp.rare.empty() ||
        (!made.isWrite &&
         (made.isTensor
              ? known(warp, &Knowledge::tensor).test(earlier.event) &&
                    known(warp, &Knowledge::handed).test(earlier.event)
              : generic.test(earlier.event) && async.test(earlier.event)));
    // Who is ordered behind what each thread of the warp reads now is ordered
    // behind what it did before.
    bool isBehind =
        isKnown || (isOwn && !made.isWrite && !made.isAsync && !step.isElected);
    // A load that is used says nothing of one before it that is not.
    bool isOpen = program->accesses[earlier.info].isLate &&
                  program->accesses[made.info].isLate &&
                  !known(warp, &Knowledge::cause).test(earlier.event);
    bool isReplaced = isBehind && isSafe && !isOpen && isWithin(earlier, made);
    if (!isReplaced) {
      ++i;
      continue;
    }
    forget(earlier.event);
    accesses.replaceByLast(i);
  }
}

/// Whether it matters which execution of a step it is: one that warps take
/// together, and that writes.
bool Machine::countsExecutions(const Step &step) const {
  if (!step.isCollective())
    return false;
  return llvm::any_of(llvm::seq(step.first, step.last), [&](uint32_t number) {
    return program->accesses[number].footprint.isWrite();
  });
}

void Machine::endExecution(const Warp &warp, const Step &step) {
  if (countsExecutions(step))
    ++instances[{warp.pc, uint16_t(&warp - warps.data())}];
}

bool Machine::findBase(Warp &warp, const AccessInfo &info, int64_t &base) {
  const Footprint &footprint = info.footprint;
  base = footprint.getStart();
  if (program->teams > 1)
    base += (warp.partition + info.teamsOn) * program->teamBytes;
  if (footprint.slotBytes == 0)
    return true;
  int64_t slot = 0;
  if (!get(warp, info.index, slot, "the index of the slot"))
    return false;
  if (slot < 0 || slot >= footprint.numSlots) {
    reportCondition(
        BarrierFault::Race, here(warp),
        llvm::formatv("{0} touches slot {1} of '{2}', which has {3}",
                      nameOf(warp), slot, footprint.getName(),
                      footprint.numSlots));
    return false;
  }
  base += slot * footprint.slotBytes;
  return true;
}

/// Which part of a footprint is the warp's.
uint16_t Machine::getPart(const Warp &warp, const AccessInfo &info) const {
  int64_t part = 0;
  switch (info.footprint.by) {
  case RowParts::Whole:
    break;
  case RowParts::Warps:
    part = warp.inPartition;
    break;
  case RowParts::Warpgroups:
    part = warp.inPartition / 4;
    break;
  case RowParts::CTAs:
    part = SignalMask(0, info.footprint.rankBits).getNumber(warp.cta);
    break;
  case RowParts::Lanes:
    part = warp.local % 4;
    break;
  }
  return std::min<size_t>(part, info.footprint.parts.size() - 1);
}

/// An access by a warp or its engines to the memory of a CTA; returns its
/// event, or 0 if something is wrong.
uint32_t Machine::makeAccess(Warp &warp, uint32_t number, uint8_t cta) {
  const AccessInfo &info = program->accesses[number];
  Access made;
  int64_t base = 0;
  if (!findBase(warp, info, base))
    return 0;
  made.isTensor = info.footprint.isTensor();
  if (made.isTensor && !isTensorUsable(warp, info, cta))
    return 0;
  made.step = warp.pc;
  made.info = number;
  made.warp = &warp - warps.data();
  made.cta = cta;
  made.isWrite = info.footprint.isWrite();
  const AsyncEngine *engine = info.footprint.getEngine();
  made.isAsync = engine && (made.isTensor || engine->isAsyncProxy);
  made.part = getPart(warp, info);
  moveTo(made, base);
  if (countsExecutions(program->steps[warp.pc]))
    made.instance = instances[{warp.pc, made.warp}];
  checkAccess(warp, made);
  if (made.isTensor) {
    if (!made.isWrite || info.isAddedTo)
      readTensor(warp, made);
    if (made.isWrite)
      writeTensor(warp, made);
  }
  // Whoever writes a word says what is in it from here on.
  for (auto &[place, word] : words)
    if (made.isWrite && place.first == cta &&
        made.hull.begin < place.second + kWordBytes &&
        place.second < made.hull.end)
      word.isKnown = false;
  if (info.isLate)
    accesses.loseLoads(number, made.warp);
  made.event = newEvent();
  accesses.push_back(made);
  if (!warp.rareEvents.empty())
    warp.rareEvents.back().set(made.event);
  return made.event;
}

/// A word that is overwritten has been read as often as it will be, and as the
/// next one will be if the same step writes it.
void Machine::writeWord(const Warp &warp, uint8_t cta, int64_t base,
                        Slot value) {
  auto [word, isNew] = words.try_emplace({cta, base});
  if (!isNew) {
    bool isSame = word->second.step == warp.pc;
    word->second.expected = isSame ? word->second.reads : -1;
    reads.counted[word->second.step] = word->second.reads;
  }
  std::optional<Affine> sum = getOpen(warp, value);
  word->second.isKnown = sum.has_value();
  bool isNumber = sum && warp.known[value];
  word->second.value = isNumber ? warp.values[value] : 0;
  word->second.sum = isNumber ? std::nullopt : sum;
  word->second.varied.clear();
  if (auto varied = warp.varied.find(value); varied != warp.varied.end())
    word->second.varied = varied->second;
  word->second.step = warp.pc;
  word->second.reads = 0;
}

void Machine::accessAll(Warp &warp, const Step &step) {
  for (uint32_t number = step.first; number < step.last; ++number) {
    uint32_t event = makeAccess(warp, number, warp.cta);
    if (event == 0)
      return;
    done(warp).generic.set(event);
    // A late load may still happen.
    if (!program->accesses[number].isLate)
      done(warp).cause.set(event);
    if (!step.args.empty())
      writeWord(warp, warp.cta, accesses.back().base, step.args[0]);
  }
  endExecution(warp, step);
}

void Machine::fill(Warp &warp, const Step &step) {
  uint32_t index = 0;
  if (!getBarrier(warp, step, index))
    return;
  bool isDone =
      step.forEachTarget(warp.cta, program->cluster, [&](uint32_t cta) {
        uint32_t number = step.getBarrierCTA(cta) * perCta + index;
        if (!isUsable(warp, number))
          return false;
        Barrier &barrier = barriers[number];
        for (uint32_t access = step.first; access < step.last; ++access) {
          uint32_t event = makeAccess(warp, access, cta);
          if (event == 0)
            return false;
          barrier.gathering.generic.set(event);
          if (accesses.back().isAsync)
            barrier.gathering.async.set(event);
          barrier.gathering.cause.set(event);
          if (!step.args.empty())
            writeWord(warp, cta, accesses.back().base, step.args[0]);
        }
        signal(warp, number, 0, 0, step.value, Sender::Copy);
        return !condition;
      });
  if (isDone)
    endExecution(warp, step);
}

void Machine::closeGroup(Warp &warp, unsigned engine) {
  // How many groups a wait leaves would depend on the path. Waits for accesses
  // to tensor memory leave none.
  assert((warp.rare.empty() || engine >= kFirstTensorEngine) &&
         "no collective operation stands on a rare path");
  warp.groups[engine].push_back(std::move(warp.open[engine]));
  warp.open[engine].clear();
  ++warp.closed[engine];
}

void Machine::issue(Warp &warp, const Step &step) {
  for (uint32_t number = step.first; number < step.last; ++number) {
    uint32_t event = makeAccess(warp, number, warp.cta);
    if (event == 0)
      return;
    warp.open[step.dim].push_back(event);
  }
  endExecution(warp, step);
  if (step.flag)
    closeGroup(warp, step.dim);
  warp.hasOpenStores |= step.dim == kStoreEngine;
  set(warp, step.dst, warp.closed[step.dim]);
}

/// An access of a group is complete, which its threads have waited for. What is
/// one operation of the whole warp is complete for each of them.
void Machine::finishAccess(Warp &warp, uint32_t event, unsigned engine) {
  work.add(accesses.size() / kLookedAtOnce);
  auto access = llvm::find_if(
      accesses, [&](const Access &access) { return access.event == event; });
  if (access == accesses.end())
    return;
  bool isOfOne = program->steps[access->step].isElected;
  bool isOfWarp = !isOfOne && engine != kCopyEngine;
  if (!isOfOne && isElected(warp))
    return fail(warp.pc, "one thread waits for what all of its warp have "
                         "started");
  Knowledge &knows = isOfWarp  ? warp.knows.all
                     : isOfOne ? warp.knows.elected
                               : warp.knows.shares;
  knows.generic.set(event);
  knows.cause.set(event);
  if (access->isAsync)
    (access->isTensor ? knows.tensor : knows.async).set(event);
}

/// All copies of the warp that nothing has waited for are complete when the
/// phase is. They are in no group that the warp could wait for any more.
void Machine::signalCopies(Warp &warp, const Step &step) {
  uint32_t index = 0;
  if (!getBarrier(warp, step, index))
    return;
  uint32_t number = warp.cta * perCta + index;
  if (!isUsable(warp, number))
    return;
  Barrier &barrier = barriers[number];
  auto handOver = [&](auto &events) {
    for (uint32_t event : events) {
      barrier.gathering.generic.set(event);
      barrier.gathering.cause.set(event);
    }
    events.clear();
  };
  for (auto &group : warp.groups[kCopyEngine])
    handOver(group);
  handOver(warp.open[kCopyEngine]);
  // Each thread arrives, behind what it has waited for itself.
  barrier.gathering.cause.join(done(warp).cause);
  signal(warp, number, step.value, 0, 0, Sender::Copy);
}

void Machine::reportInFlight(const Warp &warp, unsigned engine) {
  SmallVector<uint32_t> left(warp.open[engine].begin(),
                             warp.open[engine].end());
  for (const auto &group : warp.groups[engine])
    left.append(group.begin(), group.end());
  for (const Access &access : accesses)
    if (llvm::is_contained(left, access.event)) {
      const auto &footprint = program->accesses[access.info].footprint;
      Place place{access.step, access.warp};
      SmallVector<OpNote> notes;
      if (const AsyncEngine *by = footprint.getEngine())
        notes.push_back(noteAt(place, by->remedy));
      report(BarrierFault::Exit, place,
             llvm::formatv("{0} exits while this access to '{1}' may be in "
                           "flight",
                           nameOf(warp), footprint.getName()),
             std::move(notes));
    }
}

void Machine::checkStores(Warp &warp) {
  if (warp.hasOpenStores)
    report(BarrierFault::InFlight, here(warp),
           nameOf(warp) + " counts its part of a tile while a store of it may "
                          "be in flight: a wait that all is written has to "
                          "stand before it");
}

void Machine::await(Warp &warp, const Step &step) {
  // With the flag it is a wait for what the stores read.
  if (step.dim == kStoreEngine && step.value == 0 && !step.flag &&
      warp.open[step.dim].empty())
    warp.hasOpenStores = false;
  auto &groups = warp.groups[step.dim];
  while (int64_t(groups.size()) > step.value) {
    work.add(groups.size() / kLookedAtOnce);
    for (uint32_t event : groups.front())
      finishAccess(warp, event, step.dim);
    groups.erase(groups.begin());
  }
  int64_t complete = warp.closed[step.dim] - groups.size();
  for (Slot slot : step.args) {
    int64_t group = 0;
    if (!get(warp, slot, group, "the product that it waits for"))
      return;
    if (group > complete)
      report(BarrierFault::InFlight, here(warp),
             llvm::formatv("{0} takes a product that is not complete: of the "
                           "{1} youngest groups, which may be in flight, it is "
                           "number {2}",
                           nameOf(warp), step.value,
                           warp.closed[step.dim] - group + 1));
  }
}

void Machine::readWord(Warp &warp, const Step &step) {
  int64_t base = 0;
  if (step.dst == kNoSlot)
    return;
  warp.known[step.dst] = false;
  warp.unknown.erase(step.dst);
  warp.unwritten.erase(step.dst);
  if (!findBase(warp, program->accesses[step.first], base))
    return;
  auto word = words.find({warp.cta, base});
  if (word == words.end() && isOfWords(program->accesses[step.first]))
    warp.unwritten[step.dst] = warp.pc;
  if (word == words.end() || !word->second.isKnown)
    return;
  if (word->second.sum)
    setOpen(warp, step.dst, *word->second.sum);
  else
    set(warp, step.dst, word->second.value);
  warp.heardOfNone |= word->second.sum
                          ? word->second.sum->isConstant() &&
                                word->second.sum->constant == kNoTile
                          : word->second.value == kNoTile;
  if (!word->second.varied.empty())
    warp.varied[step.dst] = word->second.varied;
  ++word->second.reads;
}

/// Whether words are all that is written to the buffer, and some are: then it
/// is known which of them were.
bool Machine::isOfWords(const AccessInfo &info) const {
  bool areWritten = false;
  for (const Step &step : program->steps) {
    if (!step.touchesMemory())
      continue;
    for (uint32_t number = step.first; number < step.last; ++number) {
      const Footprint &other = program->accesses[number].footprint;
      if (!other.isWrite() || other.getMemory() != info.footprint.getMemory())
        continue;
      if (step.args.empty())
        return false;
      areWritten = true;
    }
  }
  return areWritten;
}

/// What is computed from a word that nobody has written is no number either.
void Machine::keepUnwritten(Warp &warp, const Step &step) {
  std::optional<uint32_t> read;
  for (Slot slot : step.args)
    if (auto found = warp.unwritten.find(slot); found != warp.unwritten.end())
      read = found->second;
  if (read)
    warp.unwritten[step.dst] = *read;
  else
    warp.unwritten.erase(step.dst);
}

/// What a warp goes on by is in a word that it did not wait for: it may come
/// there first, as it does in this run.
void Machine::reportUnwritten(const Warp &warp, uint32_t read) {
  const Step &step = program->steps[read];
  const Footprint &footprint = program->accesses[step.first].footprint;
  SmallVector<OpNote> notes;
  for (auto [number, other] : llvm::enumerate(program->steps)) {
    if (!other.touchesMemory() || other.first == other.last)
      continue;
    const Footprint &written = program->accesses[other.first].footprint;
    if (written.isWrite() && written.getMemory() == footprint.getMemory())
      notes.push_back(noteAt(number, "the write"));
  }
  reportCondition(BarrierFault::Race,
                  Place{read, uint16_t(&warp - warps.data())},
                  llvm::formatv("read by {0} of '{1}', by which it goes on, "
                                "does not wait until the word is written",
                                nameOf(warp), footprint.getName()),
                  std::move(notes));
}
