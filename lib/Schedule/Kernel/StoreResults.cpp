//===- StoreResults.cpp - How a tile is finished and stored ---------------===//

#include "attn/Schedule/Kernel/StoreResults.h"
#include "attn/Schedule/Kernel/Scores.h"

using namespace mlir;
using namespace mlir::attn;

Value attn::emitOutMod(const AttentionTile &tile, Value o, Region &outMod,
                       const ResultColumns &columns) {
  const ProblemFacts &facts = tile.facts;
  ImplicitLocOpBuilder &b = tile.b;
  auto type = cast<RankedTensorType>(o.getType());
  auto map = MapElementsOp::create(b, type, o, tile.row,
                                   emitFirstColumn(tile, columns));
  OpBuilder::InsertionGuard guard(b);
  auto [result, row, column] = openElements(tile, map);
  auto [head, query] = emitHeadAndQuery(tile, row);
  // Rows and columns that do not exist have results too, which are dropped:
  // their reads must stay inside of what others read.
  if (!facts.captures.empty()) {
    Value one = tile.context.i32(1);
    query = arith::MinSIOp::create(b, query,
                                   arith::SubIOp::create(b, tile.queries, one));
    column =
        arith::MinSIOp::create(b, column, tile.context.i32(facts.valueDim - 1));
  }
  Value changed = tile.context.inlineRegion(
      b, outMod, {result, tile.at.batch, head, query, column});
  YieldOp::create(b, changed);
  return map.getResult();
}

void attn::emitAmax(const AttentionTile &tile, Value o, Value rows) {
  GlobalMaxOp::create(tile.b, o, rows, tile.row,
                      tile.context.getPointer("amax"));
}

Value attn::emitQuotient(const AttentionTile &tile, Value o, Value inverse,
                         const ResultColumns &columns, Value initWeight,
                         bool rounds) {
  ImplicitLocOpBuilder &b = tile.b;
  auto type = cast<RankedTensorType>(o.getType());
  Value quotient =
      arith::MulFOp::create(b, o, BroadcastOp::create(b, type, inverse));
  if (initWeight)
    quotient = arith::AddFOp::create(
        b, quotient, emitInitTerm(tile, type, initWeight, columns));
  if (Region *outMod = AttentionOp(tile.facts.op).getOutMod())
    quotient = emitOutMod(tile, quotient, *outMod, columns);
  if (tile.facts.amax)
    emitAmax(tile, quotient, emitResultView(tile, "o", columns));
  if (tile.facts.usesResults()) {
    double factor = tile.facts.getResultFactor();
    if (factor != 1 && tile.facts.getGroupFactor() == 1)
      quotient = arith::MulFOp::create(b, quotient, tile.splat(type, factor));
  }
  if (tile.facts.outType.isF32() || !rounds)
    return quotient;
  return arith::TruncFOp::create(b, type.clone(tile.facts.outType), quotient);
}

/// Makes the views of rows' numbers by `emitView`.
static LogViews
makeLogViews(const AttentionTile &tile,
             llvm::function_ref<Value(const ResultColumns &column)> emitView) {
  ResultColumns column;
  if (!tile.facts.rowState)
    return {emitView(column), Value()};
  column.isOneColumn = true;
  Value maxima = emitView(column);
  column.first = 1;
  return {maxima, emitView(column)};
}

LogViews attn::emitLogViews(const AttentionTile &tile) {
  if (!tile.facts.lse)
    return {};
  return makeLogViews(tile, [&](const ResultColumns &column) {
    return emitResultView(tile, "lse", column);
  });
}

LogViews attn::emitMergedLogViews(const AttentionTile &tile) {
  if (!tile.facts.mergedLse)
    return {};
  return makeLogViews(tile, [&](const ResultColumns &column) {
    return emitMergedView(tile, "lse", column);
  });
}

void attn::emitLSE(const AttentionTile &tile, Value m, Value l,
                   const LogViews &views) {
  ImplicitLocOpBuilder &b = tile.b;
  if (!views.sums) {
    Value natural = SoftmaxLSEOp::create(b, m, l);
    GlobalStoreOp::create(b, natural, views.logs, tile.row);
    return;
  }
  auto rows = cast<RankedTensorType>(m.getType());
  // The running maximum of a row whose keys are all masked is a finite number.
  Value isEmpty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, l,
                                        tile.splat(rows, 0));
  Value maxima = arith::SelectOp::create(
      b, isEmpty, tile.splat(rows, -std::numeric_limits<double>::infinity()),
      m);
  Value natural =
      arith::MulFOp::create(b, maxima, tile.splat(rows, llvm::numbers::ln2));
  GlobalStoreOp::create(b, natural, views.logs, tile.row);
  GlobalStoreOp::create(b, l, views.sums, tile.row);
}

void attn::emitResults(const AttentionTile &tile, const RunningState &state,
                       Value oView, const LogViews &logViews, Value scratch,
                       EpilogueKind epilogue, const ResultMap &map,
                       const ResultColumns &columns, int64_t owners) {
  const ProblemFacts &facts = tile.facts;
  Value divisor = state.getDivisor();
  Value weight = emitInitWeight(tile, divisor, state.initShare);
  // The logits' branch must not part loads of other results from their uses.
  if (logViews && weight)
    emitLSE(tile, state.m, state.l, logViews);
  Value o, inverse = emitInverse(tile, divisor);
  if (facts.hasPartialScales())
    o = emitScaledRows(tile, state.o, inverse, weight).front();
  else
    o = emitQuotient(tile, state.o, inverse, columns, weight,
                     /*rounds=*/!facts.oScales);
  if (logViews && !weight)
    emitLSE(tile, state.m, state.l, logViews);
  if (facts.hasResultScales())
    return emitScaledGroups(tile, o, owners, epilogue);
  StoreResultOp::create(tile.b, o, oView, tile.row, scratch, map.map,
                        map.coordinates, epilogue);
}
