//===- InsertFences.cpp - Barriers for shared memory ----------------------===//
//
// Asks the analysis for the first hazard, puts a barrier where it says, and
// starts over until there is none. Since a barrier goes to the latest place
// that closes its hazard, it closes as many of the following ones as it can. At
// the end each barrier is taken out once to see whether later ones made it
// superfluous, so that none can be removed from the result.
//
// In a partition a barrier is a named one of the partition's threads; each
// partition that needs one has an id of its own. Where a barrier of each
// warpgroup is enough there are as many ids as warpgroups. Votes of warpgroups
// (attn.rare) take the same ids: a warpgroup comes to one after the other.
//
// Tensor memory needs no barriers of its own: partitions hand its columns to
// each other by channels. It needs waits and fences at their signals.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Barriers/BarrierCheck.h"
#include "attn/Analysis/Flow/HandleFlow.h"
#include "attn/Analysis/Memory/ProxyFences.h"
#include "attn/Analysis/Memory/SharedHazards.h"
#include "attn/Analysis/Memory/TensorFences.h"
#include "attn/Dialect/Attn/IR/Rung.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/BitVector.h"
#include <map>

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNINSERTFENCESPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Barriers of a CTA that have a number (PTX ISA, barrier); 0 is gpu.barrier's.
constexpr int64_t kNamedBarriers = 16;

/// Steps of warps that are followed to see whether what is likely to be
/// superfluous may be left out, which is one check, and, in all checks
/// together, which of the rest may be: some hundredths of a second.
constexpr int64_t kLikelySteps = 100000;
constexpr int64_t kOtherSteps = 20000;
/// Of the former within the first tile, behind which a proof takes two more at
/// least (docs/Rationale/BarrierCheck.md).
constexpr int64_t kFirstTileSteps = 40000;

/// A barrier and why it is there.
struct Fence {
  Operation *barrier;
  SharedHazard hazard;
};

/// Makes barriers, of the CTA or of a partition.
class BarrierMaker {
public:
  explicit BarrierMaker(gpu::GPUFuncOp kernel) : kernel(kernel) {}
  /// A barrier that closes a hazard; null after a diagnostic.
  Operation *make(const SharedHazard &hazard);
  /// Gives an id to each vote of a warpgroup that has none.
  LogicalResult numberVotes();

private:
  LogicalResult collectTakenIds();
  /// The first id of the barriers of a partition or of its warpgroups; fails
  /// with a diagnostic at `place`, an op of the partition.
  FailureOr<int64_t> allot(Operation *place, bool each);
  /// The first of `count` free ids in a row, or -1.
  int64_t findFree(int64_t count) const;

  gpu::GPUFuncOp kernel;
  std::optional<llvm::BitVector> taken;
  /// The first id of a partition's barriers, of all its threads or of each
  /// warpgroup.
  std::map<std::pair<unsigned, bool>, int64_t> ids;
};

struct AttnInsertFencesPass
    : attn::impl::AttnInsertFencesPassBase<AttnInsertFencesPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>())
      if (failed(insert(kernel)))
        return signalPassFailure();
    advanceRung(getOperation(), Rung::Barrier);
  }

  LogicalResult insert(gpu::GPUFuncOp kernel);
  LogicalResult removeSuperfluous(gpu::GPUFuncOp kernel,
                                  SharedAccessCache &cache,
                                  SmallVectorImpl<Fence> &fences);
  /// Takes out what another partition's signals make superfluous, and returns
  /// the steps that its proofs took.
  int64_t removeProved(gpu::GPUFuncOp kernel, SmallVectorImpl<Fence> &fences);
  /// Waits and fences of tensor memory.
  LogicalResult orderTensorMemory(gpu::GPUFuncOp kernel);
  void report(gpu::GPUFuncOp kernel, ArrayRef<Fence> fences, size_t proxyFences,
              int64_t trialSteps);
};

} // namespace

static StringRef describe(const SharedAccess &access) {
  return access.isWrite ? "write" : "read";
}

/// The warpgroups of the partition that an op stands in, 0 if there is none.
static int64_t getWarpgroups(Operation *op) {
  auto [partitions, index] = getPartition(op);
  return partitions ? partitions.getWarps()[index] / 4 : 0;
}

/// The ids of the named barriers that are there already.
LogicalResult BarrierMaker::collectTakenIds() {
  taken.emplace(kNamedBarriers);
  taken->set(0);
  auto take = [&](int64_t first, int64_t count) {
    int64_t end = std::min(first + count, kNamedBarriers);
    taken->set(first, std::max(first, end));
  };
  WalkResult walk = kernel.walk([&](NamedBarrierOp op) -> WalkResult {
    APInt id;
    if (!matchPattern(op.getId(), m_ConstantInt(&id)))
      return op.emitOpError("expected a constant id beside those that "
                            "attn-insert-fences allots, got one from above");
    take(id.getLimitedValue(kNamedBarriers),
         op.getEachWarpgroup() ? getWarpgroups(op) : 1);
    return WalkResult::advance();
  });
  kernel.walk([&](TurnTakeOp op) { take(op.getId(), getWarpgroups(op)); });
  kernel.walk([&](RareOp op) {
    if (std::optional<int64_t> id = op.getBarrier())
      take(*id, getWarpgroups(op));
  });
  return failure(walk.wasInterrupted());
}

int64_t BarrierMaker::findFree(int64_t count) const {
  for (int64_t first = 1; first + count <= kNamedBarriers; ++first)
    if (taken->find_first_in(first, first + count) < 0)
      return first;
  return -1;
}

FailureOr<int64_t> BarrierMaker::allot(Operation *place, bool each) {
  if (!taken && failed(collectTakenIds()))
    return failure();
  auto [partitions, index] = getPartition(place);
  int64_t count = each ? partitions.getWarps()[index] / 4 : 1;
  auto [entry, isNew] = ids.try_emplace({index, each}, findFree(count));
  if (!isNew)
    return entry->second;
  if (entry->second < 0)
    return place->emitOpError("expected a run of ")
           << count << " free named barriers for partition "
           << partitions.getNames()[index] << ", got none among "
           << kNamedBarriers;
  taken->set(entry->second, entry->second + count);
  return entry->second;
}

Operation *BarrierMaker::make(const SharedHazard &hazard) {
  Operation *place = hazard.insertBefore;
  OpBuilder builder(place);
  auto [partitions, index] = getPartition(place);
  // Buffers are a team's own.
  if (getTeams(kernel) > 1)
    return TeamBarrierOp::create(builder, place->getLoc());
  if (!partitions)
    return gpu::BarrierOp::create(builder, place->getLoc());
  int64_t warps = partitions.getWarps()[index];
  // A single warpgroup is the partition.
  bool each = hazard.eachWarpgroup && warps > 4;
  FailureOr<int64_t> first = allot(place, each);
  if (failed(first))
    return nullptr;
  Value id = arith::ConstantIntOp::create(builder, place->getLoc(), *first, 32);
  int64_t threads = each ? 128 : 32 * warps;
  return NamedBarrierOp::create(builder, place->getLoc(), id, threads, each);
}

LogicalResult BarrierMaker::numberVotes() {
  WalkResult walk = kernel.walk([&](RareOp op) -> WalkResult {
    if (!op.getEachWarpgroup() || op.getBarrier())
      return WalkResult::advance();
    auto [partitions, index] = getPartition(op);
    int64_t warps = partitions ? partitions.getWarps()[index] : 0;
    if (warps % 4 != 0 || warps == 0)
      return op.emitOpError("expected a partition of whole warpgroups around "
                            "'each_warpgroup', got ")
             << warps << " warps";
    FailureOr<int64_t> first = allot(op, /*each=*/warps > 4);
    if (failed(first))
      return WalkResult::interrupt();
    op.setBarrier(*first);
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// An access that is not complete where another one needs it to be.
static LogicalResult emitNotAwaited(const SharedHazard &hazard) {
  auto diag = hazard.second.op->emitError()
              << describe(hazard.second) << " of buffer '"
              << getBufferName(hazard.second.alloc) << "', "
              << hazard.first.engine->unfinished;
  diag.attachNote(hazard.first.op->getLoc()) << hazard.first.engine->remedy;
  if (hazard.areUnknownSlots) {
    SlotOp slot = hazard.second.slot;
    diag.attachNote(slot.getLoc())
        << "whether this is another slot is not known: its index and that of "
           "the copy's slot have to be constants, or one counter or carried "
           "value plus constants, modulo "
        << slot.getSource().getType().getNumSlots();
  }
  return diag;
}

LogicalResult
AttnInsertFencesPass::removeSuperfluous(gpu::GPUFuncOp kernel,
                                        SharedAccessCache &cache,
                                        SmallVectorImpl<Fence> &fences) {
  SmallVector<Fence> kept;
  for (Fence &fence : fences) {
    Operation *next = fence.barrier->getNextNode();
    fence.barrier->remove();
    auto hazard = findSharedHazard(kernel, cache);
    if (failed(hazard) || *hazard) {
      next->getBlock()->getOperations().insert(next->getIterator(),
                                               fence.barrier);
      kept.push_back(fence);
    } else {
      // A named barrier's id goes with it.
      SmallVector<Value> operands(fence.barrier->getOperands());
      fence.barrier->destroy();
      for (Value id : operands)
        if (id.use_empty())
          id.getDefiningOp()->erase();
    }
    if (failed(hazard))
      return failure();
  }
  fences = std::move(kept);
  return success();
}

/// Erases an op, the constants that it alone used, and a region that has
/// nothing else in it.
static void eraseWithRest(Operation *op) {
  while (op) {
    SmallVector<Value> operands(op->getOperands());
    Operation *around = op->getParentOp();
    Block *block = op->getBlock();
    op->erase();
    for (Value operand : operands)
      if (Operation *def = operand.getDefiningOp();
          def && isOpTriviallyDead(def))
        def->erase();
    bool isEmpty = block->without_terminator().empty() &&
                   isa<ElectOp>(around) && around->use_empty();
    op = isEmpty ? around : nullptr;
  }
}

/// Whether an op is executed for each block of a tile, in a loop within the one
/// over tiles. A barrier there keeps the warps of a partition together, which
/// is worth more than it takes.
static bool isOfBlocks(Operation *op) {
  unsigned loops = 0;
  for (Operation *at = op->getParentOp(); !isa<WarpSpecializeOp>(at);
       at = at->getParentOp())
    loops += isa<LoopLikeOpInterface>(at);
  return loops > 1;
}

namespace {

/// Leaves out what a kernel is proved without, as long as there are steps left.
class ProvedRemoval {
public:
  /// Calls `remove` with an op and whether nothing takes its place.
  using Remove = function_ref<void(Operation *, bool)>;

  explicit ProvedRemoval(Remove remove) : remove(remove) {}
  /// False if something is left.
  bool removeAll(ArrayRef<Operation *> ops, int64_t steps);
  /// True if a proof was given up, since it takes too many steps.
  bool hasGivenUp() const { return givenUp; }
  void removeSome(ArrayRef<Operation *> ops, int64_t steps);
  /// Steps that all proofs took.
  int64_t getSteps() const { return steps; }
  /// Ops that were left because there were no more steps to try it.
  ArrayRef<Operation *> getUntried() const { return untried; }

private:
  bool isProvedWithout(ArrayRef<Operation *> ops);
  bool narrow(Operation *op);
  void halve(ArrayRef<Operation *> ops);

  Remove remove;
  int64_t left = 0, steps = 0;
  bool isFollowed = true, givenUp = false;
  SmallVector<Operation *> untried;
};

} // namespace

bool ProvedRemoval::isProvedWithout(ArrayRef<Operation *> ops) {
  if (left <= 0 || !isFollowed)
    return false;
  BarrierCheckOptions options;
  options.limit = left;
  options.firstTileLimit = kFirstTileSteps;
  BarrierReport report = checkWithout(ops, options);
  left -= report.steps;
  steps += report.steps;
  isFollowed &= report.verdict != BarrierVerdict::Unsupported;
  givenUp |= report.verdict == BarrierVerdict::Bounded;
  return report.verdict == BarrierVerdict::Proved;
}

/// Puts a barrier of each warp in front of one of a partition if the kernel is
/// proved with that in its place.
bool ProvedRemoval::narrow(Operation *op) {
  if (!isa<NamedBarrierOp>(op))
    return false;
  OpBuilder builder(op);
  Value lanes = arith::ConstantIntOp::create(builder, op->getLoc(), -1, 32);
  auto barrier = NVVM::SyncWarpOp::create(builder, op->getLoc(), lanes);
  if (isProvedWithout(op))
    return true;
  barrier.erase();
  lanes.getDefiningOp()->erase();
  return false;
}

bool ProvedRemoval::removeAll(ArrayRef<Operation *> ops, int64_t steps) {
  left = steps;
  if (ops.empty() || !isProvedWithout(ops))
    return ops.empty();
  for (Operation *op : ops)
    remove(op, /*isSuperfluous=*/true);
  return true;
}

void ProvedRemoval::removeSome(ArrayRef<Operation *> ops, int64_t steps) {
  left = steps;
  halve(ops);
}

/// All at once, else by halves: as a rule most of them go, or few.
void ProvedRemoval::halve(ArrayRef<Operation *> ops) {
  if (removeAll(ops, left))
    return;
  if (ops.size() == 1) {
    if (narrow(ops.front()))
      remove(ops.front(), /*isSuperfluous=*/false);
    else if (left <= 0 && isFollowed)
      untried.push_back(ops.front());
    return;
  }
  halve(ops.take_front(ops.size() / 2));
  halve(ops.drop_front(ops.size() / 2));
}

/// Whether an mbarrier is waited for right in front of a barrier: whoever
/// signals it may have waited for the others.
static bool standsBehindWait(Operation *barrier) {
  Operation *op = barrier->getPrevNode();
  while (op && isMemoryEffectFree(op))
    op = op->getPrevNode();
  return isa_and_nonnull<MBarrierWaitOp>(op);
}

namespace {

/// Which waits for bulk stores come to some that are open, as one thread goes
/// through the program.
class OpenStores {
public:
  explicit OpenStores(gpu::GPUFuncOp kernel) {
    do {
      changes = false;
      walk(kernel.getBody(), /*isOpen=*/false);
    } while (changes);
  }
  bool isNeeded(Operation *wait) const { return needed.contains(wait); }

private:
  bool walk(Region &region, bool isOpen);

  DenseSet<Operation *> needed;
  /// Loops whose body may leave some open.
  DenseSet<Operation *> leavesOpen;
  bool changes = false;
};

} // namespace

/// Whether some may be open at the end of a region.
bool OpenStores::walk(Region &region, bool isOpen) {
  for (Operation &op : region.getOps()) {
    auto async = dyn_cast<AsyncOpInterface>(op);
    if (async && &async.getAsyncEngine() == &kBulkStores) {
      if (isOpen && async.getAwaitedGroups())
        needed.insert(&op);
      isOpen = !async.getAwaitedGroups();
    }
    if (op.getNumRegions() == 0)
      continue;
    bool isLoop = isa<LoopLikeOpInterface>(op), isOpenBehind = false;
    for (Region &inner : op.getRegions()) {
      bool isOpenAtEnd = walk(inner, isOpen || leavesOpen.contains(&op));
      changes |= isLoop && isOpenAtEnd && leavesOpen.insert(&op).second;
      isOpenBehind |= isOpenAtEnd;
    }
    isOpen = isOpenBehind || (isLoop && isOpen);
  }
  return isOpen;
}

int64_t AttnInsertFencesPass::removeProved(gpu::GPUFuncOp kernel,
                                           SmallVectorImpl<Fence> &fences) {
  SmallVector<Operation *> likely, others;
  for (const Fence &fence : fences)
    if (fence.barrier->getParentOfType<WarpSpecializeOp>() &&
        !isOfBlocks(fence.barrier))
      (standsBehindWait(fence.barrier) ? likely : others)
          .push_back(fence.barrier);
  OpenStores stores(kernel);
  kernel.walk([&](AsyncOpInterface op) {
    if (&op.getAsyncEngine() == &kBulkStores && op.getAwaitedGroups())
      (stores.isNeeded(op) ? others : likely).push_back(op);
  });
  auto remove = [&](Operation *op, bool isSuperfluous) {
    remark::passed(op->getLoc(), remark::RemarkOpts::name("superfluous")
                                     .category("attn.insert-fences")
                                     .function(kernel.getName()))
        << remark::add(isSuperfluous
                           ? "the kernel is proved without {0}, which is left "
                             "out"
                           : "the kernel is proved with a barrier of each warp "
                             "in place of {0}",
                       op->getName().getStringRef().str());
    ++numSuperfluous;
    llvm::erase_if(fences,
                   [&](const Fence &fence) { return fence.barrier == op; });
    eraseWithRest(op);
  };
  ProvedRemoval removal(remove);
  if (!removal.removeAll(likely, kLikelySteps))
    others.append(likely);
  // What is too long for the long limit is so for the short one.
  ArrayRef<Operation *> untried = others;
  if (!removal.hasGivenUp()) {
    removal.removeSome(others, kOtherSteps);
    untried = removal.getUntried();
  }
  for (Operation *op : untried)
    remark::missed(op->getLoc(), remark::RemarkOpts::name("superfluous-kept")
                                     .category("attn.insert-fences")
                                     .function(kernel.getName()))
        << remark::reason(
               "{0} is kept: whether the kernel is proved without it "
               "takes more steps than are tried",
               op->getName().getStringRef().str());
  return removal.getSteps();
}

void AttnInsertFencesPass::report(gpu::GPUFuncOp kernel, ArrayRef<Fence> fences,
                                  size_t proxyFences, int64_t trialSteps) {
  auto options = remark::RemarkOpts::name("barriers")
                     .category("attn.insert-fences")
                     .function(kernel.getName());
  remark::passed(kernel.getLoc(), options)
      << remark::add("barriers inserted")
      << remark::metric("count", fences.size())
      << remark::metric("proxy-fences", proxyFences)
      << remark::metric("trial-steps", trialSteps);
  for (const Fence &fence : fences)
    remark::passed(fence.hazard.insertBefore->getLoc(),
                   remark::RemarkOpts::name("barrier")
                       .category("attn.insert-fences")
                       .function(kernel.getName()))
        << remark::add("a barrier separates a {0} of '{1}' from a {2} of '{3}'",
                       describe(fence.hazard.first).str(),
                       getBufferName(fence.hazard.first.alloc).str(),
                       describe(fence.hazard.second).str(),
                       getBufferName(fence.hazard.second.alloc).str())
        << remark::metric("first",
                          fence.hazard.first.op->getName().getStringRef().str())
        << remark::metric(
               "second",
               fence.hazard.second.op->getName().getStringRef().str());
}

/// Once shared memory is laid out, no pass may have added to it.
static LogicalResult checkClosed(gpu::GPUFuncOp kernel) {
  if (!kernel->hasAttr(AttnDialect::kSharedBytesAttr))
    return success();
  WalkResult walked = kernel.walk([](Operation *op) {
    if (!isa<AllocOp, MBarrierAllocOp>(op) || op->hasAttr("offset"))
      return WalkResult::advance();
    op->emitOpError("expected an offset: shared memory is laid out, and no "
                    "pass creates buffers any more");
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult AttnInsertFencesPass::orderTensorMemory(gpu::GPUFuncOp kernel) {
  FailureOr<TensorFences> missing = findMissingTensorFences(kernel);
  if (failed(missing))
    return failure();
  for (Operation *place : missing->storeWaits) {
    OpBuilder builder(place);
    TmemStoreWaitOp::create(builder, place->getLoc());
  }
  auto fence = [](Operation *place, TensorFence kind) {
    OpBuilder builder(place);
    Tcgen05FenceOp::create(builder, place->getLoc(), kind);
  };
  for (Operation *place : missing->before)
    fence(place, TensorFence::Before);
  for (Operation *place : missing->after)
    fence(place, TensorFence::After);
  size_t fences = missing->before.size() + missing->after.size();
  numStoreWaits += missing->storeWaits.size();
  numTensorFences += fences;
  if (fences != 0)
    remark::passed(kernel.getLoc(), remark::RemarkOpts::name("tensor-fences")
                                        .category("attn.insert-fences")
                                        .function(kernel.getName()))
        << remark::add("accesses to tensor memory are ordered with signals")
        << remark::metric("store-waits", missing->storeWaits.size())
        << remark::metric("fences-before", missing->before.size())
        << remark::metric("fences-after", missing->after.size());
  return success();
}

LogicalResult AttnInsertFencesPass::insert(gpu::GPUFuncOp kernel) {
  if (failed(checkClosed(kernel)))
    return failure();
  SharedAccessCache cache;
  SmallVector<Fence> fences;
  BarrierMaker barriers(kernel);
  if (failed(barriers.numberVotes()))
    return failure();
  while (true) {
    auto hazard = findSharedHazard(kernel, cache);
    if (failed(hazard))
      return failure();
    if (!*hazard)
      break;
    if ((*hazard)->kind == SharedHazard::Kind::NotAwaited)
      return emitNotAwaited(**hazard);
    Operation *barrier = barriers.make(**hazard);
    if (!barrier)
      return failure();
    fences.push_back({barrier, **hazard});
  }
  if (failed(removeSuperfluous(kernel, cache, fences)))
    return failure();
  auto proxies = findMissingProxyFences(kernel, cache);
  if (failed(proxies))
    return failure();
  for (Operation *place : *proxies) {
    OpBuilder builder(place);
    FenceProxyOp::create(builder, place->getLoc());
  }
  numProxyFences += proxies->size();
  if (failed(orderTensorMemory(kernel)))
    return failure();
  int64_t trialSteps = leaveOutProved ? removeProved(kernel, fences) : 0;
  numBarriers += fences.size();
  report(kernel, fences, proxies->size(), trialSteps);
  return success();
}
