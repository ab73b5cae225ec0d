//===- TmaOps.cpp - Bulk tensor copies ------------------------------------===//

#include "../Completion.h"
#include "../RowNumbers.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/IR/BulkStores.h"

using namespace mlir;
using namespace mlir::attn;

LogicalResult EncodeTensorMapOp::verify() {
  auto source = cast<MemRefType>(getSource().getType());
  TensorMapType map = getType();
  if (getPacked() && getBounded())
    return emitOpError("expected 'packed' or 'bounded', got both");
  if (getBounded() && source.getRank() < 3)
    return emitOpError("expected a batch before rows with 'bounded', "
                       "got ")
           << source;
  int64_t rank = source.getRank() + (getBounded() ? 1 : 0);
  if (rank != map.getRank())
    return emitOpError("expected a box of ")
           << (getBounded() ? "one more than the memref's rank, "
                            : "the memref's rank ")
           << rank << ", got rank " << map.getRank();
  if (source.getElementType() != map.getElementType())
    return emitOpError("expected the memref's element type ")
           << source.getElementType() << ", got " << map.getElementType();
  int64_t stride = source.getStridesAndOffset().first.back();
  if (stride != 1 && !ShapedType::isDynamic(stride))
    return emitOpError("expected an innermost stride of 1, got ") << stride;
  if (getPacked() && (source.getRank() < 3 ||
                      (source.getDimSize(0) != 1 && !source.isDynamicDim(0))))
    return emitOpError("expected packed sequences in a batch of 1, got ")
           << source;
  if (getByRow() && (getBounded() || source.getRank() < 3))
    return emitOpError("expected heads before rows, and no 'bounded', "
                       "with 'by_row', got ")
           << source;
  return success();
}

/// Checks that boxes of `map`, side by side, fill `buffer`; with `parts` one
/// below the other, as many such rows of boxes.
static LogicalResult verifyCopy(Operation *op, TensorMapType map,
                                size_t coordinates, BufferType buffer,
                                int64_t parts = 1) {
  if (coordinates != static_cast<size_t>(map.getRank()))
    return op->emitOpError("expected ")
           << map.getRank() << " coordinates, got " << coordinates;
  if (buffer.getElementType() != map.getElementType())
    return op->emitOpError("expected the element type ")
           << map.getElementType() << " of the map, got "
           << buffer.getElementType();
  if (buffer.getRank() != 2)
    return op->emitOpError("expected a buffer of rank 2, got rank ")
           << buffer.getRank();
  if (buffer.getShape()[0] != parts * map.getRows() ||
      buffer.getShape()[1] % map.getColumns() != 0)
    return op->emitOpError("expected a buffer of ")
           << parts * map.getRows() << " rows and a multiple of "
           << map.getColumns() << " columns, got " << buffer.getShape()[0]
           << " x " << buffer.getShape()[1];
  // One box fills whole spans, or without a swizzle the buffer.
  int64_t swizzle = map.getSwizzle();
  int64_t rowBytes =
      map.getColumns() * map.getElementType().getIntOrFloatBitWidth() / 8;
  if (swizzle != 0 ? rowBytes != swizzle
                   : map.getColumns() != buffer.getShape()[1])
    return op->emitOpError("expected boxes as wide as ")
           << (swizzle != 0 ? "their swizzle" : "the buffer") << ", "
           << (swizzle != 0 ? swizzle : buffer.getShape()[1])
           << (swizzle != 0 ? " bytes" : " columns") << ", got "
           << (swizzle != 0 ? rowBytes : map.getColumns());
  Attribute expected =
      swizzle != 0
          ? Attribute(SwizzledLayoutAttr::get(op->getContext(), swizzle))
          : Attribute(RowLayoutAttr::get(op->getContext()));
  if (!isAuto(buffer.getLayout()) && buffer.getLayout() != expected)
    return op->emitOpError("expected a buffer in the map's layout ")
           << expected << ", got " << buffer.getLayout();
  return success();
}

/// Checks that the boxes of the spare map can be those of the map.
static LogicalResult verifySpare(TmaLoadOp op) {
  size_t boxes = op.getSpare() ? op.getStackedBoxes() : 0;
  if (op.getOutside().size() != boxes)
    return op.emitOpError("expected a condition for each of ")
           << boxes << " boxes that may be of a spare map, got "
           << op.getOutside().size();
  if (!op.getSpare())
    return success();
  TensorMapType map = op.getMap().getType(), spare = op.getSpare().getType();
  if (spare.getRank() != map.getRank() || spare.getRows() != map.getRows() ||
      spare.getColumns() != map.getColumns() ||
      spare.getElementType() != map.getElementType() ||
      spare.getSwizzle() != map.getSwizzle())
    return op.emitOpError("expected a spare map of the rank, rows, columns, "
                          "elements and swizzle of ")
           << map << ", got " << spare;
  return success();
}

/// Checks that the CTAs of a kernel whose load is of pairs have such.
static LogicalResult verifyPairs(TmaLoadOp op) {
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  if (!op.getLeader() || !kernel)
    return success();
  std::optional<ArrayRef<int32_t>> size = kernel.getKnownClusterSize();
  int64_t ctas = size ? countLaunched(*size) : 1;
  if (ctas % 2 == 0)
    return success();
  InFlightDiagnostic diag =
      op.emitOpError(
          "expected a cluster of pairs of CTAs beside 'leader', got ")
      << ctas << " CTAs";
  diag.attachNote(kernel.getLoc()) << "the kernel is here";
  return diag;
}

LogicalResult TmaLoadOp::verify() {
  if (failed(verifyCompletion(*this, getToken(), getBarriers(), getIndex())))
    return failure();
  int64_t parts = getMulticast().value_or(1);
  if (failed(verifyClusterCTAs(*this, getMulticast())))
    return failure();
  if (failed(verifyRankBits(*this, getMulticast(), false, getRankBits())))
    return failure();
  if (getLeader() && !canFillAtLeader())
    return emitOpError("expected a multicast to CTAs of other pairs beside "
                       "'leader', got one to both CTAs of a pair");
  // The bytes of a multicast go where its data goes, or to the leaders there.
  if (failed(verifyPairs(*this)) ||
      failed(verifyBarrierCGA(
          *this, getBarriers(),
          SignalMask(getLeader() ? 1 : 0, getFillTargets().getAny()))))
    return failure();
  if (std::optional<int64_t> stacked = getStacked()) {
    if (*stacked < 2 || *stacked > 256 || getMulticast())
      return emitOpError("expected 2 to 256 stacked boxes and no multicast, "
                         "got ")
             << *stacked << " and "
             << (getMulticast() ? "a multicast" : "no multicast");
    parts = *stacked;
  }
  if (failed(verifySpare(*this)))
    return failure();
  size_t coordinates = getCoords().size();
  return verifyCopy(*this, getMap().getType(),
                    areBoxesApart() ? coordinates / parts : coordinates,
                    getDest().getType(), parts);
}

bool TmaLoadOp::areBoxesApart() {
  return getStacked() &&
         getCoords().size() == *getStacked() * getMap().getType().getRank();
}

void TmaLoadOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &getDestMutable());
  effects.emplace_back(MemoryEffects::Write::get(), BarrierState::get());
}

ChannelUse TmaLoadOp::getChannelUse() {
  return getToken() ? ChannelUse::Fill : ChannelUse::None;
}

OpOperand *TmaLoadOp::getUsedHandle() {
  return getToken() ? &*getTokenMutable().begin() : nullptr;
}

int64_t TmaLoadOp::getFilledBytes() {
  return cast<BulkCopyOpInterface>(getOperation()).getCopiedBytes();
}

bool TmaLoadOp::isFilledAtLeader() { return getLeader(); }

void TmaLoadOp::setFilledAtLeader() { setLeader(true); }

SignalMask TmaLoadOp::getFillTargets() {
  return SignalMask::get(getMulticast(), false, getRankBits());
}

int TmaLoadOp::getMinimumSM() { return getLeader() ? 100 : 90; }

void TmaLoadOp::setFillBarrier(Value barriers, Value index, IntegerAttr) {
  getBarriersMutable().assign(barriers);
  getIndexMutable().assign(index);
  getTokenMutable().clear();
}

LogicalResult TmaGatherOp::verify() {
  if (failed(verifyCompletion(*this, getToken(), getBarriers(), getIndex())))
    return failure();
  TensorMapType map = getMap().getType();
  BufferType rows = getRows().getType(), dest = getDest().getType();
  if (map.getRank() != 2 || map.getRows() != 1 || map.getSwizzle() == 0)
    return emitOpError("expected a swizzled map with a box of one row of a "
                       "tensor of rank 2, got ")
           << map;
  if (failed(verifyRowNumbers(*this, rows)))
    return failure();
  constexpr int64_t together = 4;
  int64_t count = dest.getRank() == 2 ? dest.getShape()[0] : 0;
  if (count % together != 0 || count > rows.getShape()[0])
    return emitOpError("expected a destination of a multiple of ")
           << together << " rows, at most " << rows.getShape()[0] << ", got "
           << count;
  return verifyCopy(*this, map, /*coordinates=*/2, dest, count);
}

void TmaGatherOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getRowsMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getDestMutable());
  effects.emplace_back(MemoryEffects::Write::get(), BarrierState::get());
}

ChannelUse TmaGatherOp::getChannelUse() {
  return getToken() ? ChannelUse::Fill : ChannelUse::None;
}

OpOperand *TmaGatherOp::getUsedHandle() {
  return getToken() ? &*getTokenMutable().begin() : nullptr;
}

int64_t TmaGatherOp::getFilledBytes() {
  return cast<BulkCopyOpInterface>(getOperation()).getCopiedBytes();
}

void TmaGatherOp::setFillBarrier(Value barriers, Value index, IntegerAttr) {
  getBarriersMutable().assign(barriers);
  getIndexMutable().assign(index);
  getTokenMutable().clear();
}

LogicalResult TmaStoreOp::verify() {
  int64_t parts = getWarpgroups().value_or(1);
  // No CTA has more (PTX ISA, limits of a CTA).
  constexpr int64_t mostWarpgroups = 8;
  if (parts < 1 || parts > mostWarpgroups)
    return emitOpError("expected 1 to ")
           << mostWarpgroups << " warpgroups, got " << parts;
  auto elect = (*this)->getParentOfType<ElectOp>();
  if (getWarpgroups() && (!elect || !elect.getEachWarpgroup()))
    return emitOpError("expected to stand in an attn.elect each_warpgroup with "
                       "'warpgroups'");
  return verifyCopy(*this, getMap().getType(), getCoords().size(),
                    getSource().getType(), parts);
}

void TmaStoreOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getSourceMutable());
  effects.emplace_back(MemoryEffects::Write::get(), BarrierState::get());
}

LogicalResult TmaWaitOp::verify() {
  return verifyPendingGroups(*this, getPending());
}

void attn::startBulkStore(OpBuilder &builder, Location loc, Value buffer,
                          Value map, ValueRange start, int64_t warpgroups) {
  TmaStoreOp::create(builder, loc, buffer, map, start,
                     builder.getI64IntegerAttr(warpgroups));
  TmaCommitOp::create(builder, loc);
}

void attn::awaitBulkStores(OpBuilder &builder, Location loc) {
  TmaWaitOp::create(builder, loc, /*pending=*/0, /*read=*/true);
}

bool attn::awaitsOnlyReads(Operation *wait) {
  auto op = dyn_cast<TmaWaitOp>(wait);
  return op && op.getRead();
}
