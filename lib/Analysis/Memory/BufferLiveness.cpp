//===- BufferLiveness.cpp - When buffers in shared memory are live --------===//
//
// Ops are numbered in the order of the text, with one number at the start and
// one at the end of each. An access inside a loop that does not hold the alloc
// counts for the whole loop, because the data may pass to the next iteration.
// An access in a partition counts for the whole attn.warp_specialize, because
// the partitions run at the same time.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Memory/BufferLiveness.h"
#include "attn/Analysis/Flow/HandleFlow.h"
#include "attn/Analysis/Flow/RegionPaths.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// An access and the ops that it counts for.
struct Event {
  SharedAccess access;
  LiveRange range;
  /// Not inside a loop or branch as seen from the alloc.
  bool isUnconditional = false;
};

class LivenessBuilder {
public:
  explicit LivenessBuilder(gpu::GPUFuncOp kernel) : kernel(kernel) {
    number(kernel);
  }
  FailureOr<SmallVector<Event>> collect();
  SmallVector<LiveRange, 2> makeRanges(ArrayRef<Event> events) const;

private:
  void number(Operation *op);
  Event makeEvent(const SharedAccess &access) const;
  void extendToWait(Event &event) const;

  gpu::GPUFuncOp kernel;
  int64_t counter = 0;
  DenseMap<Operation *, std::pair<int64_t, int64_t>> positions;
};

} // namespace

void LivenessBuilder::number(Operation *op) {
  int64_t begin = counter++;
  for (Region &region : op->getRegions())
    for (Operation &nested : region.getOps())
      number(&nested);
  positions[op] = {begin, counter++};
}

Event LivenessBuilder::makeEvent(const SharedAccess &access) const {
  Event event;
  event.access = access;
  Operation *touched = access.op;
  WarpSpecializeOp partitions = getPartition(access.op).first;
  Block *home = access.alloc->getBlock();
  event.isUnconditional = touched->getBlock() == home;
  // Only a branch runs at most once.
  for (Operation *op = access.op; op->getBlock() != home;) {
    op = op->getParentOp();
    if (!isBranch(op))
      touched = op;
  }
  if (partitions)
    touched = partitions;
  std::tie(event.range.begin, event.range.end) = positions.at(touched);
  event.range.first = event.range.last = touched;
  if (access.isInGroup() && !partitions)
    extendToWait(event);
  return event;
}

void LivenessBuilder::extendToWait(Event &event) const {
  for (Operation *op = event.range.last; op != kernel; op = op->getParentOp()) {
    for (Operation *next = op->getNextNode(); next;
         next = next->getNextNode()) {
      auto wait = dyn_cast<AsyncOpInterface>(next);
      if (!wait || &wait.getAsyncEngine() != event.access.engine ||
          wait.getAwaitedGroups() != 0)
        continue;
      event.range.end = positions.at(next).second;
      event.range.last = next;
      return;
    }
  }
  event.range.end = counter;
}

FailureOr<SmallVector<Event>> LivenessBuilder::collect() {
  SmallVector<Event> events;
  WalkResult walked = kernel.walk([&](Operation *op) {
    auto accesses = getSharedAccesses(op);
    if (failed(accesses))
      return WalkResult::interrupt();
    for (const SharedAccess &access : *accesses)
      events.push_back(makeEvent(access));
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  llvm::sort(events, [](const Event &a, const Event &b) {
    return std::tie(a.range.begin, a.range.end) <
           std::tie(b.range.begin, b.range.end);
  });
  return events;
}

/// True if `view` is `base` or a view of it.
static bool isViewOf(Value view, Value base) {
  while (view != base) {
    Operation *def = view.getDefiningOp();
    if (!def || !isBufferView(def))
      return false;
    view = cast<ViewLikeOpInterface>(def).getViewSource();
  }
  return true;
}

static Value getView(const Event &event) {
  return event.access.op->getOperand(event.access.operand);
}

/// True if nothing that was written before `events[index]` can be seen after
/// it: it writes all that the later accesses look at.
static bool writesAnew(ArrayRef<Event> events, size_t index) {
  const Event &event = events[index];
  if (!event.access.isWrite || !event.isUnconditional)
    return false;
  return llvm::all_of(events.drop_front(index + 1), [&](const Event &later) {
    return isViewOf(getView(later), getView(event));
  });
}

SmallVector<LiveRange, 2>
LivenessBuilder::makeRanges(ArrayRef<Event> events) const {
  SmallVector<LiveRange, 2> ranges;
  for (size_t index = 0; index < events.size(); ++index) {
    const LiveRange &range = events[index].range;
    bool startsAnew = ranges.empty() || (writesAnew(events, index) &&
                                         range.begin > ranges.back().end);
    if (startsAnew) {
      ranges.push_back(range);
    } else if (range.end > ranges.back().end) {
      ranges.back().end = range.end;
      ranges.back().last = range.last;
    }
  }
  return ranges;
}

FailureOr<BufferLiveness> BufferLiveness::compute(gpu::GPUFuncOp kernel) {
  LivenessBuilder builder(kernel);
  auto events = builder.collect();
  if (failed(events))
    return failure();
  BufferLiveness liveness;
  kernel.walk<WalkOrder::PreOrder>([&](AllocOp alloc) {
    SmallVector<Event> own;
    for (const Event &event : *events)
      if (event.access.alloc == alloc)
        own.push_back(event);
    liveness.ranges[alloc] = builder.makeRanges(own);
  });
  return liveness;
}

SmallVector<AllocOp> BufferLiveness::getAllocs() const {
  SmallVector<AllocOp> allocs;
  for (const auto &[op, list] : ranges)
    allocs.push_back(cast<AllocOp>(op));
  return allocs;
}

ArrayRef<LiveRange> BufferLiveness::getRanges(AllocOp alloc) const {
  auto found = ranges.find(alloc);
  if (found == ranges.end())
    return {};
  return found->second;
}

bool BufferLiveness::overlap(AllocOp a, AllocOp b) const {
  return llvm::any_of(getRanges(a), [&](const LiveRange &rangeA) {
    return llvm::any_of(getRanges(b), [&](const LiveRange &rangeB) {
      return rangeA.overlaps(rangeB);
    });
  });
}

bool BufferLiveness::isLive(AllocOp alloc, int64_t position) const {
  return llvm::any_of(getRanges(alloc), [&](const LiveRange &range) {
    return range.begin <= position && position <= range.end;
  });
}
