//===- BarrierMachine.cpp - The warps of a cluster, step by step ----------===//

#include "BarrierMachine.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

Machine::Machine(const Program &program, const BarrierCheckOptions &options)
    : program(&program), profile(options.profile),
      hasClusterScope(options.clusterScope) {
  perCta = program.numBarriers + kWarpBarriers;
  barriers.resize(perCta * program.cluster + 1);
  exits.resize(program.cluster);
  tensors.resize(program.cluster);
  for (int64_t cta = 0; cta < program.cluster; ++cta)
    for (int64_t local = 0; local < program.warps; ++local) {
      Warp &warp = warps.emplace_back();
      warp.cta = cta;
      warp.local = local;
      while (size_t(warp.partition + 1) < program.firstWarps.size() &&
             program.firstWarps[warp.partition + 1] <= local)
        ++warp.partition;
      warp.inPartition = local - program.firstWarps[warp.partition];
      warp.values.resize(program.numSlots);
      warp.known.resize(program.numSlots);
      for (auto [slot, value] : program.constants)
        set(warp, slot, value);
    }
  for (auto [index, barrier] : llvm::enumerate(barriers))
    if (index == barriers.size() - 1 || index % perCta >= program.numBarriers)
      barrier.isLive = true;
}

//===----------------------------------------------------------------------===//
// Events and reports
//===----------------------------------------------------------------------===//

uint32_t Machine::newEvent() {
  std::optional<uint32_t> event = freeEvents.takeFirst();
  if (!event && deadEvents >= kMostDead) {
    sweep();
    event = freeEvents.takeFirst();
  }
  return event ? *event : numEvents++;
}

void Machine::forget(uint32_t event) {
  if (event == 0)
    return;
  if (event < signals.size())
    signals[event] = Signal();
  dead.set(event);
  ++deadEvents;
}

/// Numbers of events that do not matter any more can be given again once nobody
/// knows them.
void Machine::sweep() {
  auto drop = [&](auto &known) { known.remove(dead); };
  for (Warp &warp : warps) {
    warp.knows.remove(dead);
    warp.products.remove(dead);
    llvm::for_each(warp.commits, drop);
    llvm::for_each(warp.rare, drop);
    llvm::for_each(warp.rareEvents, drop);
    auto isDead = [&](uint32_t event) { return dead.test(event); };
    for (unsigned engine = 0; engine < kGroupEngines; ++engine) {
      llvm::erase_if(warp.open[engine], isDead);
      for (auto &group : warp.groups[engine])
        llvm::erase_if(group, isDead);
    }
    for (auto &groups : warp.rareGroups)
      for (auto &group : groups)
        llvm::erase_if(group, isDead);
  }
  for (Barrier &barrier : barriers) {
    barrier.gathering.remove(dead);
    barrier.published.remove(dead);
  }
  llvm::for_each(exits, drop);
  llvm::erase_if(overtaken, [&](const Overtaken &entry) {
    return dead.test(entry.load) || dead.test(entry.signal);
  });
  // The lowest numbers are given first, so that sets stay small.
  freeEvents.join(dead);
  deadEvents = 0;
  dead.clear();
}

void Machine::orderOwn(Warp &warp, EventSet Knowledge::*from,
                       EventSet Knowledge::*to) {
  WarpKnowledge &knows = warp.knows;
  if (isElected(warp)) {
    (knows.elected.*to).join(knows.all.*from);
    (knows.elected.*to).join(knows.elected.*from);
    return;
  }
  for (Knowledge *part : {&knows.all, &knows.elected, &knows.shares})
    (part->*to).join(part->*from);
}

Machine::Place Machine::here(const Warp &warp, int64_t barrier) const {
  Place place{warp.pc, &warp - warps.data(), barrier};
  if (barrier >= 0)
    place.phase = barriers[barrier].phase;
  return place;
}

BarrierActor Machine::actorAt(const Place &place) const {
  BarrierActor actor;
  if (place.warp >= 0) {
    actor.cta = warps[place.warp].cta;
    actor.warp = warps[place.warp].local;
  }
  if (place.barrier < 0 || place.barrier + 1 == int64_t(barriers.size()))
    return actor;
  uint32_t local = place.barrier % perCta;
  for (const BarrierArray &array : program->arrays)
    if (local >= array.first && local < array.first + array.count) {
      actor.barrier = array.op;
      actor.slot = local - array.first;
      actor.phase = place.phase;
    }
  return actor;
}

OpNote Machine::noteAt(const Place &place, const Twine &text) const {
  return {program->steps[place.step].op, text.str(), actorAt(place)};
}

void Machine::reportCondition(BarrierFault fault, const Place &place,
                              std::string text, SmallVector<OpNote> notes) {
  if (!condition)
    condition =
        BarrierWitness{fault, program->steps[place.step].op, std::move(text),
                       actorAt(place), std::move(notes)};
}

void Machine::report(BarrierFault fault, const Place &place, std::string text,
                     SmallVector<OpNote> notes) {
  if (!witness)
    witness = BarrierWitness{fault, program->steps[place.step].op,
                             std::move(text), actorAt(place), std::move(notes)};
}

void Machine::fail(uint32_t step, std::string why) {
  if (!unsupported)
    unsupported = UnsupportedOp{program->steps[step].op, std::move(why)};
}

std::string Machine::nameOf(const Warp &warp) const {
  std::string text = llvm::formatv("warp {0}", warp.local);
  if (program->cluster > 1)
    text += llvm::formatv(" of CTA {0}", warp.cta).str();
  return text;
}

//===----------------------------------------------------------------------===//
// The run
//===----------------------------------------------------------------------===//

void Machine::run() {
  bool moves = true;
  // After a pause the run goes on with the warp at which it stopped.
  size_t first = std::exchange(pauses.isReached, false) ? pauses.last : 0;
  // What is not known is asked where nobody can go on without, so that no warp
  // is behind that would ask it later; first by who is furthest behind, so that
  // no warp goes around a loop before all have come to it. So are kinds told
  // apart: where the others have done all that is the same for them, states
  // differ by nothing that is on its way.
  std::optional<Affine> asked;
  IndexRanges askedKept;
  uint32_t asker = 0;
  while (moves && !condition && !unsupported && !isOverLimit() &&
         !wantsChoice()) {
    moves = false;
    asked.reset();
    askedKept.clear();
    for (Warp &warp :
         MutableArrayRef(warps).drop_front(std::exchange(first, 0))) {
      bool moved = advance(warp);
      if (pauses.isReached)
        return;
      bool isFirst = !asked && askedKept.empty();
      if ((question || !parting.kept.empty()) && (isFirst || warp.pc < asker)) {
        asked = question;
        askedKept = parting.kept;
        asker = warp.pc;
      }
      question.reset();
      parting.kept.clear();
      if (!moved)
        continue;
      moves = true;
      if (recorded)
        recorded->push_back(describeTurn(warp));
    }
  }
  question = asked;
  parting.kept = std::move(askedKept);
}

ReplayTurn Machine::describeTurn(const Warp &warp) const {
  ReplayTurn turn{warp.cta, warp.local};
  if (warp.state == Warp::Done)
    turn.end = TurnEnd::Exit;
  if (warp.state != Warp::AtBarrier || condition)
    return turn;
  if (warp.barrier + 1 == barriers.size()) {
    turn.end = TurnEnd::ClusterBarrier;
    return turn;
  }
  uint32_t local = warp.barrier % perCta;
  turn.end = TurnEnd::Barrier;
  turn.place = int64_t(local) - program->numBarriers;
  for (const BarrierArray &array : program->arrays)
    if (local >= array.first && local < array.first + array.count) {
      turn.end = TurnEnd::Mbarrier;
      turn.place = array.offset + kBarrierBytes * (local - array.first);
    }
  return turn;
}

bool Machine::wantsTile() const {
  return llvm::any_of(
      warps, [](const Warp &warp) { return warp.state == Warp::AtTile; });
}

bool Machine::isDone() const {
  return llvm::all_of(
      warps, [](const Warp &warp) { return warp.state == Warp::Done; });
}

/// Runs a warp until it has to wait; true if it took a step, or has come to a
/// barrier.
bool Machine::advance(Warp &warp) {
  bool moved = false;
  while (warp.state != Warp::Done && !condition && !unsupported &&
         !isOverLimit() && !wantsChoice()) {
    // Who completes the phase lets it go on.
    if (warp.state == Warp::AtBarrier)
      return moved;
    const Step &step = program->steps[warp.pc];
    if (LLVM_UNLIKELY(pauses.isOn && steps >= pauses.after)) {
      uint32_t number = &warp - warps.data();
      if (pauses.isDue(warp, number, step, facts)) {
        pauses.of = pauses.last = number;
        pauses.isReached = true;
        return true;
      }
    }
    ++steps;
    if (!execute(warp, step)) {
      --steps;
      return moved || warp.state == Warp::AtBarrier;
    }
    if (unknowns)
      work.take(facts);
    steps += work.takeSteps();
    moved = parting.hasMoved = true;
  }
  return moved;
}

/// Takes a step; false if the warp has to wait before it.
bool Machine::execute(Warp &warp, const Step &step) {
  if (!warp.varied.empty() && !agreeOn(warp, step))
    return false;
  if (!warp.unknown.empty() && isOpenStep(warp, step) && !answer(warp, step))
    return false;
  if (LLVM_UNLIKELY(notes != nullptr))
    note(warp, step);
  switch (step.code) {
  case Code::Init:
    init(warp, step);
    break;
  case Code::Inval:
    inval(warp, step);
    break;
  case Code::Expect:
  case Code::Arrive:
    expectOrArrive(warp, step);
    break;
  case Code::Wait:
    if (!wait(warp, step))
      return false;
    break;
  case Code::CtaBarrier:
  case Code::NamedBarrier:
  case Code::ClusterBarrier:
    if (!meetAt(warp, step))
      return false;
    break;
  case Code::WarpBarrier:
    warp.knows.synchronise();
    break;
  case Code::TurnStart:
  case Code::TurnTake:
  case Code::TurnPass:
    if (!takeTurn(warp, step))
      return false;
    break;
  case Code::FenceProxy:
    orderOwn(warp, &Knowledge::generic, &Knowledge::async);
    break;
  case Code::FenceTensor:
    fenceTensor(warp, step.flag);
    break;
  case Code::TakeTensor:
    if (!takeTensor(warp, step))
      return false;
    break;
  case Code::LeaveTensor:
    leaveTensor(warp, step);
    break;
  case Code::Product:
    if (!agreeOnSum(warp, step))
      return false;
    startProduct(warp, step);
    break;
  case Code::Signal:
    step.flag ? signalCopies(warp, step) : signalProducts(warp, step);
    break;
  case Code::Access:
    accessAll(warp, step);
    break;
  case Code::Fill:
    fill(warp, step);
    break;
  case Code::Issue:
    issue(warp, step);
    break;
  case Code::Commit:
    closeGroup(warp, step.dim);
    break;
  case Code::Await:
    await(warp, step);
    break;
  case Code::ReadWord:
    readWord(warp, step);
    break;
  case Code::Use:
    useLoads(warp, step);
    break;
  case Code::Publish:
    checkStores(warp);
    break;
  default:
    return executeControl(warp, step);
  }
  ++warp.pc;
  return true;
}

void Machine::set(Warp &warp, Slot slot, int64_t value) {
  if (slot == kNoSlot)
    return;
  warp.values[slot] = value;
  warp.known[slot] = true;
  if (!warp.varied.empty())
    warp.varied.erase(slot);
  if (!warp.unknown.empty())
    warp.unknown.erase(slot);
  if (!warp.unwritten.empty())
    warp.unwritten.erase(slot);
}

bool Machine::get(Warp &warp, Slot slot, int64_t &value, const char *what) {
  if (slot != kNoSlot && warp.known[slot]) {
    value = warp.values[slot];
    return true;
  }
  if (auto read = warp.unwritten.find(slot); read != warp.unwritten.end())
    reportUnwritten(warp, read->second);
  else
    fail(warp.pc, std::string(what) +
                      " does not follow from constants, sizes, "
                      "the place of the warp and loop counters");
  return false;
}

void Machine::setArgument(Slot slot, int64_t value) {
  for (Warp &warp : warps)
    set(warp, slot, value);
}

int64_t Machine::getLaunchNumber(const Warp &warp, const Step &step) const {
  switch (step.launch) {
  case LaunchNumber::Block:
    return firstBlock[step.dim] + (step.dim == 0 ? warp.cta : 0);
  case LaunchNumber::Grid:
    return program->grid[step.dim];
  case LaunchNumber::Rank:
    return warp.cta;
  case LaunchNumber::Warpgroup:
    return warp.inPartition / 4;
  case LaunchNumber::Team:
    return program->teams > 1 ? warp.partition : 0;
  }
  llvm_unreachable("all numbers handled");
}

void Machine::takeLaunchNumber(Warp &warp, const Step &step) {
  if (step.dst == kNoSlot || setOpenLaunchNumber(warp, step))
    return;
  // The size of a grid that no launch gives is not known.
  if (step.launch == LaunchNumber::Grid && program->grid[step.dim] <= 0) {
    warp.known[step.dst] = false;
    return;
  }
  set(warp, step.dst, getLaunchNumber(warp, step));
  if (areBlocksOpen && step.launch == LaunchNumber::Block)
    setBlockNumbers(warp, step);
}

/// Without unknowns; the values that a tile may have go another way.
void Machine::computeSumOfKnown(Warp &warp, const Step &step) {
  bool isKnown = true;
  int64_t sum = step.value, added = 0;
  for (auto [number, slot] : llvm::enumerate(step.args)) {
    isKnown &= slot != kNoSlot && warp.known[slot];
    if (!isKnown)
      break;
    sum += step.factors[number] * warp.values[slot];
    if (!step.added.empty())
      added += step.added[number] * std::abs(warp.values[slot]);
  }
  isKnown &= step.added.empty() || added < step.bound;
  warp.known[step.dst] = false;
  if (isKnown)
    set(warp, step.dst, sum);
}

void Machine::compute(Warp &warp, const Step &step) {
  if (!warp.unwritten.empty())
    keepUnwritten(warp, step);
  bool readsGlobal = unknowns && !step.address.empty();
  if (readsGlobal || (!warp.unknown.empty() && isOpenStep(warp, step)))
    return setOpenResult(warp, step);
  if (unknowns)
    warp.unknown.erase(step.dst);
  auto isVaried = [&](Slot slot) { return warp.varied.count(slot) != 0; };
  if (!warp.varied.empty() && llvm::any_of(step.args, isVaried))
    return computeVaried(warp, step);
  if (!warp.varied.empty())
    warp.varied.erase(step.dst);
  if (!step.factors.empty())
    return computeSumOfKnown(warp, step);
  RegionNumber operands[3], result;
  bool isKnown = bool(step.compute);
  for (auto [index, slot] : llvm::enumerate(step.args)) {
    isKnown &= slot != kNoSlot && warp.known[slot];
    if (isKnown)
      operands[index].integer = warp.values[slot];
  }
  warp.known[step.dst] = false;
  if (isKnown && step.compute(operands, result))
    set(warp, step.dst, result.integer);
}

void Machine::copyValue(Warp &warp, const Step &step) {
  if (!warp.unwritten.empty())
    keepUnwritten(warp, step);
  warp.known[step.dst] = step.args[0] != kNoSlot && warp.known[step.args[0]];
  if (warp.known[step.dst])
    warp.values[step.dst] = warp.values[step.args[0]];
  if (unknowns) {
    std::optional<Affine> value = getOpen(warp, step.args[0]);
    warp.unknown.erase(step.dst);
    if (value)
      setOpen(warp, step.dst, *value);
  }
  if (warp.varied.empty())
    return;
  warp.varied.erase(step.dst);
  if (auto varied = warp.varied.find(step.args[0]); varied != warp.varied.end())
    warp.varied[step.dst] = varied->second;
}

bool Machine::getCondition(Warp &warp, const Step &step, int64_t &value) {
  auto unknown = warp.unknown.find(step.args[0]);
  if (unknown == warp.unknown.end() || !facts.imply(unknown->second))
    return get(warp, step.args[0], value, "the condition");
  value = facts.imply(unknown->second.plus(Affine(-1)));
  return true;
}

bool Machine::executeControl(Warp &warp, const Step &step) {
  int64_t a = 0, b = 0, by = 0;
  uint32_t next = warp.pc + 1;
  switch (step.code) {
  case Code::Compute:
    if (step.flag && pauses.isOn)
      pauses.begun.insert({&warp - warps.data(), step.dst});
    compute(warp, step);
    break;
  case Code::Launch:
    takeLaunchNumber(warp, step);
    break;
  case Code::Copy:
    copyValue(warp, step);
    break;
  case Code::Join:
    if (get(warp, step.args[0], a, "a product in flight") &&
        get(warp, step.args[1], b, "a product in flight"))
      set(warp, step.dst, std::max(a, b));
    break;
  case Code::Jump:
    next = step.target;
    break;
  case Code::Branch:
    if (!getCondition(warp, step, a))
      return false;
    next = a ? next : step.target;
    break;
  case Code::TileTest:
    next = isTile(warp, step.args[0]) ? next : step.target;
    break;
  case Code::Count:
    if (pauses.isOn)
      pauses.begun.insert({&warp - warps.data(), step.dst});
    if (!warp.unknown.empty() && isOpenStep(warp, step)) {
      compute(warp, step);
      break;
    }
    if (!get(warp, step.args[0], a, "the lower bound") ||
        !get(warp, step.args[1], b, "the upper bound") ||
        !get(warp, step.args[2], by, "the step"))
      return false;
    if (by <= 0)
      fail(warp.pc, "its step is not positive");
    compute(warp, step);
    break;
  case Code::Elect:
    a = step.value ? warp.local : warp.inPartition;
    if ((step.flag ? a % 4 : a) != 0) {
      next = step.target;
      break;
    }
    // All threads of the warp come to elect.sync, which orders no memory.
    warp.knows.converge();
    break;
  case Code::Leader:
    next = (warp.cta & step.where.getClear()) == 0 ? next : step.target;
    break;
  case Code::Partition:
    next = step.targets[warp.partition];
    break;
  case Code::Teams:
    if (warp.partition < step.first || warp.partition >= step.last)
      next = step.target;
    break;
  case Code::Tile:
    return takeTile(warp, step);
  case Code::RareBegin:
    beginRare(warp);
    break;
  case Code::RareEnd:
    endRare(warp);
    break;
  case Code::Exit:
    warp.state = Warp::Done;
    warp.knows.handOn(exits[warp.cta]);
    // What is left of tensor memory is seen where its columns are given back.
    for (unsigned engine = 0; engine < kFirstTensorEngine; ++engine)
      reportInFlight(warp, engine);
    return true;
  default:
    llvm_unreachable("every step is executed");
  }
  warp.pc = next;
  return true;
}
