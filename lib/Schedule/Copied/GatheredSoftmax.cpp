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

Value GatheredSoftmax::emitNoSums(ImplicitLocOpBuilder &b) const {
  return emitSplat(b, tile.getPartialType(), APFloat(0.0f));
}

GatheredSoftmax::Step GatheredSoftmax::emit(ImplicitLocOpBuilder &b,
                                            Value scores,
                                            const RunningState &state,
                                            Value scale,
                                            Type operandType) const {
  Value m = state.m, l = state.l;
  auto rowType = cast<RankedTensorType>(m.getType());
  auto type = cast<RankedTensorType>(scores.getType());
  RankedTensorType partial = tile.getPartialType();
  Value own = ReduceOp::create(b, partial, ReduceKind::Max, scores,
                               /*partial=*/b.getUnitAttr());
  Value largest =
      ReduceOp::create(b, rowType, ReduceKind::Max, tile.gather(b, own),
                       /*partial=*/UnitAttr());
  Value scaled = arith::MulFOp::create(
      b, largest, tensor::SplatOp::create(b, scale, rowType));
  // Rows without a key have a maximum to subtract as well.
  APFloat lowest = APFloat::getLargest(APFloat::IEEEsingle(), true);
  Value grown = arith::MaxNumFOp::create(
      b, arith::MaxNumFOp::create(b, m, scaled), emitSplat(b, rowType, lowest));
  if (whole)
    grown = math::CeilOp::create(b, grown);
  Value factor = Exp2Op::create(b, arith::SubFOp::create(b, m, grown));

  Value offset = tile.spread(b, arith::NegFOp::create(b, grown));
  Value exponent =
      math::FmaOp::create(b, scores, tensor::SplatOp::create(b, scale, type),
                          BroadcastOp::create(b, type, offset));
  Value p = Exp2Op::create(b, exponent);
  Value sums = ReduceOp::create(b, partial, ReduceKind::Add, p,
                                /*partial=*/b.getUnitAttr());
  Value spread = BroadcastOp::create(b, partial, tile.spread(b, factor));
  Value narrow = arith::TruncFOp::create(b, type.clone(operandType), p);
  Value exponents;
  if (state.largest)
    exponents = arith::MaxNumFOp::create(b, state.largest, scaled);
  return {ConvertLayoutOp::create(
              b, tile.getSharedType(type.getShape()[1], operandType), narrow),
          grown, math::FmaOp::create(b, l, spread, sums), factor, exponents};
}
