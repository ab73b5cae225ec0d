//===- TensorFootprint.cpp - Cells of tensor memory as bytes --------------===//
//
// A cell is four bytes: those of 16 lanes, which are touched together, count as
// one, since no layout takes part of them.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Memory/Footprint.h"
#include "attn/Layout/TensorMemoryLayout.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::attn;

/// The bytes of all columns of lanes that are touched together.
static constexpr int64_t kLaneBytes = kTmemColumns * kTmemCellBytes;

Value Footprint::getMemory() const {
  return isTensor() ? TmemAllocOp(tensorAlloc).getResult()
                    : AllocOp(access.alloc).getResult();
}

int64_t Footprint::getStart() const {
  if (isTensor())
    return kTensorStart +
           kTmemCellBytes * int64_t(*TmemAllocOp(tensorAlloc).getColumn());
  return *AllocOp(access.alloc).getOffset();
}

StringRef Footprint::getName() const {
  if (isTensor())
    return TmemAllocOp(tensorAlloc).getName().value_or("buffer");
  return getBufferName(access.alloc);
}

TensorColumns attn::findTensorColumns(Value buffer) {
  auto type = cast<BufferType>(buffer.getType());
  TensorColumns shown;
  shown.count = type.getSlotColumns() * type.getNumSlots();
  while (Operation *def = buffer.getDefiningOp()) {
    if (auto alloc = dyn_cast<TmemAllocOp>(def)) {
      shown.alloc = alloc;
      return shown;
    }
    if (auto slice = dyn_cast<TmemSliceOp>(def)) {
      shown.first +=
          llvm::cantFail(getTensorMemoryLayout(slice.getSource().getType()))
              .cell(0, slice.getColumn())
              .column;
    } else if (auto field = dyn_cast<TmemFieldOp>(def)) {
      shown.first += field.findField().getFirst();
    } else if (auto slot = dyn_cast<SlotOp>(def)) {
      shown.slot = slot;
    } else {
      break;
    }
    buffer = cast<ViewLikeOpInterface>(def).getViewSource();
  }
  return {};
}

/// The bytes of some columns in those of the lanes [first, first + count) that
/// the layout has rows in.
static SmallVector<ByteRange, 1> getCells(const TensorMemoryLayout &layout,
                                          int64_t column, int64_t columns,
                                          int64_t first, int64_t count) {
  SmallVector<int64_t> groups;
  for (int64_t row = 0; row < layout.shape()[0]; row += kTmemCellLanes)
    for (int64_t col : {int64_t(0), layout.neighbours() % layout.shape()[1]})
      if (int64_t lane = layout.cell(row, col).lane;
          lane >= first && lane < first + count)
        groups.push_back(lane / kTmemCellLanes);
  llvm::sort(groups);
  groups.erase(llvm::unique(groups), groups.end());
  SmallVector<ByteRange, 1> ranges;
  for (int64_t group : groups) {
    int64_t begin = group * kLaneBytes;
    ranges.push_back({begin + column * kTmemCellBytes,
                      begin + (column + columns) * kTmemCellBytes});
  }
  return ranges;
}

static Footprint makeTensorFootprint(OpOperand &operand, TensorColumns shown) {
  Operation *op = operand.getOwner();
  auto type = cast<BufferType>(operand.get().getType());
  Footprint footprint;
  footprint.access.op = op;
  footprint.access.operand = operand.getOperandNumber();
  footprint.tensorAlloc = shown.alloc;
  if (shown.slot) {
    BufferType ring = shown.slot.getSource().getType();
    footprint.slotIndex = shown.slot.getIndex();
    footprint.slotBytes = ring.getSlotColumns() * kTmemCellBytes;
    footprint.numSlots = ring.getNumSlots();
  }
  if (auto async = dyn_cast<AsyncOpInterface>(op))
    footprint.access.engine = &async.getAsyncEngine();
  TensorMemoryLayout layout = llvm::cantFail(getTensorMemoryLayout(type));
  // What a thread waits for by itself, a warpgroup executes: each warp reaches
  // lanes of its own.
  const AsyncEngine *engine = footprint.getEngine();
  int64_t parts = 1;
  if (engine && engine->completion == AsyncEngine::Completion::Groups) {
    footprint.by = RowParts::Lanes;
    parts = kTmemLanes / kTmemWarpLanes;
  }
  for (int64_t part = 0; part < parts; ++part)
    footprint.parts.push_back(getCells(layout, shown.first, shown.count,
                                       part * (kTmemLanes / parts),
                                       kTmemLanes / parts));
  return footprint;
}

FailureOr<SmallVector<Footprint, 2>> attn::getTensorFootprints(Operation *op) {
  SmallVector<Footprint, 2> footprints;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects || isMemoryEffectFree(op) || isa<TmemAllocOp>(op))
    return footprints;
  SmallVector<MemoryEffects::EffectInstance> instances;
  effects.getEffects(instances);
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<BufferType>(operand.get().getType());
    if (!type || !type.isTmem())
      continue;
    TensorColumns shown = findTensorColumns(operand.get());
    if (!shown.alloc)
      return op->emitOpError("expected a buffer that comes from an "
                             "attn.tmem_alloc through views");
    // A product may contract some of its columns alone.
    auto product = dyn_cast<ProductOpInterface>(op);
    if (product && product.getA() == operand.get()) {
      int64_t bits = type.getElementType().getIntOrFloatBitWidth();
      if (auto contracted = product.getContracted()) {
        shown.first += contracted->first * bits / (8 * kTmemCellBytes);
        shown.count = contracted->second * bits / (8 * kTmemCellBytes);
      }
    }
    bool reads = false, writes = false;
    for (const MemoryEffects::EffectInstance &instance : instances) {
      if (instance.getEffectValue<OpOperand *>() != &operand)
        continue;
      reads |= isa<MemoryEffects::Read>(instance.getEffect());
      writes |= isa<MemoryEffects::Write>(instance.getEffect());
    }
    if (!reads && !writes)
      continue;
    Footprint footprint = makeTensorFootprint(operand, shown);
    footprint.access.isWrite = writes;
    footprints.push_back(std::move(footprint));
  }
  return footprints;
}
