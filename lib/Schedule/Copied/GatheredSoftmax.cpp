//===- GatheredSoftmax.cpp - A softmax whose warps divide keys ------------===//

#include "GatheredSoftmax.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::attn;

/// What equal elements are as a tile.
static Value emitSplat(ImplicitLocOpBuilder &b, RankedTensorType type,
                       APFloat value) {
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, value));
}

Value attn::emitRowsOf(ImplicitLocOpBuilder &b, Value rows,
                       MmaLayoutAttr layout) {
  auto type = cast<RankedTensorType>(rows.getType());
  return ConvertLayoutOp::create(
      b,
      RankedTensorType::get(type.getShape(), type.getElementType(),
                            SliceLayoutAttr::get(b.getContext(), 1, layout)),
      rows);
}

RankedTensorType GatheredSoftmax::getPartialType() const {
  MLIRContext *context = divided.getContext();
  return RankedTensorType::get({rows, kRowOwners * divided.getWarps()[1]},
                               Float32Type::get(context),
                               PartialLayoutAttr::get(context, divided));
}

Value GatheredSoftmax::emitNoSums(ImplicitLocOpBuilder &b) const {
  return emitSplat(b, getPartialType(), APFloat(0.0f));
}

Value GatheredSoftmax::gatherSums(ImplicitLocOpBuilder &b, Value l) const {
  auto type = cast<RankedTensorType>(l.getType());
  return ConvertLayoutOp::create(
      b, getSharedType(type.getShape()[1], type.getElementType()), l);
}

GatheredSoftmax::Step GatheredSoftmax::emit(ImplicitLocOpBuilder &b,
                                            Value scores, Value m, Value l,
                                            Value scale,
                                            Type operandType) const {
  auto rowType = cast<RankedTensorType>(m.getType());
  auto tile = cast<RankedTensorType>(scores.getType());
  RankedTensorType partial = getPartialType();
  Value own = ReduceOp::create(b, partial, ReduceKind::Max, scores,
                               /*partial=*/b.getUnitAttr());
  Value largest =
      ReduceOp::create(b, rowType, ReduceKind::Max, gatherSums(b, own),
                       /*partial=*/UnitAttr());
  Value scaled = arith::MulFOp::create(
      b, largest, tensor::SplatOp::create(b, scale, rowType));
  // Rows without a key have a maximum to subtract as well.
  APFloat lowest = APFloat::getLargest(APFloat::IEEEsingle(), true);
  Value grown = arith::MaxNumFOp::create(
      b, arith::MaxNumFOp::create(b, m, scaled), emitSplat(b, rowType, lowest));
  Value factor = Exp2Op::create(b, arith::SubFOp::create(b, m, grown));

  Value offset = emitRowsOf(b, arith::NegFOp::create(b, grown), divided);
  Value exponent =
      math::FmaOp::create(b, scores, tensor::SplatOp::create(b, scale, tile),
                          BroadcastOp::create(b, tile, offset));
  Value p = Exp2Op::create(b, exponent);
  Value sums = ReduceOp::create(b, partial, ReduceKind::Add, p,
                                /*partial=*/b.getUnitAttr());
  Value spread =
      BroadcastOp::create(b, partial, emitRowsOf(b, factor, divided));
  Value narrow = arith::TruncFOp::create(b, tile.clone(operandType), p);
  return {ConvertLayoutOp::create(
              b, getSharedType(tile.getShape()[1], operandType), narrow),
          grown, math::FmaOp::create(b, l, spread, sums), factor};
}
