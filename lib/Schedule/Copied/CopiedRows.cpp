//===- CopiedRows.cpp - The state of rows and their softmax ---------------===//

#include "CopiedRows.h"
#include "../Core/NarrowKeys.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::attn;

RunningState CopiedRows::get() const {
  RunningState state(m, l, o);
  if (largest)
    state.largest = *largest;
  return state;
}

//===----------------------------------------------------------------------===//
// Before the first block
//===----------------------------------------------------------------------===//

Value CopiedSoftmax::makeNoResults(Value f32) const {
  auto type = cast<RankedTensorType>(f32.getType());
  if (plan.getResultSums() == ResultSums::F16)
    type = type.clone(b.getF16Type());
  else if (tile.facts.hasNarrowValues())
    // Products with 8-bit values leave columns in quads.
    type = RankedTensorType::get(
        type.getShape(), type.getElementType(),
        MmaLayoutAttr::get(b.getContext(),
                           {plan.getRowWarps(), plan.getColumnWarps()},
                           /*copies=*/1, /*columnRuns=*/false,
                           /*columnQuads=*/true));
  else
    return f32;
  return arith::ConstantOp::create(b, cast<TypedAttr>(b.getZeroAttr(type)));
}

CopiedRows CopiedSoftmax::start() const {
  RunningState none = emitInitialState(tile);
  Value l = none.l, o = makeNoResults(none.o);
  if (plan.gathersProbabilities())
    l = tile.splat(layouts.getDividedRows().getPartialType(), 0);
  CopiedRows rows = {{control, none.m}, {control, l}, {control, o}, {}};
  if (!dividesByRounded(tile.facts))
    return rows;
  Value largest = none.m;
  if (!plan.gathersProbabilities())
    largest = tile.splat(cast<RankedTensorType>(l.getType()),
                         -std::numeric_limits<double>::infinity());
  rows.largest.emplace(control, largest);
  return rows;
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

Value CopiedSoftmax::narrow(Value p) const {
  auto type = cast<RankedTensorType>(p.getType());
  if (type.getElementType() == tile.getOperandType())
    return p;
  if (tile.facts.isNarrow())
    return NarrowOperandOp::create(
        b,
        RankedTensorType::get(type.getShape(), tile.getOperandType(),
                              AutoLayoutAttr::get(b.getContext())),
        p, KeyOrder::Interleaved);
  return arith::TruncFOp::create(b, type.clone(tile.getOperandType()), p);
}

void CopiedSoftmax::rescale(Value factor, Var &o) const {
  if (plan.getColumnWarps() > 1)
    factor = layouts.getDividedRows().spread(b, factor);
  Value one = tile.splat(cast<RankedTensorType>(factor.getType()), 1);
  Value changed =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, factor, one);
  control.rarely(changed, [&] {
    auto type = cast<RankedTensorType>(o.get().getType());
    Value spread = BroadcastOp::create(b, type.clone(b.getF32Type()), factor);
    if (!type.getElementType().isF32())
      spread = arith::TruncFOp::create(b, type, spread);
    o = arith::MulFOp::create(b, o.get(), spread);
  });
}

Value CopiedSoftmax::step(Value scores, Value scale, CopiedRows &rows) const {
  if (plan.gathersProbabilities())
    return gatherStep(scores, scale, rows);
  // Where columns are divided, row values are not where the results are, and
  // the softmax's step rescales f32.
  bool isApart =
      plan.getColumnWarps() > 1 || plan.getResultSums() == ResultSums::F16;
  auto op = OnlineSoftmaxOp::create(
      b, scores, rows.m.get(), rows.l.get(), isApart ? Value() : rows.o.get(),
      scale, plan.getSoftmax(), rows.largest ? rows.largest->get() : Value());
  op.setWhole(tile.hasWholeMaxima);
  if (tile.facts.isNarrow())
    setNarrowRange(op);
  Value p = op.getP();
  if (!tile.facts.kScales)
    p = narrow(p);
  if (isApart)
    rescale(op.getFactor(), rows.o);
  else
    rows.o = op.getNewO();
  rows.m = op.getNewM(), rows.l = op.getNewL();
  if (rows.largest)
    *rows.largest = op.getNewLargest();
  return p;
}

Value CopiedSoftmax::gatherStep(Value scores, Value scale,
                                CopiedRows &rows) const {
  DividedRows divided = layouts.getDividedRows();
  auto rowType = cast<RankedTensorType>(rows.m.get().getType());
  auto type = cast<RankedTensorType>(scores.getType());
  RankedTensorType partial = divided.getPartialType();
  Value own = ReduceOp::create(b, partial, ReduceKind::Max, scores,
                               /*partial=*/b.getUnitAttr());
  Value largest =
      ReduceOp::create(b, rowType, ReduceKind::Max, divided.gather(b, own),
                       /*partial=*/UnitAttr());
  Value scaled = arith::MulFOp::create(
      b, largest, tensor::SplatOp::create(b, scale, rowType));
  // Rows without a key have a maximum to subtract as well.
  Value lowest = tile.splat(rowType, std::numeric_limits<float>::lowest());
  Value m = arith::MaxNumFOp::create(
      b, arith::MaxNumFOp::create(b, rows.m.get(), scaled), lowest);
  if (tile.hasWholeMaxima)
    m = math::CeilOp::create(b, m);
  Value factor = Exp2Op::create(b, arith::SubFOp::create(b, rows.m.get(), m));

  Value offset = divided.spread(b, arith::NegFOp::create(b, m));
  Value exponent =
      math::FmaOp::create(b, scores, tensor::SplatOp::create(b, scale, type),
                          BroadcastOp::create(b, type, offset));
  Value p = Exp2Op::create(b, exponent);
  Value sums = ReduceOp::create(b, partial, ReduceKind::Add, p,
                                /*partial=*/b.getUnitAttr());
  Value spread = BroadcastOp::create(b, partial, divided.spread(b, factor));
  Value own16 = narrow(p);
  if (rows.largest)
    *rows.largest = arith::MaxNumFOp::create(b, rows.largest->get(), scaled);
  Value all = ConvertLayoutOp::create(
      b, divided.getSharedType(type.getShape()[1], tile.getOperandType()),
      own16);
  rows.m = m;
  rows.l = math::FmaOp::create(b, rows.l.get(), spread, sums);
  rescale(factor, rows.o);
  return all;
}
