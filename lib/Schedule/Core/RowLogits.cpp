//===- RowLogits.cpp - Logits of rows beside their scores -----------------===//
//
// Sinks, and results of other keys that rows go on from. What infinities and
// NaN give stands in docs/spec.md ("Infinite and NaN logits").
//
//===----------------------------------------------------------------------===//

#include "AttentionEmitter.h"

using namespace mlir;
using namespace mlir::attn;

Value AttentionEmitter::emitSinkRows() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  RankedTensorType type = f32Tile({blockM});
  if (group == 1) {
    Value sink = context.loadElement("sinks", context.widen(at.head));
    if (Value counts = results->emitHasSinks(at))
      sink = arith::SelectOp::create(b, counts, sink, context.f32(-infinity));
    return splatRows(
        arith::MulFOp::create(b, sink, context.f32(llvm::numbers::log2e))
            .getResult());
  }
  Value stride = context.getStride("sinks", 0);
  Value view = GlobalViewOp::create(
      b,
      GlobalType::get(b.getContext(), {ShapedType::kDynamic}, b.getF32Type()),
      context.getPointer("sinks"),
      arith::MulIOp::create(b, context.widen(at.head), stride), getRows(),
      /*stride=*/context.i64(0), /*members=*/stride,
      /*alignment=*/IntegerAttr(), b.getI64IntegerAttr(group),
      getPresentRows(context, getQueryRows()),
      getQueryRows().isInBounds ? b.getUnitAttr() : UnitAttr());
  Value sinks = GlobalLoadOp::create(b, type, view, row);
  if (Value counts = results->emitHasSinks(at))
    sinks = arith::SelectOp::create(b, counts, sinks, splat(type, -infinity));
  return arith::MulFOp::create(b, sinks, splat(type, llvm::numbers::log2e));
}

Value AttentionEmitter::emitInitRows() {
  RankedTensorType type = f32Tile({blockM});
  Value view = emitHeadRows(context, "init_lse", getQueryRows());
  Value logits = GlobalLoadOp::create(b, type, view, row);
  if (Value counts = results->emitHasSinks(at))
    logits = arith::SelectOp::create(
        b, counts, logits,
        splat(type, -std::numeric_limits<double>::infinity()));
  return arith::MulFOp::create(b, logits, splat(type, llvm::numbers::log2e));
}

FinalRows AttentionEmitter::emitLogits(FinalRows state) {
  Value sinks, logits;
  if (facts.sinks) {
    sinks = emitSinkRows();
    state = emitLogit(state, sinks).first;
  }
  if (!facts.initLse)
    return state;
  logits = emitInitRows();
  auto [rows, share] = emitLogit(state, logits);
  // Of no state the share is below 0, which emitInitTerm asks for.
  RankedTensorType type = f32Tile({blockM});
  Value isNone = arith::CmpFOp::create(
      b, arith::CmpFPredicate::OEQ, logits,
      splat(type, -std::numeric_limits<double>::infinity()));
  initShare = arith::SelectOp::create(b, isNone, splat(type, -1), share);
  if (state.factor)
    rows.factor = arith::MulFOp::create(b, rows.factor, state.factor);
  if (!sinks)
    return rows;
  // Of two that take all nobody knows which takes more.
  Value infinity = splat(type, std::numeric_limits<double>::infinity());
  Value takeAll = arith::CmpFOp::create(
      b, arith::CmpFPredicate::OEQ, arith::MinimumFOp::create(b, sinks, logits),
      infinity);
  Value nan = splat(type, std::numeric_limits<double>::quiet_NaN());
  rows.l = arith::SelectOp::create(b, takeAll, nan, rows.l);
  if (rows.divisor)
    rows.divisor = arith::SelectOp::create(b, takeAll, nan, rows.divisor);
  return rows;
}

Value AttentionEmitter::emitInitWeight(Value l) {
  if (!initShare)
    return {};
  Value one = splat(f32Tile({blockM}), facts.getResultFactor());
  return arith::MulFOp::create(b, initShare, emitReciprocal(l, one));
}

Value AttentionEmitter::emitInitTerm(RankedTensorType type, Value weight) {
  auto map = MapElementsOp::create(
      b, type, BroadcastOp::create(b, type, weight), row, context.i32(0));
  OpBuilder::InsertionGuard guard(b);
  Type i32 = b.getI32Type();
  Block *block = b.createBlock(&map.getBody(), {}, {b.getF32Type(), i32, i32},
                               SmallVector<Location>(3, b.getLoc()));
  // Elements beyond the end, which nobody stores, must not be read there.
  auto limit = [&](Value index, Value end) -> Value {
    return arith::MinSIOp::create(
        b, index, arith::SubIOp::create(b, end, context.i32(1)));
  };
  Value position = limit(block->getArgument(1), getRows());
  Value column =
      limit(block->getArgument(2), context.i32(int32_t(facts.valueDim)));
  auto [head, query] = emitHeadAndQuery(b, position);
  // Packed rows count from the first one of all.
  Value place = context.widen(query);
  if (queryStart)
    place = arith::AddIOp::create(b, place, queryStart);
  Value offset = context.widen(column);
  auto add = [&](Value index, unsigned dim) {
    Value step =
        arith::MulIOp::create(b, index, context.getStride("init_o", dim));
    offset = arith::AddIOp::create(b, offset, step);
  };
  if (!queryStart)
    add(context.widen(at.batch), 0);
  add(context.widen(head), 1);
  add(place, 2);
  Value value = context.loadElement("init_o", offset);
  if (!facts.initO.elementType.isF32())
    value = arith::ExtFOp::create(b, b.getF32Type(), value);
  // What is not there may be anything.
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  Value isThere = arith::CmpFOp::create(b, arith::CmpFPredicate::UGE,
                                        block->getArgument(0), zero);
  value = arith::SelectOp::create(b, isThere, value, zero);
  YieldOp::create(
      b, arith::MulFOp::create(b, value, block->getArgument(0)).getResult());
  return map.getResult();
}

std::pair<FinalRows, Value> AttentionEmitter::emitLogit(FinalRows state,
                                                        Value sink) {
  RankedTensorType rows = f32Tile({blockM});
  Value m = arith::MaximumFOp::create(b, state.m, sink);
  // A sink of +inf takes all: exp(inf - inf) is 1, which maxima that are no
  // larger than finite numbers make it.
  auto bound = [&](Value x) -> Value {
    return arith::MinimumFOp::create(
        b, x, splat(rows, std::numeric_limits<float>::max()));
  };
  // A row without keys and with a sink of -inf has nothing to subtract.
  Value infinity = splat(rows, -std::numeric_limits<double>::infinity());
  Value empty =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, m, infinity);
  Value shift = arith::SelectOp::create(b, empty, splat(rows, 0), bound(m));
  auto power = [&](Value x) -> Value {
    return Exp2Op::create(b, rows, arith::SubFOp::create(b, bound(x), shift));
  };
  Value factor = power(state.m), share = power(sink);
  auto add = [&](Value sums) -> Value {
    return arith::AddFOp::create(b, arith::MulFOp::create(b, sums, factor),
                                 share);
  };
  return {
      {m, add(state.l), factor, state.divisor ? add(state.divisor) : Value()},
      share};
}
