//===- WgmmaOps.cpp - Matrix instructions of a warpgroup ------------------===//

#include "../ElementTypes.h"
#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

/// Shape and element type of a register tile, buffer or accumulator in flight.
static std::pair<ArrayRef<int64_t>, Type> describe(Type type) {
  if (auto buffer = dyn_cast<BufferType>(type))
    return {buffer.getShape(), buffer.getElementType()};
  if (auto accumulator = dyn_cast<InFlightType>(type))
    return {accumulator.getShape(), accumulator.getElementType()};
  auto tile = cast<RankedTensorType>(type);
  return {tile.getShape(), tile.getElementType()};
}

LogicalResult WgmmaOp::verify() {
  auto [shapeA, typeA] = describe(getA().getType());
  auto [shapeB, typeB] = describe(getB().getType());
  auto [shape, type] = describe(getType());
  for (auto [name, operand] : {std::pair("a", shapeA), std::pair("b", shapeB)})
    if (operand.size() != 2)
      return emitOpError("expected '")
             << name << "' of rank 2, got rank " << operand.size();
  int64_t contraction = shapeA[1], columns = shapeB[1];
  int64_t start = getStart();
  if (start < 0 || start % getDepthStep() != 0)
    return emitOpError("expected 'first' to be a multiple of ")
           << getDepthStep() << " from 0 on, got " << start;
  if (start != 0 && !getDepth())
    return emitOpError("expected a depth beside 'first', got none");
  if (std::optional<uint64_t> depth = getDepth()) {
    contraction = *depth;
    int64_t rows = shapeB[0] - start;
    if (contraction < 1 || contraction > shapeA[1] || contraction > rows)
      return emitOpError("expected a depth from 1 to the contraction extents ")
             << shapeA[1] << " and " << rows << ", got " << contraction;
  } else if (shapeA[1] != shapeB[0]) {
    return emitOpError("expected the contraction extents of 'a' and 'b' to "
                       "agree, got ")
           << shapeA[1] << " and " << shapeB[0];
  }
  if (std::optional<uint64_t> first = getColumns()) {
    columns = *first;
    if (columns < 1 || columns > shapeB[1])
      return emitOpError("expected 1 to ")
             << shapeB[1] << " columns, got " << columns;
  }
  if (shapeA[0] != shape[0] || columns != shape[1])
    return emitOpError("expected an accumulator of ")
           << shapeA[0] << " x " << columns << ", got " << shape[0] << " x "
           << shape[1];
  if (getC()) {
    auto [shapeC, typeC] = describe(getC().getType());
    if (shapeC != shape || typeC != type)
      return emitOpError("expected an accumulator like the result ")
             << getType() << ", got " << getC().getType();
  }
  bool fp8 = isFloat8(typeA) && isFloat8(typeB);
  if (typeA != typeB && !fp8)
    return emitOpError("expected operands of one element type, got ")
           << typeA << " and " << typeB;
  if (!typeA.isF16() && !typeA.isBF16() && !fp8)
    return emitOpError("expected operands of f16, bf16, f8E4M3FN or f8E5M2, "
                       "got ")
           << typeA;
  int64_t depth = getDepthStep();
  // Warpgroups may divide the columns.
  int64_t parts = 1;
  if (Attribute layout = getType().getLayout()) {
    auto mma = dyn_cast<MmaLayoutAttr>(layout);
    if (!mma || mma.getWarps()[0] != 4 || shape[0] != 64 ||
        (mma.getWarps()[1] != 1 && !mma.getColumnRuns()))
      return emitOpError("expected no layout, or 64 rows in copies or runs of "
                         "columns of four warps in #attn.mma, got ")
             << getType();
    parts = mma.getWarps()[1];
    if (parts != 1 && getColumns())
      return emitOpError("expected all columns of 'b' where warpgroups divide "
                         "them");
  }
  if (shape[0] % 64 != 0 || shape[1] % (8 * parts) != 0 ||
      shape[1] > kMostColumns * parts || contraction % depth != 0)
    return emitOpError("expected M x N x K with M a multiple of 64, N of 8 up "
                       "to ")
           << kMostColumns << " and K of " << depth << ", got " << shape[0]
           << " x " << shape[1] << " x " << contraction;
  return success();
}

Value WgmmaOp::getAccumulator() { return getC(); }

Value WgmmaOp::getProduct() { return getResult(); }

ProductCompletion WgmmaOp::getCompletion() { return ProductCompletion::Wait; }

int64_t WgmmaOp::getDepthStep() {
  return isFloat8(getB().getType().getElementType()) ? 32 : 16;
}

int64_t WgmmaOp::getWarpgroups() { return getType().getShape()[0] / 64; }

/// By mma.sync, which is not given 8-bit operands in shared memory or a part of
/// the factors.
bool WgmmaOp::canRepeatInWarp() {
  auto a = dyn_cast<BufferType>(getA().getType());
  return a && a.getElementType().getIntOrFloatBitWidth() == 16 &&
         !getColumns() && !getDepth();
}

Value WgmmaOp::repeatInWarp(OpBuilder &builder, Location loc,
                            RankedTensorType tile) {
  Value zero = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(tile, builder.getF32FloatAttr(0)));
  return MmaOp::create(builder, loc, tile, getA(), getB(), zero);
}

void WgmmaOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand *operand : {&getAMutable(), &getBMutable()})
    if (isa<BufferType>(operand->get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), operand);
  effects.emplace_back(MemoryEffects::Write::get(), WgmmaGroups::get());
}

/// Checks that `tile` has shape and elements of `accumulator`.
static LogicalResult verifyTile(Operation *op, Type inFlight, Type tileType) {
  auto accumulator = cast<InFlightType>(inFlight);
  auto tile = cast<RankedTensorType>(tileType);
  if (accumulator.getShape() != tile.getShape() ||
      accumulator.getElementType() != tile.getElementType())
    return op->emitOpError("expected a tile like ")
           << accumulator << ", got " << tile;
  return success();
}

LogicalResult WgmmaWaitOp::verify() {
  int64_t pending = getPending();
  if (pending < 0 || pending > 7)
    return emitOpError("expected 0 to 7 pending groups, got ") << pending;
  for (auto [source, result] : llvm::zip(getSources(), getResults()))
    if (failed(verifyTile(*this, source.getType(), result.getType())))
      return failure();
  return success();
}

void WgmmaWaitOp::setPendingGroups(int64_t groups) { setPending(groups); }

Value WgmmaWaitOp::resume(OpBuilder &builder, Location loc, Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  auto inFlight =
      InFlightType::get(getContext(), type.getShape(), type.getElementType());
  return WgmmaResumeOp::create(builder, loc, inFlight, tile);
}

LogicalResult WgmmaResumeOp::verify() {
  return verifyTile(*this, getType(), getSource().getType());
}

LogicalResult ExtendColumnsOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getType());
  if (source.getElementType() != result.getElementType() ||
      source.getRank() != 2 || result.getRank() != 2 ||
      source.getShape()[0] != result.getShape()[0] ||
      source.getShape()[1] > result.getShape()[1])
    return emitOpError("expected a tile of the source's rows and type with at "
                       "least as many columns, got ")
           << result << " for " << source;
  return success();
}

OpFoldResult ExtendColumnsOp::fold(FoldAdaptor) {
  return getSource().getType() == getType() ? getSource() : Value();
}

LogicalResult NarrowOperandOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getType());
  if (!source.getElementType().isF32() || !isFloat8(result.getElementType()))
    return emitOpError("expected f32 elements to become f8E4M3FN or f8E5M2, "
                       "got ")
           << source.getElementType() << " and " << result.getElementType();
  if (source.getShape() != result.getShape() || source.getRank() != 2 ||
      source.getShape()[1] % 32 != 0)
    return emitOpError("expected two M x K tiles with K a multiple of 32, got ")
           << source << " and " << result;
  return success();
}

LogicalResult LocalTransposeOp::verify() {
  BufferType source = getSource().getType(), dest = getDest().getType();
  if (!isFloat8(source.getElementType()) ||
      dest.getElementType() != source.getElementType())
    return emitOpError("expected buffers of one 8-bit type, got ")
           << source.getElementType() << " and " << dest.getElementType();
  ArrayRef<int64_t> shape = source.getShape();
  if (shape.size() != 2 || shape[0] % 32 != 0 || shape[1] % 16 != 0)
    return emitOpError("expected a source of K x N with K a multiple of 32 and "
                       "N of 16, got ")
           << source;
  if (dest.getShape() != ArrayRef<int64_t>({shape[1], shape[0]}))
    return emitOpError("expected a destination of ")
           << shape[1] << " x " << shape[0] << ", got " << dest;
  return success();
}
