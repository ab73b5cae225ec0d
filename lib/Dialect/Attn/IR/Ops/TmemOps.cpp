//===- TmemOps.cpp - Tensor memory ----------------------------------------===//

#include "../Completion.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::attn;

/// Checks that a buffer is one slot in tensor memory.
static LogicalResult verifyTmem(Operation *op, BufferType buffer) {
  if (!buffer.isTmem() || isAuto(buffer.getLayout()))
    return op->emitOpError("expected a buffer in tensor memory with its "
                           "layout, got ")
           << buffer;
  return success();
}

static LogicalResult verifyTmemSlot(Operation *op, BufferType buffer) {
  if (buffer.getRank() != 2)
    return op->emitOpError("expected a buffer of rank 2, got rank ")
           << buffer.getRank();
  return verifyTmem(op, buffer);
}

//===----------------------------------------------------------------------===//
// Allocations and views
//===----------------------------------------------------------------------===//

TmemAllocOp attn::findTmemAlloc(Value buffer) {
  while (Operation *def = buffer.getDefiningOp()) {
    if (auto alloc = dyn_cast<TmemAllocOp>(def))
      return alloc;
    auto view = dyn_cast<ViewLikeOpInterface>(def);
    if (!view)
      return {};
    buffer = view.getViewSource();
  }
  return {};
}

void TmemAllocOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (std::optional<StringRef> name = getName())
    setName(getResult(), *name);
}

FieldAttr TmemAllocOp::findField(StringRef name) {
  if (getFields())
    for (auto field : getFields()->getAsRange<FieldAttr>())
      if (field.getName() == name)
        return field;
  return {};
}

LogicalResult TmemAllocOp::verify() {
  BufferType type = getType();
  if (failed(verifyTmem(*this, type)))
    return failure();
  int64_t columns = type.getSlotColumns();
  if (columns * type.getNumSlots() > kTmemColumns)
    return emitOpError("expected at most ")
           << kTmemColumns << " columns of 32 bits, got "
           << columns * type.getNumSlots();
  if (std::optional<int64_t> column = getColumn();
      column &&
      (*column < 0 || *column > kTmemColumns - columns * type.getNumSlots()))
    return emitOpError("expected columns between 0 and ")
           << kTmemColumns << ", got " << columns * type.getNumSlots()
           << " from " << *column << " on";
  if (failed(verifyCGA(*this, getCgaAttr(), type.getSlotShape().size())))
    return failure();
  if (!getFields())
    return success();
  llvm::StringSet<> names;
  for (auto field : getFields()->getAsRange<FieldAttr>()) {
    if (!names.insert(field.getName()).second)
      return emitOpError("expected fields of different names, got '")
             << field.getName() << "' twice";
    if (field.getEnd() > columns)
      return emitOpError("expected field '")
             << field.getName() << "' in the " << columns
             << " columns of a slot, got " << field.getColumns() << " from "
             << field.getFirst() << " on";
  }
  return success();
}

Value TmemFieldOp::getViewSource() { return getSource(); }

void TmemFieldOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getField());
}

FieldAttr TmemFieldOp::findField() {
  Operation *def = getSource().getDefiningOp();
  if (auto slot = dyn_cast_or_null<SlotOp>(def))
    def = slot.getSource().getDefiningOp();
  auto alloc = dyn_cast_or_null<TmemAllocOp>(def);
  return alloc ? alloc.findField(getField()) : FieldAttr();
}

LogicalResult TmemFieldOp::verify() {
  if (failed(verifyTmemSlot(*this, getSource().getType())) ||
      failed(verifyTmemSlot(*this, getType())))
    return failure();
  FieldAttr field = findField();
  if (!field) {
    InFlightDiagnostic diag =
        emitOpError("expected a field of an attn.tmem_alloc or of a slot of "
                    "one, got '")
        << getField() << "', which is none";
    if (TmemAllocOp alloc = findTmemAlloc(getSource()))
      diag.attachNote(alloc.getLoc()) << "the allocation is here";
    return diag;
  }
  if (getType().getSlotColumns() > field.getColumns())
    return emitOpError("expected at most the ")
           << field.getColumns() << " columns of field '" << getField()
           << "', got " << getType().getSlotColumns();
  return success();
}

Value TmemSliceOp::getViewSource() { return getSource(); }

LogicalResult TmemSliceOp::verify() {
  BufferType source = getSource().getType(), result = getType();
  if (failed(verifyTmemSlot(*this, source)) ||
      failed(verifyTmemSlot(*this, result)))
    return failure();
  if (source.getElementType() != result.getElementType() ||
      source.getLayout() != result.getLayout())
    return emitOpError("expected elements and layout of the source ")
           << source << ", got " << result;
  int64_t first = getColumn(), columns = result.getShape()[1];
  if (first < 0 || first > source.getShape()[1] ||
      columns > source.getShape()[1] - first)
    return emitOpError("expected columns between 0 and ")
           << source.getShape()[1] << ", got " << columns << " from " << first
           << " on";
  int64_t packed = 32 / source.getElementType().getIntOrFloatBitWidth();
  if (first % packed != 0)
    return emitOpError("expected a view that starts at a column of 32 bits, a "
                       "multiple of ")
           << packed << " elements, got " << first;
  if (!cast<TmemLayoutAttr>(source.getLayout()).getHalves())
    return success();
  // Few columns are as many of either half.
  int64_t whole = std::min(source.getShape()[1], kHalvedColumns);
  if (columns < whole) {
    if (first % whole + columns / 2 > whole / 2)
      return emitOpError("expected a view of a buffer in halves whose first "
                         "half ends within ")
             << whole / 2 << " columns, got " << columns / 2 << " from "
             << first % whole << " on";
  } else if (first % whole != 0) {
    return emitOpError("expected a view of a buffer in halves that starts at a "
                       "multiple of ")
           << whole << " columns, got " << first;
  }
  return success();
}

OpFoldResult TmemSliceOp::fold(FoldAdaptor) {
  return getSource().getType() == getType() ? getSource() : Value();
}

/// PTX ISA, tcgen05.alloc.
static LogicalResult verifyColumns(Operation *op, int64_t columns) {
  if (columns < 32 || columns > kTmemColumns || !llvm::isPowerOf2_64(columns))
    return op->emitOpError("expected a power of two from 32 to ")
           << kTmemColumns << " of columns, got " << columns;
  return success();
}

LogicalResult TmemReserveOp::verify() {
  BufferType slot = getSlot().getType();
  if (slot.getSpace() != MemorySpace::Shared ||
      slot.getShape() != ArrayRef<int64_t>({1}) ||
      !slot.getElementType().isInteger(32))
    return emitOpError("expected one i32 of shared memory for the address, "
                       "got ")
           << slot;
  return verifyColumns(*this, getColumns());
}

LogicalResult TmemDeallocOp::verify() {
  return verifyColumns(*this, getColumns());
}

bool TmemReserveOp::takesMemory() { return true; }

bool TmemDeallocOp::givesMemoryBack() { return true; }

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

/// Checks a transfer between a buffer and a tile of `shape` by the warps of the
/// op's partition. A layout that is not chosen yet has no shape to check.
static LogicalResult verifyTransfer(Operation *op, BufferType buffer,
                                    ArrayRef<int64_t> shape, Type elementType,
                                    Attribute layout) {
  if (failed(verifyTmemSlot(op, buffer)))
    return failure();
  if (shape != buffer.getShape() || elementType != buffer.getElementType())
    return op->emitOpError("expected a tile like the buffer ")
           << buffer << ", got " << shape << " of " << elementType;
  if (op->getParentOfType<ElectOp>())
    return op->emitOpError("expected all warps of a warpgroup, got the one "
                           "thread of an attn.elect");
  // A warp reaches the lanes from 32 times its number modulo 4 on.
  if (auto [partitions, index] = getPartition(op); partitions) {
    int64_t first = partitions.getFirstWarp(index);
    int64_t warps = partitions.getWarps()[index];
    if (first % kWarpgroupWarps != 0 || warps != kWarpgroupWarps) {
      InFlightDiagnostic diag =
          op->emitOpError("expected a partition that is a warpgroup, whose "
                          "warps reach all lanes of tensor memory, got ")
          << warps << " warps from warp " << first << " on";
      diag.attachNote(partitions.getLoc()) << "the partitions are here";
      return diag;
    }
  }
  if (isAuto(layout))
    return success();
  auto tile = cast<TileLayoutAttrInterface>(layout).toTileLayout(
      shape, elementType.getIntOrFloatBitWidth());
  auto memory = getTensorMemoryLayout(buffer);
  if (!tile || !memory) {
    llvm::consumeError(memory.takeError());
    return op->emitOpError() << llvm::toString(tile.takeError());
  }
  if (auto plan = planTmemAccess(*tile, *memory); !plan)
    return op->emitOpError() << llvm::toString(plan.takeError());
  return success();
}

/// The chip that first has tcgen05.ld.red (PTX ISA, tcgen05.ld.red).
static constexpr int kReduceSM = 103;

int TmemLoadOp::getMinimumSM() { return getReduce() ? kReduceSM : 100; }

LogicalResult TmemLoadOp::verify() {
  InFlightType type = getResult().getType();
  if (!type.getLayout())
    return emitOpError("expected a result with the layout of its registers, "
                       "got ")
           << type;
  if (failed(verifyTransfer(*this, getSource().getType(), type.getShape(),
                            type.getElementType(), type.getLayout())))
    return failure();
  if (static_cast<bool>(getReduce()) != static_cast<bool>(getRowValues()))
    return emitOpError("expected a second result with 'reduce' only");
  if (!getReduce())
    return success();
  auto layout = dyn_cast<TmemRegsLayoutAttr>(type.getLayout());
  int64_t columns = type.getShape()[1];
  if (*getReduce() == ReduceKind::Add || !type.getElementType().isF32() ||
      !layout || layout.getShape() != TmemShape::S32x32b || columns < 2 ||
      columns > 128 || !llvm::isPowerOf2_64(columns))
    return emitOpError("expected the maximum of f32 in shape_32x32b over a "
                       "power of two from 2 to 128 of columns with 'reduce', "
                       "got ")
           << stringifyReduceKind(*getReduce()) << " of " << type;
  auto rows = InFlightType::get(
      getContext(), type.getShape().take_front(), type.getElementType(),
      SliceLayoutAttr::get(getContext(), 1, type.getLayout()));
  if (getRowValues().getType() != rows)
    return emitOpError("expected row values of type ")
           << rows << ", got " << getRowValues().getType();
  return success();
}

LogicalResult TmemWaitOp::verify() {
  for (auto [source, result] : llvm::zip(getSources(), getResults())) {
    auto loaded = cast<InFlightType>(source.getType());
    auto tile = cast<RankedTensorType>(result.getType());
    if (!loaded.getLayout())
      return emitOpError("expected what an attn.tmem.load loads, got ")
             << loaded;
    if (loaded.getShape() != tile.getShape() ||
        loaded.getElementType() != tile.getElementType() ||
        (!isAuto(tile.getEncoding()) &&
         tile.getEncoding() != loaded.getLayout()))
      return emitOpError("expected a tile like ") << loaded << ", got " << tile;
  }
  return success();
}

LogicalResult TmemStoreOp::verify() {
  auto tile = cast<RankedTensorType>(getValue().getType());
  if (!isTile(tile))
    return emitOpError("expected a register tile, got ") << tile;
  return verifyTransfer(*this, getDest().getType(), tile.getShape(),
                        tile.getElementType(), tile.getEncoding());
}
