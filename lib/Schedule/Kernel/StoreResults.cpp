//===- StoreResults.cpp - How a tile is finished and stored ---------------===//

#include "attn/Schedule/Kernel/StoreResults.h"

using namespace mlir;
using namespace mlir::attn;

Value attn::emitQuotient(const AttentionTile &tile, Value o, Value inverse,
                         Value initWeight, bool rounds) {
  ImplicitLocOpBuilder &b = tile.b;
  auto type = cast<RankedTensorType>(o.getType());
  Value quotient =
      arith::MulFOp::create(b, o, BroadcastOp::create(b, type, inverse));
  if (initWeight)
    quotient = arith::AddFOp::create(b, quotient,
                                     emitInitTerm(tile, type, initWeight));
  if (tile.facts.outType.isF32() || !rounds)
    return quotient;
  return arith::TruncFOp::create(b, type.clone(tile.facts.outType), quotient);
}

void attn::emitLSE(const AttentionTile &tile, Value m, Value l, Value view) {
  Value natural = SoftmaxLSEOp::create(tile.b, m, l);
  GlobalStoreOp::create(tile.b, natural, view, tile.row);
}

void attn::emitResults(const AttentionTile &tile, const RunningState &state,
                       Value oView, Value lseView, Value scratch,
                       EpilogueKind epilogue, const ResultMap &map) {
  const ProblemFacts &facts = tile.facts;
  Value divisor = state.getDivisor();
  Value weight = emitInitWeight(tile, divisor, state.initShare);
  // The logits' branch must not part loads of other results from their uses.
  if (lseView && weight)
    emitLSE(tile, state.m, state.l, lseView);
  Value o, inverse = emitInverse(tile, divisor);
  if (facts.hasPartialScales())
    o = emitScaledRows(tile, state.o, inverse, weight).front();
  else
    o = emitQuotient(tile, state.o, inverse, weight,
                     /*rounds=*/!facts.oScales);
  if (lseView && !weight)
    emitLSE(tile, state.m, state.l, lseView);
  if (facts.hasResultScales())
    return emitScaledGroups(tile, o, epilogue);
  StoreResultOp::create(tile.b, o, oView, tile.row, scratch, map.map,
                        map.coordinates, epilogue);
}
