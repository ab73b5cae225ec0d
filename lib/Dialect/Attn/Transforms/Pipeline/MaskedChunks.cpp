//===- MaskedChunks.cpp - Masked scores in chunks of columns --------------===//

#include "MaskedChunks.h"
#include <limits>

using namespace mlir;
using namespace mlir::attn;

std::optional<MaskedChunks> MaskedChunks::create(OpBuilder &builder,
                                                 OnlineSoftmaxOp op) {
  auto mask = op.getS().getDefiningOp<ApplyMaskOp>();
  if (op.getChunk() == 0 || !mask || !mask->hasOneUse() || mask.getQuads())
    return std::nullopt;
  MaskedChunks chunks(builder, op, mask);
  op.getSMutable().assign(chunks.emitMasked());
  mask.erase();
  return chunks;
}

RankedTensorType MaskedChunks::typeOf(int64_t columns) {
  auto type = cast<RankedTensorType>(op.getS().getType());
  return RankedTensorType::get({type.getShape()[0], columns},
                               type.getElementType(), type.getEncoding());
}

Value MaskedChunks::emitSlice(Value tile, int64_t first, int64_t columns) {
  return SliceOp::create(builder, loc, typeOf(columns), tile, first);
}

Value MaskedChunks::emitConstant(int64_t columns, double value) {
  return arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(typeOf(columns), builder.getF32FloatAttr(value)));
}

Value MaskedChunks::emitKey(int64_t first) {
  if (first == 0)
    return key;
  return arith::AddIOp::create(
      builder, loc, key, arith::ConstantIntOp::create(builder, loc, first, 32));
}

Value MaskedChunks::emitRows(int64_t column, bool lacking) {
  int64_t first = column / op.getChunk() * op.getChunk();
  int64_t columns = std::min<int64_t>(
      op.getChunk(),
      cast<RankedTensorType>(op.getS().getType()).getShape()[1] - first);
  auto like = cast<RankedTensorType>(op.getM().getType());
  auto type = RankedTensorType::get(like.getShape(), builder.getI1Type(),
                                    like.getEncoding());
  return KeptRowsOp::create(builder, loc, type, op.getM(), row, emitKey(first),
                            columns, limit, lower, upper, lacking, group);
}

Value MaskedChunks::emitWhere(Value condition, Value other,
                              function_ref<Value()> emit) {
  auto path = RareOp::create(builder, loc, other.getType(), condition, other,
                             /*each_warpgroup=*/false,
                             /*barrier=*/IntegerAttr(), /*leave_loop=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&path.getBody());
  YieldOp::create(builder, loc, emit());
  return path.getResult(0);
}

void MaskedChunks::forChunks(int64_t first, int64_t columns,
                             function_ref<void(int64_t, int64_t)> emit) {
  int64_t chunk = op.getChunk(), end = first + columns;
  while (first < end) {
    int64_t next = std::min(end, (first / chunk + 1) * chunk);
    emit(first, next - first);
    first = next;
  }
}

Value MaskedChunks::emitMasked() {
  int64_t columns = cast<RankedTensorType>(op.getS().getType()).getShape()[1];
  SmallVector<Value> masked;
  forChunks(0, columns, [&](int64_t first, int64_t count) {
    Value scores = emitSlice(source, first, count);
    auto emitMask = [&]() -> Value {
      return ApplyMaskOp::create(builder, loc, scores.getType(), scores, row,
                                 emitKey(first), limit, lower, upper,
                                 /*quads=*/false, group);
    };
    auto emitCut = [&] {
      Value kept = emitRows(first, /*lacking=*/false);
      Value none =
          emitConstant(count, -std::numeric_limits<double>::infinity());
      return emitWhere(kept, none, emitMask);
    };
    masked.push_back(
        emitWhere(emitRows(first, /*lacking=*/true), scores, emitCut));
  });
  return ConcatOp::create(builder, loc, typeOf(columns), masked);
}

Value MaskedChunks::emitColumns(int64_t first, int64_t columns,
                                function_ref<Value(Value, int64_t)> emit) {
  SmallVector<Value> parts;
  forChunks(first, columns, [&](int64_t at, int64_t count) {
    Value scores = emitSlice(op.getS(), at, count);
    Value kept = emitRows(at, /*lacking=*/false);
    parts.push_back(emitWhere(kept, emitConstant(count, 0),
                              [&] { return emit(scores, at - first); }));
  });
  return ConcatOp::create(builder, loc, typeOf(columns), parts);
}
