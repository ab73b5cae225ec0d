//===- TensorFences.cpp - Order of accesses to tensor memory --------------===//

#include "attn/Analysis/Memory/TensorFences.h"
#include "../Flow/ForwardWalk.h"
#include "attn/Analysis/Memory/Footprint.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// What the thread has done since it was last ordered with others.
struct TensorState {
  /// Loads that no wait covers.
  SmallVector<Operation *, 4> loads;
  /// Stores that no wait covers.
  bool storing = false;
  /// Loads or stores without a fence behind them.
  bool touched = false;
  /// Waited for others without a fence behind it.
  bool synchronized = false;

  void join(const TensorState &other) {
    for (Operation *load : other.loads)
      if (!llvm::is_contained(loads, load))
        loads.push_back(load);
    storing |= other.storing;
    touched |= other.touched;
    synchronized |= other.synchronized;
  }
  bool operator!=(const TensorState &other) const {
    return loads != other.loads || storing != other.storing ||
           touched != other.touched || synchronized != other.synchronized;
  }
};

class TensorFenceFinder : public ForwardWalk<TensorFenceFinder, TensorState> {
public:
  TensorState visitOp(Operation &op, TensorState state);

  llvm::SetVector<Operation *> storeWaits, before, after;
  /// A signal or a store before the wait for a load, and the load.
  Operation *early = nullptr, *load = nullptr;

private:
  void visitAsync(AsyncOpInterface op, TensorState &state);
  void checkStore(Operation *store, const TensorState &state);
  /// Others go on behind `op`.
  void release(Operation &op, TensorState &state);
};

} // namespace

/// True for ops behind which the thread may see what others did.
static bool isAcquire(Operation &op) {
  if (auto user = dyn_cast<ChannelUserOpInterface>(op))
    return user.getChannelUse() == ChannelUse::Acquire;
  return isa<gpu::BarrierOp, ClusterBarrierOp, NamedBarrierOp, MBarrierWaitOp>(
      op);
}

void TensorFenceFinder::release(Operation &op, TensorState &state) {
  if (!state.loads.empty() && !early) {
    early = &op;
    load = state.loads.front();
  }
  if (state.storing)
    storeWaits.insert(&op);
  if (state.touched)
    before.insert(&op);
  state.loads.clear();
  state.storing = state.touched = false;
}

namespace {
/// Columns of an allocation, of all slots where it is not known which one.
struct ColumnRange {
  TmemAllocOp alloc;
  int64_t begin = 0, end = 0;
};
} // namespace

/// The columns that a view shows.
static ColumnRange getColumns(Value buffer) {
  TensorColumns shown = findTensorColumns(buffer);
  if (!shown.alloc || !shown.slot)
    return {shown.alloc, shown.first, shown.first + shown.count};
  BufferType ring = shown.slot.getSource().getType();
  std::optional<int64_t> index = getConstantIntValue(shown.slot.getIndex());
  if (!index)
    return {shown.alloc, 0, ring.getSlotColumns() * ring.getNumSlots()};
  int64_t first = shown.first + *index * ring.getSlotColumns();
  return {shown.alloc, first, first + shown.count};
}

/// The buffer in tensor memory that an op touches.
static Value getTmemOperand(Operation *op) {
  for (Value operand : op->getOperands())
    if (auto type = dyn_cast<BufferType>(operand.getType());
        type && type.isTmem())
      return operand;
  return {};
}

void TensorFenceFinder::checkStore(Operation *store, const TensorState &state) {
  ColumnRange stored = getColumns(getTmemOperand(store));
  for (Operation *other : state.loads) {
    ColumnRange loaded = getColumns(getTmemOperand(other));
    if (early || !stored.alloc || stored.alloc != loaded.alloc ||
        loaded.end <= stored.begin || stored.end <= loaded.begin)
      continue;
    early = store;
    load = other;
  }
}

void TensorFenceFinder::visitAsync(AsyncOpInterface op, TensorState &state) {
  const AsyncEngine &engine = op.getAsyncEngine();
  bool isWait = op.getAwaitedGroups().has_value();
  if (isWait) {
    if (&engine == &kTensorLoads)
      state.loads.clear();
    else
      state.storing = false;
    return;
  }
  if (state.synchronized)
    after.insert(op);
  state.synchronized = false;
  if (engine.completion == AsyncEngine::Completion::Barrier)
    return;
  state.touched = true;
  if (&engine == &kTensorLoads) {
    if (!llvm::is_contained(state.loads, op))
      state.loads.push_back(op);
    return;
  }
  checkStore(op, state);
  state.storing = true;
}

TensorState TensorFenceFinder::visitOp(Operation &op, TensorState state) {
  if (auto fence = dyn_cast<Tcgen05FenceOp>(op)) {
    if (fence.getKind() == TensorFence::Before)
      state.touched = false;
    else
      state.synchronized = false;
    return state;
  }
  if (auto async = dyn_cast<AsyncOpInterface>(op);
      async && async.getAsyncEngine().isTensorCore) {
    visitAsync(async, state);
    return state;
  }
  if (auto elect = dyn_cast<ElectOp>(op)) {
    if (releasesInside(elect))
      release(op, state);
    state.join(visit(elect.getBody().front(), state));
    return state;
  }
  if (op.getNumRegions() != 0)
    return visitNested(op, state);
  // The fences of what gives the memory back are its own.
  if (isa<TmemDeallocOp>(op)) {
    state.touched = false;
    release(op, state);
  }
  if (isRelease(op))
    release(op, state);
  if (isAcquire(op))
    state.synchronized = true;
  return state;
}

FailureOr<TensorFences> attn::findMissingTensorFences(gpu::GPUFuncOp kernel) {
  TensorFenceFinder finder;
  finder.visit(kernel.getBody().front(), TensorState());
  if (finder.early) {
    InFlightDiagnostic diag =
        finder.early->emitError()
        << (isRelease(*finder.early) || finder.early->getNumRegions() != 0 ||
                    isa<TmemDeallocOp>(finder.early)
                ? "a signal"
                : "a store to the same columns")
        << " before the wait for a load from tensor memory, "
        << kTensorLoads.unfinished;
    diag.attachNote(finder.load->getLoc()) << kTensorLoads.remedy;
    return failure();
  }
  TensorFences fences;
  fences.storeWaits = finder.storeWaits.takeVector();
  fences.before = finder.before.takeVector();
  fences.after = finder.after.takeVector();
  return fences;
}
