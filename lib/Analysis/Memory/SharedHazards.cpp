//===- SharedHazards.cpp - Accesses that lack a barrier -------------------===//
//
// A forward data flow over the structured control flow. The state holds, for
// each access that no barrier has closed yet, how far it has got: a copy not
// yet in a group, a copy whose group has n younger ones, or done.
//
// A loop is examined twice. First alone, in its steady state, from nothing:
// what it needs on its own goes into it. Then with what comes from before it:
// a hazard with such an access is best closed by a barrier in front of it.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Memory/SharedHazards.h"
#include "RingPositions.h"
#include "attn/Analysis/Flow/HandleFlow.h"
#include "attn/Analysis/Flow/RegionPaths.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// How far an access has got: `kUncommitted`, the number of groups younger than
/// its own, or `kDone`.
using Progress = int64_t;
constexpr Progress kUncommitted = -1;
constexpr Progress kDone = std::numeric_limits<int64_t>::max();
/// Groups are told apart up to this number; more only lets a wait cover less.
constexpr Progress kMostGroups = 64;

/// Identity of a pending access: the op, its operand and the slot's position.
using Key = std::tuple<Operation *, unsigned, const void *, int64_t>;

struct Pending {
  SharedAccess access;
  RingPosition position;
  Progress progress = kDone;
  /// Each warpgroup has had a barrier of its own behind it.
  bool isOrderedInWarpgroup = false;
};

using State = llvm::MapVector<Key, Pending, std::map<Key, unsigned>>;

class HazardFinder {
public:
  using Result = FailureOr<std::optional<SharedHazard>>;

  explicit HazardFinder(SharedAccessCache &cache) : cache(cache) {}

  /// The first hazard in `block`, with `state` on entry; leaves in `state` what
  /// is pending at its end.
  Result run(Block &block, State &state);

private:
  Result visit(Operation &op, State &state);
  Result visitAccesses(Operation &op, State &state);
  Result visitBarrier(Operation &op, State &state);
  /// Of an op that one thread or one CTA runs.
  Result visitBody(Operation &op, State &state);
  Result visitPartitions(WarpSpecializeOp op, State &state);
  Result visitBranch(Operation *op, State &state);
  /// Of one region.
  Result visitLoop(LoopLikeOpInterface op, State &state);
  /// Of several regions.
  Result visitWhile(LoopLikeOpInterface op, State &state);
  /// Runs the body until nothing new is pending at its head.
  Result runToFixpoint(LoopLikeOpInterface op, State &head);

  /// What `getSharedAccesses` says, kept from one call to the next.
  FailureOr<ArrayRef<SharedAccess>> getAccesses(Operation &op);

  SharedAccessCache &cache;
  RingPositions rings;
};

} // namespace

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

static Key keyOf(const Pending &pending) {
  return {pending.access.op, pending.access.operand,
          pending.position.cursor.getAsOpaquePointer(),
          pending.position.distance};
}

/// Adds an access; of two with the same key the less advanced one stays. True
/// if that changed something.
static bool add(State &state, const Pending &pending) {
  auto [entry, isNew] = state.insert({keyOf(pending), pending});
  if (isNew)
    return true;
  Pending &known = entry->second;
  bool changed = pending.progress < known.progress;
  known.progress = std::min(known.progress, pending.progress);
  if (known.isOrderedInWarpgroup && !pending.isOrderedInWarpgroup) {
    known.isOrderedInWarpgroup = false;
    changed = true;
  }
  return changed;
}

static bool join(State &into, const State &from) {
  bool changed = false;
  for (const auto &entry : from)
    changed |= add(into, entry.second);
  return changed;
}

/// What is pending behind a barrier.
static State withoutDone(State state) {
  state.remove_if(
      [](const auto &entry) { return entry.second.progress == kDone; });
  return state;
}

/// Gives every access a new position.
static State
mapPositions(const State &state,
             llvm::function_ref<RingPosition(Pending &)> getPosition) {
  State result;
  for (const auto &entry : state) {
    Pending pending = entry.second;
    pending.position = getPosition(pending);
    add(result, pending);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Conflicts
//===----------------------------------------------------------------------===//

/// True for slots of one ring of which it is not known whether they are one.
static bool areUnknownSlots(const Pending &a, const Pending &b) {
  SlotOp slotA = a.access.slot, slotB = b.access.slot;
  return slotA && slotB && slotA.getSource() == slotB.getSource() &&
         (!a.position.cursor || a.position.cursor != b.position.cursor) &&
         !(a.access.slotIndex && b.access.slotIndex);
}

static bool mayTouchSameBytes(const Pending &a, const Pending &b) {
  if (!bytesOverlap(a.access, b.access))
    return false;
  SlotOp slotA = a.access.slot, slotB = b.access.slot;
  bool sameRing = slotA && slotB && slotA.getSource() == slotB.getSource();
  bool sameCursor = a.position.cursor && a.position.cursor == b.position.cursor;
  return !sameRing || !sameCursor || a.position.distance == b.position.distance;
}

FailureOr<ArrayRef<SharedAccess>> HazardFinder::getAccesses(Operation &op) {
  if (auto found = cache.find(&op); found != cache.end())
    return ArrayRef<SharedAccess>(found->second);
  auto accesses = getSharedAccesses(&op);
  if (failed(accesses))
    return failure();
  return ArrayRef<SharedAccess>(cache[&op] = std::move(*accesses));
}

/// How far an access has got behind its op.
static Progress getProgress(const SharedAccess &access) {
  if (!access.engine)
    return kDone;
  return cast<AsyncOpInterface>(access.op).closesGroup() ? 0 : kUncommitted;
}

/// True if one thread carries out both, in the order of the program.
static bool isSameThread(const SharedAccess &a, const SharedAccess &b) {
  auto electA = a.op->getParentOfType<ElectOp>(),
       electB = b.op->getParentOfType<ElectOp>();
  if (!electA || !electB ||
      electA.getEachWarpgroup() != electB.getEachWarpgroup())
    return false;
  return !electA.getEachWarpgroup() || haveSameOwnRows(a, b);
}

/// A group of `engine` was closed: those before it are one older.
static void commit(State &state, const AsyncEngine &engine) {
  for (auto &entry : state)
    if (entry.second.access.engine == &engine &&
        entry.second.progress < kMostGroups)
      ++entry.second.progress;
}

/// All but the last `pending` groups of `engine` are complete.
static void await(State &state, const AsyncEngine &engine, int64_t pending) {
  for (auto &entry : state)
    if (entry.second.access.engine == &engine &&
        entry.second.progress >= pending)
      entry.second.progress = kDone;
}

HazardFinder::Result HazardFinder::visitAccesses(Operation &op, State &state) {
  if (llvm::none_of(op.getOperandTypes(), llvm::IsaPred<BufferType>))
    return {std::nullopt};
  auto accesses = getAccesses(op);
  if (failed(accesses))
    return failure();
  SmallVector<Pending, 2> made;
  for (const SharedAccess &access : *accesses) {
    if (access.isOrderedByBarriers())
      continue;
    Pending second{access, {}, getProgress(access)};
    if (access.slot)
      second.position = rings.getPosition(access.slot);
    std::optional<SharedHazard> found;
    for (const auto &[key, first] : state) {
      if (!first.access.isWrite && !access.isWrite)
        continue;
      if (isSameThread(first.access, access) ||
          areSharedOutAlike(first.access, access) ||
          !mayTouchSameBytes(first, second))
        continue;
      bool isOwn = haveSameOwnRows(first.access, access);
      SharedHazard hazard{SharedHazard::Kind::NeedsBarrier, first.access,
                          access, &op, isOwn};
      if (first.progress != kDone) {
        hazard.kind = SharedHazard::Kind::NotAwaited;
        hazard.areUnknownSlots = areUnknownSlots(first, second);
        return {hazard};
      }
      if (!found && !(isOwn && first.isOrderedInWarpgroup))
        found = hazard;
    }
    if (found)
      return {found};
    made.push_back(second);
  }
  for (const Pending &pending : made)
    add(state, pending);
  return {std::nullopt};
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// True if the op or one inside it matters to this analysis.
static bool touchesShared(Operation *op) {
  return op
      ->walk([](Operation *nested) {
        bool touches =
            isa<gpu::BarrierOp, TileArriveOp, ClusterBarrierOp, NamedBarrierOp,
                TeamBarrierOp, AsyncOpInterface>(nested) ||
            llvm::any_of(nested->getOperandTypes(), llvm::IsaPred<BufferType>);
        return touches ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// True for a signal that comes when the copies before it have ended: who waits
/// for it waits for them.
static bool signalsCopies(Operation &op) {
  if (auto commit = dyn_cast<CommitOpInterface>(op))
    return &commit.getCommittedEngine() == &kCopyGroups;
  auto release = dyn_cast<ChannelUserOpInterface>(op);
  if (!release || release.getChannelUse() != ChannelUse::Release)
    return false;
  auto channel = release.getUsedChannel().getDefiningOp<ChannelCreateOp>();
  std::optional<unsigned> role =
      channel ? channel.findRole(release.getUsedRole()) : std::nullopt;
  return role &&
         getChannelSignal(channel.getRole(*role).getSignal()).awaitsCopies;
}

HazardFinder::Result HazardFinder::visit(Operation &op, State &state) {
  if (signalsCopies(op)) {
    commit(state, kCopyGroups);
    await(state, kCopyGroups, /*pending=*/0);
    return {std::nullopt};
  }
  if (isa<gpu::BarrierOp, TileArriveOp, ClusterBarrierOp, NamedBarrierOp,
          TeamBarrierOp>(op))
    return visitBarrier(op, state);
  if (auto async = dyn_cast<AsyncOpInterface>(op)) {
    if (std::optional<int64_t> pending = async.getAwaitedGroups())
      await(state, async.getAsyncEngine(), *pending);
    else if (async.closesGroup())
      commit(state, async.getAsyncEngine());
    return visitAccesses(op, state);
  }
  if (runsInSomeThreads(&op))
    return visitBody(op, state);
  if (auto partitions = dyn_cast<WarpSpecializeOp>(op))
    return visitPartitions(partitions, state);
  if (op.getNumRegions() == 0 || !touchesShared(&op))
    return visitAccesses(op, state);
  if (isBranch(&op))
    return visitBranch(&op, state);
  if (!isSequentialLoop(&op))
    return op.emitOpError("expected accesses to shared memory in branches and "
                          "in loops that run one iteration after the other");
  auto loop = cast<LoopLikeOpInterface>(op);
  return op.getNumRegions() == 1 ? visitLoop(loop, state)
                                 : visitWhile(loop, state);
}

HazardFinder::Result HazardFinder::run(Block &block, State &state) {
  for (Operation &op : block) {
    Result hazard = visit(op, state);
    if (failed(hazard) || *hazard)
      return hazard;
  }
  return {std::nullopt};
}

/// A CTA's barrier counts outside of partitions, a named one with all threads
/// of its partition inside, and those of the warpgroups for their own rows.
HazardFinder::Result HazardFinder::visitBarrier(Operation &op, State &state) {
  auto [partitions, index] = getPartition(&op);
  auto named = dyn_cast<NamedBarrierOp>(op);
  if (!named && partitions) {
    InFlightDiagnostic diag =
        op.emitError("expected no barrier of all threads in partition ")
        << partitions.getNames()[index] << ", got one";
    diag.attachNote(partitions.getLoc())
        << "the other partitions do not come to it";
    return failure();
  }
  if (named && named.getEachWarpgroup()) {
    for (auto &entry : state)
      entry.second.isOrderedInWarpgroup |= entry.second.progress == kDone;
    return {std::nullopt};
  }
  if (!named || (partitions && int64_t(named.getThreads()) ==
                                   32 * partitions.getWarps()[index]))
    state = withoutDone(std::move(state));
  return {std::nullopt};
}

HazardFinder::Result HazardFinder::visitBody(Operation &op, State &state) {
  Result hazard = run(op.getRegion(0).front(), state);
  if (succeeded(hazard) && *hazard)
    (*hazard)->insertBefore = &op;
  return hazard;
}

/// Each partition is examined alone, since channels order one after the other.
/// To what comes before and after, all of them are one access of everything
/// that they touch.
HazardFinder::Result HazardFinder::visitPartitions(WarpSpecializeOp op,
                                                   State &state) {
  for (Region &region : op.getPartitions()) {
    State inner;
    Result hazard = run(region.front(), inner);
    if (failed(hazard) || *hazard)
      return hazard;
  }
  std::optional<SharedHazard> hazard;
  State after = state;
  WalkResult walk = op->walk([&](Operation *nested) -> WalkResult {
    auto accesses = getAccesses(*nested);
    if (failed(accesses))
      return failure();
    for (const SharedAccess &access : *accesses) {
      Pending second{access, {}, kDone};
      for (const auto &[key, first] : state)
        if ((first.access.isWrite || access.isWrite) && !hazard &&
            bytesOverlap(first.access, access))
          hazard = SharedHazard{first.progress == kDone
                                    ? SharedHazard::Kind::NeedsBarrier
                                    : SharedHazard::Kind::NotAwaited,
                                first.access, access, op};
      add(after, second);
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  state = std::move(after);
  return {hazard};
}

HazardFinder::Result HazardFinder::visitBranch(Operation *op, State &state) {
  State result;
  if (maySkipRegions(op))
    result = state;
  for (Region &region : op->getRegions()) {
    State inner = state;
    if (!region.empty()) {
      Result hazard = run(region.front(), inner);
      if (failed(hazard))
        return failure();
      if (*hazard) {
        // In front of the branch, if that helps: what follows the branch needs
        // the barrier too as a rule.
        State cleared = withoutDone(state);
        Result remaining = run(region.front(), cleared);
        if (failed(remaining) || *remaining)
          return remaining;
        (*hazard)->insertBefore = op;
        return hazard;
      }
    }
    join(result, inner);
  }
  state = std::move(result);
  return {std::nullopt};
}

HazardFinder::Result HazardFinder::runToFixpoint(LoopLikeOpInterface op,
                                                 State &head) {
  while (true) {
    State inner = head;
    Result hazard = run(getRingBody(op).front(), inner);
    if (failed(hazard) || *hazard)
      return hazard;
    State next = mapPositions(inner, [&](const Pending &pending) {
      return rings.iterate(op, pending.access, pending.position);
    });
    if (!join(head, next))
      return {std::nullopt};
  }
}

HazardFinder::Result HazardFinder::visitLoop(LoopLikeOpInterface op,
                                             State &state) {
  State steady;
  Result hazard = runToFixpoint(op, steady);
  if (failed(hazard) || *hazard)
    return hazard;

  State entry = mapPositions(state, [&](const Pending &pending) {
    return rings.enter(op, pending.access, pending.position);
  });
  State head = steady;
  join(head, entry);
  hazard = runToFixpoint(op, head);
  if (failed(hazard))
    return failure();
  if (*hazard) {
    State cleared = steady;
    join(cleared, withoutDone(entry));
    Result remaining = runToFixpoint(op, cleared);
    if (failed(remaining) || *remaining)
      return remaining;
    (*hazard)->insertBefore = op;
    return hazard;
  }
  state = mapPositions(head, [&](Pending &pending) {
    return rings.leave(op, pending.access, pending.position);
  });
  return {std::nullopt};
}

/// Such a loop runs its regions in turn and is left behind the first one. What
/// is known about slots of rings inside is forgotten at its ends: no ring is
/// walked by it.
HazardFinder::Result HazardFinder::visitWhile(LoopLikeOpInterface op,
                                              State &state) {
  auto forget = [&](const Pending &pending) -> RingPosition {
    Value cursor = pending.position.cursor;
    bool isInside =
        cursor && op->isAncestor(cursor.getParentRegion()->getParentOp());
    return isInside ? RingPosition() : pending.position;
  };
  State head = state;
  while (true) {
    State inner = head;
    Result hazard = run(getRingBody(op).front(), inner);
    if (failed(hazard) || *hazard)
      return hazard;
    State end = inner;
    SmallVector<Region *> regions = op.getLoopRegions();
    for (Region *region : llvm::drop_begin(regions)) {
      hazard = run(region->front(), end);
      if (failed(hazard) || *hazard)
        return hazard;
    }
    if (!join(head, mapPositions(end, forget))) {
      state = mapPositions(inner, forget);
      return {std::nullopt};
    }
  }
}

FailureOr<std::optional<SharedHazard>>
attn::findSharedHazard(gpu::GPUFuncOp kernel, SharedAccessCache &cache) {
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitOpError("expected one block, got ")
           << kernel.getBody().getBlocks().size();
  State state;
  return HazardFinder(cache).run(kernel.getBody().front(), state);
}
