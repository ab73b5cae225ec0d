//===- RowLogits.cpp - Logits of rows beside their scores -----------------===//
//
// Sinks, and results of other keys that rows go on from. What infinities and
// NaN give stands in docs/spec.md ("Infinite and NaN logits").
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Kernel/RowState.h"
#include "attn/Schedule/Kernel/Scores.h"

using namespace mlir;
using namespace mlir::attn;

/// Returns i1 whether the extra logits, which count once, are the tile's: of a
/// partial result in run 0 only. Null where they always are.
static Value emitHasSinks(const AttentionTile &tile) {
  if (!tile.facts.kvSplits || !tile.at.split)
    return {};
  return arith::CmpIOp::create(tile.b, arith::CmpIPredicate::eq, tile.at.split,
                               tile.context.i32(0));
}

/// Returns the extra logits of the tile's rows, in exponents of two.
static Value emitSinkRows(const AttentionTile &tile) {
  KernelContext &context = tile.context;
  ImplicitLocOpBuilder &b = tile.b;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  RankedTensorType type = tile.f32Tile({tile.blockM});
  if (tile.group == 1) {
    Value sink = context.loadElement("sinks", context.widen(tile.at.head));
    if (Value counts = emitHasSinks(tile))
      sink = arith::SelectOp::create(b, counts, sink, context.f32(-infinity));
    return tile.splatRows(
        arith::MulFOp::create(b, sink, context.f32(llvm::numbers::log2e))
            .getResult());
  }
  Value sinks = emitHeadValues(tile, "sinks");
  if (Value counts = emitHasSinks(tile))
    sinks =
        arith::SelectOp::create(b, counts, sinks, tile.splat(type, -infinity));
  return arith::MulFOp::create(b, sinks,
                               tile.splat(type, llvm::numbers::log2e));
}

/// Returns the LSE of the state that rows go on from, in exponents of two; -inf
/// where it is another run's.
static Value emitInitRows(const AttentionTile &tile) {
  KernelContext &context = tile.context;
  ImplicitLocOpBuilder &b = tile.b;
  RankedTensorType type = tile.f32Tile({tile.blockM});
  Value view = emitHeadRows(context, "init_lse", tile.getQueryRows());
  Value logits = GlobalLoadOp::create(b, type, view, tile.row);
  if (Value counts = emitHasSinks(tile))
    logits = arith::SelectOp::create(
        b, counts, logits,
        tile.splat(type, -std::numeric_limits<double>::infinity()));
  return arith::MulFOp::create(b, logits,
                               tile.splat(type, llvm::numbers::log2e));
}

/// Returns rows with one more logit for each, in exponents of two, which joins
/// the sums, and its share of them.
static std::pair<FinalRows, Value>
emitLogit(const AttentionTile &tile, const FinalRows &state, Value sink) {
  ImplicitLocOpBuilder &b = tile.b;
  RankedTensorType rows = tile.f32Tile({tile.blockM});
  Value m = arith::MaximumFOp::create(b, state.m, sink);
  // A sink of +inf takes all: exp(inf - inf) is 1, which maxima that are no
  // larger than finite numbers make it.
  auto bound = [&](Value x) -> Value {
    return arith::MinimumFOp::create(
        b, x, tile.splat(rows, std::numeric_limits<float>::max()));
  };
  // A row without keys and with a sink of -inf has nothing to subtract.
  Value infinity = tile.splat(rows, -std::numeric_limits<double>::infinity());
  Value empty =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, m, infinity);
  Value zero = tile.splat(rows, 0);
  Value shift = arith::SelectOp::create(b, empty, zero, bound(m));
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

FinalRows attn::emitLogits(const AttentionTile &tile, FinalRows state) {
  ImplicitLocOpBuilder &b = tile.b;
  const ProblemFacts &facts = tile.facts;
  Value sinks, logits;
  if (facts.sinks) {
    sinks = emitSinkRows(tile);
    state = emitLogit(tile, state, sinks).first;
  }
  if (!facts.initLse)
    return state;
  logits = emitInitRows(tile);
  auto [rows, share] = emitLogit(tile, state, logits);
  // Of no state the share is below 0, which emitInitTerm asks for.
  RankedTensorType type = tile.f32Tile({tile.blockM});
  Value isNone = arith::CmpFOp::create(
      b, arith::CmpFPredicate::OEQ, logits,
      tile.splat(type, -std::numeric_limits<double>::infinity()));
  rows.initShare =
      arith::SelectOp::create(b, isNone, tile.splat(type, -1), share);
  if (state.factor)
    rows.factor = arith::MulFOp::create(b, rows.factor, state.factor);
  if (!sinks)
    return rows;
  // Of two that take all nobody knows which takes more.
  Value infinity = tile.splat(type, std::numeric_limits<double>::infinity());
  Value takeAll = arith::CmpFOp::create(
      b, arith::CmpFPredicate::OEQ, arith::MinimumFOp::create(b, sinks, logits),
      infinity);
  Value nan = tile.splat(type, std::numeric_limits<double>::quiet_NaN());
  rows.l = arith::SelectOp::create(b, takeAll, nan, rows.l);
  if (rows.divisor)
    rows.divisor = arith::SelectOp::create(b, takeAll, nan, rows.divisor);
  return rows;
}

Value attn::emitInitWeight(const AttentionTile &tile, Value l,
                           Value initShare) {
  if (!initShare)
    return {};
  Value one =
      tile.splat(tile.f32Tile({tile.blockM}), tile.facts.getRowFactor());
  return arith::MulFOp::create(tile.b, initShare, emitReciprocal(tile, l, one));
}

Value attn::emitInitTerm(const AttentionTile &tile, RankedTensorType type,
                         Value weight, const ResultColumns &columns) {
  KernelContext &context = tile.context;
  const ProblemFacts &facts = tile.facts;
  ImplicitLocOpBuilder &b = tile.b;
  auto map =
      MapElementsOp::create(b, type, BroadcastOp::create(b, type, weight),
                            tile.row, emitFirstColumn(tile, columns));
  OpBuilder::InsertionGuard guard(b);
  auto [element, row, index] = openElements(tile, map);
  // Elements beyond the end, which nobody stores, must not be read there.
  auto limit = [&](Value index, Value end) -> Value {
    return arith::MinSIOp::create(
        b, index, arith::SubIOp::create(b, end, context.i32(1)));
  };
  Value position = limit(row, tile.getRows());
  Value column = limit(index, context.i32(int32_t(facts.valueDim)));
  auto [head, query] = emitHeadAndQuery(tile, position);
  // Packed rows count from the first one of all.
  Value place = context.widen(query);
  if (tile.queryStart)
    place = arith::AddIOp::create(b, place, tile.queryStart);
  Value offset = context.widen(column);
  auto add = [&](Value index, unsigned dim) {
    Value step =
        arith::MulIOp::create(b, index, context.getStride("init_o", dim));
    offset = arith::AddIOp::create(b, offset, step);
  };
  if (!tile.queryStart)
    add(context.widen(tile.at.batch), 0);
  add(context.widen(head), 1);
  add(place, 2);
  Value value = context.loadElement("init_o", offset);
  if (!facts.initO.elementType.isF32())
    value = arith::ExtFOp::create(b, b.getF32Type(), value);
  // What is not there may be anything.
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  Value isThere =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UGE, element, zero);
  value = arith::SelectOp::create(b, isThere, value, zero);
  YieldOp::create(b, arith::MulFOp::create(b, value, element).getResult());
  return map.getResult();
}
