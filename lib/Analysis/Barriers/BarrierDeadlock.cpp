//===- BarrierDeadlock.cpp - Who waits for whom ---------------------------===//
//
// Where nobody can go on, a warp waits for those that have not arrived yet and
// whose code still leads to an arrival.
//
//===----------------------------------------------------------------------===//

#include "BarrierMachine.h"
#include "attn/Support/WaitGroups.h"
#include "attn/Support/WarpNames.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// The steps that a warp of a partition may take next.
static void pushNext(const Program &program, uint32_t at, uint8_t partition,
                     SmallVectorImpl<uint32_t> &next) {
  const Step &step = program.steps[at];
  switch (step.code) {
  case Code::Exit:
    return;
  case Code::Jump:
    return next.push_back(step.target);
  case Code::Partition:
    return next.push_back(step.targets[partition]);
  case Code::Branch:
  case Code::Elect:
  case Code::Leader:
  case Code::Teams:
  case Code::Tile:
  case Code::TileTest:
    next.push_back(step.target);
    break;
  default:
    break;
  }
  next.push_back(at + 1);
}

/// Returns whether a step may let something arrive at a barrier.
bool Machine::maySignal(const Warp &warp, const Step &step, uint32_t number,
                        bool isForBytes) const {
  bool isOfCluster = number + 1 == barriers.size();
  if (step.code == Code::ClusterBarrier || isOfCluster)
    return isOfCluster && step.code == Code::ClusterBarrier;
  bool isOwn = number / perCta == warp.cta;
  uint32_t local = number % perCta;
  if (local < program->numBarriers) {
    bool isSignal = step.code == Code::Fill ||
                    (!isForBytes &&
                     (step.code == Code::Expect || step.code == Code::Arrive ||
                      step.code == Code::Signal));
    bool mayReach = false;
    for (uint32_t cta = 0; cta < program->cluster; ++cta)
      mayReach |= step.reaches(warp.cta, cta) &&
                  step.getBarrierCTA(cta) == number / perCta;
    if (!isSignal || !mayReach)
      return false;
    const BarrierArray &array = program->arrays[step.array];
    return local >= array.first && local < array.first + array.count;
  }
  if (!isOwn)
    return false;
  int64_t id = local - program->numBarriers, group = warp.inPartition / 4;
  switch (step.code) {
  case Code::CtaBarrier:
    return id == 0;
  case Code::NamedBarrier:
    return step.index != kNoSlot || id == step.first + (step.flag ? group : 0);
  case Code::TurnStart:
    return id == step.value;
  case Code::TurnTake:
    return id == step.value + group;
  case Code::TurnPass:
    return step.times > 0 && id == step.value + (group + 1) % step.times;
  default:
    return false;
  }
}

bool Machine::mayStillSignal(const Warp &warp, uint32_t number,
                             bool isForBytes) const {
  if (warp.state == Warp::Done)
    return false;
  llvm::BitVector seen(program->steps.size());
  SmallVector<uint32_t> open;
  // What it waits at it has come to already.
  pushNext(*program, warp.pc, warp.partition, open);
  while (!open.empty()) {
    uint32_t at = open.pop_back_val();
    if (at >= seen.size() || seen.test(at))
      continue;
    seen.set(at);
    if (maySignal(warp, program->steps[at], number, isForBytes))
      return true;
    pushNext(*program, at, warp.partition, open);
  }
  return false;
}

WaiterNames Machine::nameWaiters() const {
  WaiterNames names;
  for (const Warp &warp : warps)
    names.warps.push_back({{warp.cta, 0, 0}, warp.local});
  names.ctas = program->cluster > 1 ? CtaNames::Rank : CtaNames::None;
  WarpSpecializeOp partitions;
  program->kernel->walk([&](WarpSpecializeOp op) { partitions = op; });
  if (!partitions || program->teams > 1)
    return names;
  // Of one partition: by its name too.
  names.role = [this, partitions](ArrayRef<unsigned> group) -> std::string {
    uint8_t partition = warps[group.front()].partition;
    if (llvm::any_of(group, [&](unsigned index) {
          return warps[index].partition != partition;
        }))
      return "";
    Attribute name = WarpSpecializeOp(partitions).getNames()[partition];
    return ("'" + cast<StringAttr>(name).getValue() + "'").str();
  };
  return names;
}

/// Describes a warp that waits at a barrier.
Waiter Machine::describeWaiter(const Warp &warp) const {
  const Barrier &barrier = barriers[warp.barrier];
  bool isOwn = warp.barrier / perCta == warp.cta;
  Waiter waiter;
  waiter.warp = &warp - warps.data();
  waiter.place = warp.pc;
  waiter.awaited = llvm::formatv("phase {0} of {1}", warp.phase,
                                 nameOf(warp.barrier, /*hasCta=*/!isOwn));
  if (barrier.pending > 0)
    waiter.lacks = llvm::formatv("{0} of {1}", barrier.pending,
                                 describeCount(barrier.count, "arrival"));
  if (barrier.tx != 0)
    waiter.lacks += (waiter.lacks.empty() ? "" : " and ") +
                    describeCount(barrier.tx, "byte");
  bool isForBytes = barrier.pending <= 0;
  auto hasCome = [&](ArrayRef<uint32_t> events, unsigned index) {
    return llvm::any_of(events, [&](uint32_t event) {
      const Signal &found = signals[event];
      bool isCopy = program->steps[found.step].code == Code::Fill;
      return found.warp == index && isCopy == isForBytes;
    });
  };
  for (unsigned index = 0; index < warps.size(); ++index) {
    if (hasCome(barrier.signals[0], index))
      continue;
    if (mayStillSignal(warps[index], warp.barrier, isForBytes))
      waiter.awaitedOf.push_back(index);
    else if (warps[index].state == Warp::Done &&
             hasCome(barrier.signals[1], index))
      waiter.exited.push_back(index);
  }
  return waiter;
}

void Machine::reportDeadlock() {
  for (auto [cta, tensor] : llvm::enumerate(tensors))
    if (tensor.waits)
      return reportCondition(
          BarrierFault::Deadlock, Place{tensor.takeStep},
          llvm::formatv("CTA {0} waits here for CTA {1}, which does not take "
                        "its part of the columns of tensor memory",
                        cta, cta ^ 1));
  std::vector<Waiter> waiters;
  for (const Warp &warp : warps)
    if (warp.state == Warp::AtBarrier)
      waiters.push_back(describeWaiter(warp));
  if (waiters.empty() || condition)
    return;
  WaitGroups found = groupWaiters(waiters, nameWaiters());
  auto placeOf = [&](const WaitGroup &group) {
    const Warp &warp = warps[group.warps.front()];
    return here(warp, warp.barrier);
  };
  SmallVector<OpNote> notes;
  for (const WaitGroup &group : found.groups)
    if (!group.isSaid)
      notes.push_back(noteAt(placeOf(group), group.text));
  reportCondition(BarrierFault::Deadlock, placeOf(found.groups.front()),
                  found.summary, std::move(notes));
}
