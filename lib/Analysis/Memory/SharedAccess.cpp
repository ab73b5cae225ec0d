//===- SharedAccess.cpp - Which bytes of shared memory an op touches ------===//

#include "attn/Analysis/Memory/SharedAccess.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::attn;

bool attn::isBufferView(Operation *op) {
  return isa<SlotOp, TransposeOp, ReinterpretOp>(op);
}

AllocOp attn::findAlloc(Value buffer) {
  while (Operation *def = buffer.getDefiningOp()) {
    if (auto alloc = dyn_cast<AllocOp>(def))
      return alloc;
    if (!isBufferView(def))
      return {};
    buffer = cast<ViewLikeOpInterface>(def).getViewSource();
  }
  return {};
}

StringRef attn::getBufferName(AllocOp alloc) {
  return alloc.getName().value_or("buffer");
}

/// Bytes of all slots.
static llvm::Expected<int64_t> getBytes(BufferType type) {
  auto slotBytes = type.getSlotBytes();
  if (!slotBytes)
    return slotBytes.takeError();
  return *slotBytes * type.getNumSlots();
}

llvm::Expected<int64_t> attn::getAllocBytes(AllocOp alloc) {
  return getBytes(alloc.getType());
}

/// Narrows `access` from the whole alloc to what `buffer` shows of it.
static LogicalResult findRange(Value buffer, SharedAccess &access) {
  SmallVector<Operation *> views;
  for (Operation *def = buffer.getDefiningOp(); !isa<AllocOp>(def);
       def = cast<ViewLikeOpInterface>(def).getViewSource().getDefiningOp())
    views.push_back(def);
  auto report = [&](llvm::Error error) {
    return access.op->emitOpError("cannot tell which bytes it touches: ")
           << llvm::toString(std::move(error));
  };
  auto whole = getAllocBytes(access.alloc);
  if (!whole)
    return report(whole.takeError());
  access.begin = 0;
  access.end = *whole;
  // From the alloc outwards: a reinterpretation keeps the first byte, a slot of
  // known index narrows, a transposition changes nothing.
  for (Operation *view : llvm::reverse(views)) {
    if (auto slot = dyn_cast<SlotOp>(view)) {
      auto slotBytes = slot.getSource().getType().getSlotBytes();
      if (!slotBytes)
        return report(slotBytes.takeError());
      access.slot = slot;
      APInt index;
      if (matchPattern(slot.getIndex(), m_ConstantInt(&index))) {
        access.slotIndex = index.getSExtValue();
        access.begin += *access.slotIndex * *slotBytes;
        access.end = access.begin + *slotBytes;
      }
    } else if (auto reinterpret = dyn_cast<ReinterpretOp>(view);
               reinterpret && (!access.slot || access.slotIndex)) {
      auto bytes = getBytes(reinterpret.getType());
      if (!bytes)
        return report(bytes.takeError());
      access.end = std::min(access.end, access.begin + *bytes);
    }
  }
  return success();
}

void attn::narrowToSlot(SharedAccess &access, int64_t index) {
  SlotOp slot = access.slot;
  if (!slot.getSource().getDefiningOp<AllocOp>() || access.slotIndex)
    return;
  auto bytes = slot.getSource().getType().getSlotBytes();
  if (!bytes)
    return llvm::consumeError(bytes.takeError());
  access.slotIndex = index;
  access.begin = index * *bytes;
  access.end = access.begin + *bytes;
}

bool attn::bytesOverlap(const SharedAccess &a, const SharedAccess &b) {
  AllocOp allocA = a.alloc, allocB = b.alloc;
  int64_t baseA = 0, baseB = 0;
  if (allocA.getOffset() && allocB.getOffset()) {
    baseA = *allocA.getOffset();
    baseB = *allocB.getOffset();
  } else if (allocA != allocB) {
    return false;
  }
  return baseA + a.begin < baseB + b.end && baseB + b.begin < baseA + a.end;
}

/// Whose rows an access touches. Slots and buffers of swizzled rows are whole
/// numbers of `rows * span` bytes, each with the first warpgroup's rows first.
static void findOwnRows(SharedAccess &access) {
  auto buffer =
      cast<BufferType>(access.op->getOperand(access.operand).getType());
  auto layout = dyn_cast<SwizzledLayoutAttr>(buffer.getLayout());
  if (!layout || layout.getSpan() == 0 || buffer.getRank() != 2)
    return;
  bool isOwn = false;
  if (auto async = dyn_cast<AsyncOpInterface>(access.op)) {
    isOwn = async.touchesOwnRows(access.op->getOpOperand(access.operand));
  } else if (auto store = dyn_cast<LocalStoreOp>(access.op)) {
    auto tile = cast<RankedTensorType>(store.getValue().getType());
    auto mma = dyn_cast_or_null<MmaLayoutAttr>(tile.getEncoding());
    isOwn = mma && mma.getWarps()[0] % 4 == 0 && mma.getWarps()[1] == 1 &&
            mma.getCopies() == 1;
  }
  if (!isOwn)
    return;
  access.ownRows = buffer.getShape()[0];
  access.ownSpan = layout.getSpan();
}

bool attn::areSharedOutAlike(const SharedAccess &a, const SharedAccess &b) {
  auto isWholeSlot = [](const SharedAccess &access) {
    auto slot = access.op->getOperand(access.operand).getDefiningOp<SlotOp>();
    return slot && slot.getSource().getDefiningOp<AllocOp>();
  };
  if (a.operand != b.operand || a.alloc != b.alloc)
    return false;
  if (isa<LocalTransposeOp>(a.op) && isa<LocalTransposeOp>(b.op))
    return isWholeSlot(a) && isWholeSlot(b);
  auto isWhole = [&](const SharedAccess &access) {
    return isWholeSlot(access) ||
           access.op->getOperand(access.operand).getDefiningOp<AllocOp>();
  };
  // Types of the value and of the buffer say which lane stores an element.
  return isa<LocalStoreOp>(a.op) && isa<LocalStoreOp>(b.op) &&
         a.op->getOperandTypes() == b.op->getOperandTypes() && isWhole(a) &&
         isWhole(b);
}

bool attn::haveSameOwnRows(const SharedAccess &a, const SharedAccess &b) {
  return a.ownRows != 0 && a.ownRows == b.ownRows && a.ownSpan == b.ownSpan &&
         a.alloc == b.alloc;
}

/// True for a buffer that is not what a copy moves, such as one with numbers of
/// rows: a thread that starts the copy reads it itself.
static bool isOwnOperand(Operation *op, Value buffer) {
  auto copy = dyn_cast<BulkCopyOpInterface>(op);
  return copy && isa<BufferType>(buffer.getType()) &&
         copy.getCopiedBuffer() != buffer;
}

bool attn::hasOwnAccess(Operation *op) {
  return llvm::any_of(op->getOperands(),
                      [&](Value operand) { return isOwnOperand(op, operand); });
}

FailureOr<SmallVector<SharedAccess, 2>> attn::getSharedAccesses(Operation *op) {
  SmallVector<SharedAccess, 2> accesses;
  if (isBufferView(op) || isa<AllocOp>(op))
    return accesses;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<BufferType>(operand.get().getType());
    if (!type || type.getSpace() != MemorySpace::Shared)
      continue;
    SharedAccess access;
    access.op = op;
    access.operand = operand.getOperandNumber();
    access.alloc = findAlloc(operand.get());
    if (auto async = dyn_cast<AsyncOpInterface>(op);
        async && !isOwnOperand(op, operand.get()))
      access.engine = &async.getAsyncEngine();
    if (!access.alloc)
      return op->emitOpError("expected a buffer that comes from an attn.alloc "
                             "through views");
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    if (!effects)
      return op->emitOpError("does not say what it does with its buffer");
    if (failed(findRange(operand.get(), access)))
      return failure();
    SmallVector<MemoryEffects::EffectInstance> instances;
    effects.getEffects(instances);
    bool reads = false, writes = false;
    for (const MemoryEffects::EffectInstance &instance : instances) {
      if (instance.getEffectValue<OpOperand *>() != &operand)
        continue;
      reads |= isa<MemoryEffects::Read>(instance.getEffect());
      writes |= isa<MemoryEffects::Write>(instance.getEffect());
    }
    access.isWrite = writes;
    findOwnRows(access);
    if (reads || writes)
      accesses.push_back(access);
  }
  return accesses;
}
