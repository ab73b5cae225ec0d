//===- BufferOps.cpp - Buffers in shared memory ---------------------------===//

#include "../Completion.h"
#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// AllocOp
//===----------------------------------------------------------------------===//

void AllocOp::getAsmResultNames(
    function_ref<void(Value, StringRef)> setNameFn) {
  if (std::optional<StringRef> name = getName())
    setNameFn(getResult(), *name);
}

void SlotOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  std::optional<StringRef> name;
  if (auto ring = getSource().getDefiningOp<AllocOp>())
    name = ring.getName();
  else if (auto ring = getSource().getDefiningOp<TmemAllocOp>())
    name = ring.getName();
  setName(getResult(), name ? (*name + "_slot").str() : "slot");
}

LogicalResult AllocOp::verify() {
  if (getType().getSpace() != MemorySpace::Shared)
    return emitOpError("expected a buffer in shared memory, got ")
           << stringifyMemorySpace(getType().getSpace());
  if (getOffset() && (*getOffset() < 0 || *getOffset() > kMostSharedBytes ||
                      *getOffset() % 16 != 0))
    return emitOpError("expected an offset that is a multiple of 16 up to ")
           << kMostSharedBytes << ", got " << *getOffset();
  return verifyCGA(*this, getCgaAttr(), getType().getSlotShape().size());
}

//===----------------------------------------------------------------------===//
// SlotOp
//===----------------------------------------------------------------------===//

/// Views that are of bytes in shared memory alone.
static LogicalResult verifyShared(Operation *op, BufferType buffer) {
  if (buffer.getSpace() != MemorySpace::Shared)
    return op->emitOpError("expected a buffer in shared memory, got ")
           << buffer;
  return success();
}

/// The checks that all views share: element type and memory space stay.
static LogicalResult verifyView(Operation *op, BufferType source,
                                BufferType result) {
  if (source.getElementType() != result.getElementType())
    return op->emitOpError("expected the element type ")
           << source.getElementType() << " of the source, got "
           << result.getElementType();
  if (source.getSpace() != result.getSpace())
    return op->emitOpError("expected the memory space ")
           << stringifyMemorySpace(source.getSpace()) << " of the source, got "
           << stringifyMemorySpace(result.getSpace());
  return success();
}

LogicalResult SlotOp::verify() {
  BufferType source = getSource().getType(), result = getType();
  if (source.getRank() != 3)
    return emitOpError("expected a ring (a buffer of rank 3), got ") << source;
  BufferType expected = BufferType::get(getContext(), source.getSlotShape(),
                                        source.getElementType(),
                                        source.getLayout(), source.getSpace());
  if (result != expected)
    return emitOpError("expected the slot type ")
           << expected << ", got " << result;
  return success();
}

Value SlotOp::getViewSource() { return getSource(); }

//===----------------------------------------------------------------------===//
// TransposeOp
//===----------------------------------------------------------------------===//

LogicalResult TransposeOp::verify() {
  BufferType source = getSource().getType(), result = getType();
  if (failed(verifyView(*this, source, result)))
    return failure();
  if (source.getRank() != 2 || result.getRank() != 2)
    return emitOpError("expected buffers of rank 2, got ")
           << source << " and " << result;
  if (failed(verifyShared(*this, source)))
    return failure();
  if (source.getShape()[0] != result.getShape()[1] ||
      source.getShape()[1] != result.getShape()[0])
    return emitOpError("expected the extents of the source exchanged, got ")
           << result;
  if (isAuto(source.getLayout()) || isAuto(result.getLayout()))
    return success();
  auto sourceTransposed = dyn_cast<TransposedLayoutAttr>(source.getLayout());
  Attribute expected =
      sourceTransposed
          ? sourceTransposed.getInner()
          : TransposedLayoutAttr::get(getContext(), source.getLayout());
  if (result.getLayout() != expected)
    return emitOpError("expected the layout ")
           << expected << ", got " << result.getLayout();
  return success();
}

Value TransposeOp::getViewSource() { return getSource(); }

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  auto inner = getSource().getDefiningOp<TransposeOp>();
  return inner && inner.getSource().getType() == getType() ? inner.getSource()
                                                           : Value();
}

//===----------------------------------------------------------------------===//
// ReinterpretOp
//===----------------------------------------------------------------------===//

LogicalResult ReinterpretOp::verify() {
  BufferType source = getSource().getType(), result = getType();
  if (source.getSpace() != result.getSpace())
    return emitOpError("expected the memory space ")
           << stringifyMemorySpace(source.getSpace()) << " of the source, got "
           << stringifyMemorySpace(result.getSpace());
  if (failed(verifyShared(*this, source)) ||
      failed(verifyCGA(*this, getCgaAttr(), result.getSlotShape().size())))
    return failure();
  if (isAuto(source.getLayout()) || isAuto(result.getLayout()))
    return success();
  auto bytes = [](BufferType type) {
    return llvm::cantFail(type.getSlotBytes()) * type.getNumSlots();
  };
  if (bytes(result) > bytes(source))
    return emitOpError("expected at most the source's ")
           << bytes(source) << " bytes, got " << bytes(result);
  int64_t sourceAlignment = llvm::cantFail(getSharedLayout(source)).alignment();
  int64_t resultAlignment = llvm::cantFail(getSharedLayout(result)).alignment();
  if (resultAlignment > sourceAlignment)
    return emitOpError("expected a layout that needs at most the source's "
                       "alignment of ")
           << sourceAlignment << " bytes, got " << resultAlignment;
  return success();
}

Value ReinterpretOp::getViewSource() { return getSource(); }

OpFoldResult ReinterpretOp::fold(FoldAdaptor) {
  BufferType source = getSource().getType();
  if (source == getType() && !getCga())
    return getSource();
  auto inner = getSource().getDefiningOp<ReinterpretOp>();
  // Only the inner view says which block of a value its slot holds.
  if (!inner || inner.getCga())
    return {};
  // Bytes and alignment shrink from view to view, but nothing was compared with
  // a layout that is not chosen yet.
  if (isAuto(source.getLayout()) &&
      !isAuto(inner.getSource().getType().getLayout()) &&
      !isAuto(getType().getLayout()))
    return {};
  getSourceMutable().assign(inner.getSource());
  return getResult();
}

//===----------------------------------------------------------------------===//
// LocalLoadOp, LocalStoreOp
//===----------------------------------------------------------------------===//

/// A tile and a buffer that exchange all their elements.
static LogicalResult verifyTransfer(Operation *op, RankedTensorType tile,
                                    BufferType buffer) {
  if (!isTile(tile))
    return op->emitOpError("expected a register tile (a static tensor with a "
                           "layout), got ")
           << tile;
  if (tile.getShape() != buffer.getShape())
    return op->emitOpError("expected a buffer of the tile's shape, got ")
           << buffer << " for " << tile;
  if (tile.getElementType() != buffer.getElementType())
    return op->emitOpError("expected the element type ")
           << tile.getElementType() << " of the tile, got "
           << buffer.getElementType();
  return verifyShared(op, buffer);
}

LogicalResult LocalLoadOp::verify() {
  if (std::optional<uint64_t> column = getColumn()) {
    BufferType buffer = getSource().getType();
    auto tile = cast<RankedTensorType>(getType());
    if (buffer.getRank() != 2 || !isa<RowLayoutAttr>(buffer.getLayout()))
      return emitOpError("expected a buffer of rank 2 in #attn.rows to read a "
                         "column of, got ")
             << buffer;
    if (*column >= uint64_t(buffer.getShape()[1]))
      return emitOpError("expected a column below ")
             << buffer.getShape()[1] << ", got " << *column;
    return verifyTransfer(
        *this, tile,
        BufferType::get(getContext(), buffer.getShape().take_front(),
                        buffer.getElementType(), buffer.getLayout(),
                        buffer.getSpace()));
  }
  return verifyTransfer(*this, cast<RankedTensorType>(getType()),
                        getSource().getType());
}

LogicalResult LocalStoreOp::verify() {
  return verifyTransfer(*this, cast<RankedTensorType>(getValue().getType()),
                        getDest().getType());
}

//===----------------------------------------------------------------------===//
// LocalSendOp
//===----------------------------------------------------------------------===//

LogicalResult LocalSendOp::verify() {
  auto tile = cast<RankedTensorType>(getValue().getType());
  if (failed(verifyCompletion(*this, getToken(), getBarriers(), getWhich())) ||
      failed(verifyTransfer(*this, tile, getDest().getType())))
    return failure();
  if ((*this)->getParentOfType<ElectOp>())
    return emitOpError("expected all warps of a partition to execute it, got "
                       "an attn.elect around it");
  unsigned bits = tile.getElementTypeBitWidth();
  if (bits != 32 && bits != 16)
    return emitOpError("expected elements of 32 or 16 bits, got ")
           << tile.getElementType();
  return success();
}

ChannelUse LocalSendOp::getChannelUse() {
  return getToken() ? ChannelUse::Fill : ChannelUse::None;
}

OpOperand *LocalSendOp::getUsedHandle() {
  return getToken() ? &*getTokenMutable().begin() : nullptr;
}

int64_t LocalSendOp::getFilledBytes() {
  auto tile = cast<RankedTensorType>(getValue().getType());
  return tile.getNumElements() * tile.getElementTypeBitWidth() / 8;
}

void LocalSendOp::setFillBarrier(Value barriers, Value index, IntegerAttr) {
  getBarriersMutable().assign(barriers);
  getWhichMutable().assign(index);
  getTokenMutable().clear();
}

void LocalSendOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &getDestMutable());
  effects.emplace_back(MemoryEffects::Write::get(), BarrierState::get());
}

//===----------------------------------------------------------------------===//
// ScalarLoadOp, ScalarStoreOp, ScalarSendOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyScalar(Operation *op, BufferType buffer) {
  if (buffer.getRank() == 1 && buffer.getElementType().isInteger(32))
    return success();
  return op->emitOpError("expected a buffer of rank 1 of i32, got ") << buffer;
}

LogicalResult ScalarLoadOp::verify() {
  return verifyScalar(*this, getSource().getType());
}

/// For an access by one thread.
static LogicalResult verifyElected(Operation *op, BufferType buffer) {
  if (!op->getParentOfType<ElectOp>())
    return op->emitOpError("expected to stand in an attn.elect");
  return verifyScalar(op, buffer);
}

LogicalResult ScalarStoreOp::verify() {
  return verifyElected(*this, getDest().getType());
}

LogicalResult ScalarSendOp::verify() {
  if (failed(verifyCompletion(*this, getToken(), getBarriers(), getWhich())))
    return failure();
  if (std::optional<int64_t> ctas = getCtas();
      ctas && (*ctas < 2 || *ctas > 16))
    return emitOpError("expected a cluster of 2 to 16 CTAs, got ") << *ctas;
  return verifyElected(*this, getDest().getType());
}

ChannelUse ScalarSendOp::getChannelUse() {
  return getToken() ? ChannelUse::Fill : ChannelUse::None;
}

OpOperand *ScalarSendOp::getUsedHandle() {
  return getToken() ? &*getTokenMutable().begin() : nullptr;
}

int64_t ScalarSendOp::getFilledBytes() { return 4; }

void ScalarSendOp::setFillBarrier(Value barriers, Value index,
                                  IntegerAttr ctas) {
  getBarriersMutable().assign(barriers);
  getWhichMutable().assign(index);
  getTokenMutable().clear();
  setCtasAttr(ctas);
}

void ScalarSendOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &getDestMutable());
  effects.emplace_back(MemoryEffects::Write::get(), BarrierState::get());
}

//===----------------------------------------------------------------------===//
// ClusterRequestOp, ClusterResponseOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyResponse(Operation *op, BufferType buffer) {
  if (buffer.getRank() == 1 && buffer.getElementType().isInteger(128))
    return success();
  return op->emitOpError("expected a buffer of rank 1 of i128, got ") << buffer;
}

LogicalResult ClusterRequestOp::verify() {
  if (failed(verifyCompletion(*this, getToken(), getBarriers(), getWhich())) ||
      failed(verifyClusterCTAs(*this, getCtas())))
    return failure();
  if (!(*this)->getParentOfType<ElectOp>())
    return emitOpError("expected to stand in an attn.elect");
  return verifyResponse(*this, getDest().getType());
}

ChannelUse ClusterRequestOp::getChannelUse() {
  return getToken() ? ChannelUse::Fill : ChannelUse::None;
}

OpOperand *ClusterRequestOp::getUsedHandle() {
  return getToken() ? &*getTokenMutable().begin() : nullptr;
}

int64_t ClusterRequestOp::getFilledBytes() { return 16; }

void ClusterRequestOp::setFillBarrier(Value barriers, Value index,
                                      IntegerAttr ctas) {
  getBarriersMutable().assign(barriers);
  getWhichMutable().assign(index);
  getTokenMutable().clear();
  setCtasAttr(ctas);
}

void ClusterRequestOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &getDestMutable());
  effects.emplace_back(MemoryEffects::Write::get(), BarrierState::get());
}

LogicalResult ClusterResponseOp::verify() {
  return verifyResponse(*this, getSource().getType());
}
