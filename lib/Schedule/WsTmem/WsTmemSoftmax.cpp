//===- WsTmemSoftmax.cpp - The softmaxes of ws_tmem -----------------------===//

#include "../Tma/RingFacts.h"
#include "WsTmemEmitter.h"

using namespace mlir;
using namespace mlir::attn;

/// Columns of results that are rescaled at a time, so that they take few
/// registers beside a block's scores.
static constexpr int64_t kRescaledColumns = 32;

//===----------------------------------------------------------------------===//
// Tensor memory
//===----------------------------------------------------------------------===//

Value WsTmemEmitter::emitColumns(Value buffer, int64_t first, int64_t columns) {
  auto type = cast<BufferType>(buffer.getType());
  if (type.getShape()[1] == columns)
    return buffer;
  return TmemSliceOp::create(
      b, tensorType({kTmemRows, columns}, type.getElementType()), buffer,
      first);
}

Value WsTmemEmitter::emitTensorLoad(Value buffer, int64_t first,
                                    int64_t columns) {
  MLIRContext *mlir = b.getContext();
  // A thread has a whole row.
  auto layout = TmemRegsLayoutAttr::get(mlir, TmemShape::S32x32b, {4, 1});
  auto inFlight =
      InFlightType::get(mlir, {kTmemRows, columns}, b.getF32Type(), layout);
  auto load = TmemLoadOp::create(b, inFlight, /*row_values=*/Type(),
                                 emitColumns(buffer, first, columns),
                                 /*reduce=*/ReduceKindAttr());
  return TmemWaitOp::create(b, TypeRange{f32Tile({kTmemRows, columns})},
                            ValueRange{load.getResult()})
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// A block
//===----------------------------------------------------------------------===//

void WsTmemEmitter::emitRescale(const TensorTile &tile, Value factor,
                                Value key) {
  RankedTensorType rows = f32Tile({kTmemRows});
  Value changed = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, factor,
                                        splat(rows, 1));
  auto path = RareOp::create(b, TypeRange(), changed, ValueRange(),
                             /*each_warpgroup=*/false,
                             /*barrier=*/IntegerAttr(), /*leave_loop=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&path.getBody());
  auto end = YieldOp::create(b, ValueRange());
  b.setInsertionPoint(end);
  // Nothing is there before the first block.
  Value lastKey = arith::MulIOp::create(
      b, arith::SubIOp::create(b, bounds.end, context.i32(1)),
      context.i32(plan.getBlockN()));
  Value some = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, key, lastKey);
  auto branch = scf::IfOp::create(b, some, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  int64_t columns = facts.valueDim;
  for (int64_t first = 0; first < columns; first += kRescaledColumns) {
    int64_t count = std::min(kRescaledColumns, columns - first);
    Value part = emitTensorLoad(tile.results, first, count);
    Value spread = BroadcastOp::create(b, part.getType(), factor);
    TmemStoreOp::create(b, arith::MulFOp::create(b, part, spread),
                        emitColumns(tile.results, first, count));
  }
}

LogicalResult WsTmemEmitter::emitSoftmaxBlock(int64_t number, Value scale,
                                              Value key, ValueRange carried) {
  const TensorTile &tile = tiles[number];
  auto slot =
      ChannelAcquireOp::create(b, tile.channel, carried[2], kSoftmaxes[number]);
  Value scores = emitTensorLoad(tile.scores, 0, plan.getBlockN());
  if (failed(emitScores(b, key, scores)))
    return failure();
  auto softmax =
      OnlineSoftmaxOp::create(b, scores, carried[0], carried[1],
                              /*o=*/Value(), scale, plan.getSoftmax());
  softmax.setPolynomial(plan.getPolynomial());
  emitRescale(tile, softmax.getFactor(), key);
  Value p = arith::TruncFOp::create(
      b, tileType({kTmemRows, plan.getBlockN()}, facts.elementType),
      softmax.getP());
  TmemStoreOp::create(b, p, tile.probabilities);
  ChannelReleaseOp::create(b, tile.channel, slot.getToken(),
                           kSoftmaxes[number]);
  Value next = CursorAdvanceOp::create(b, carried[2], tile.channel);
  YieldOp::create(b, ValueRange{softmax.getNewM(), softmax.getNewL(), next});
  return success();
}

//===----------------------------------------------------------------------===//
// A tile
//===----------------------------------------------------------------------===//

void WsTmemEmitter::widenBounds() {
  auto clamp = [&](Value x, Value least, Value most) -> Value {
    return arith::MinSIOp::create(b, arith::MaxSIOp::create(b, x, least), most);
  };
  // Without a band all tiles have the same bounds.
  if (!bounds.lower && !bounds.upper) {
    bounds = emitBlockBounds(context, row, queries, keys, kTmemRows,
                             plan.getBlockN());
    return;
  }
  bounds.begin = walk.begin;
  bounds.end = walk.end;
  bounds.fullEnd = clamp(bounds.fullEnd, bounds.begin, bounds.end);
  bounds.fullBegin = clamp(bounds.fullBegin, bounds.begin, bounds.fullEnd);
}

KVLoopOp WsTmemEmitter::emitSoftmaxLoop(int64_t number, Value cursor) {
  Value scale = emitExponentScale();
  Value m = emitInitialState(plan.getSoftmax() == SoftmaxPolicy::Optimistic).m;
  // A thread adds up its row by itself.
  auto sums = RankedTensorType::get(
      {kTmemRows, 1}, b.getF32Type(),
      cast<RankedTensorType>(getPartialSumsType(b.getContext(), kTmemRows))
          .getEncoding());
  bool isWhole = true;
  auto body = [&](OpBuilder &builder, Location, Value key, ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(builder.getInsertionBlock());
    isWhole = succeeded(emitSoftmaxBlock(number, scale, key, carried));
  };
  auto loop = KVLoopOp::create(b, bounds.begin, bounds.fullBegin,
                               bounds.fullEnd, bounds.end, plan.getBlockN(),
                               /*stages=*/1,
                               ValueRange{m, splat(sums, 0), cursor}, body);
  return isWhole ? loop : KVLoopOp();
}

std::pair<Value, Value> WsTmemEmitter::emitTileResults(int64_t number,
                                                       Value cursor) {
  const TensorTile &tile = tiles[number];
  RankedTensorType type = f32Tile({kTmemRows, facts.valueDim});
  Value some = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, bounds.begin,
                                     bounds.end);
  auto branch = scf::IfOp::create(b, TypeRange{type, cursor.getType()}, some,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  auto slot =
      ChannelAcquireOp::create(b, tile.channel, cursor, kSoftmaxes[number]);
  Value results = emitTensorLoad(tile.results, 0, facts.valueDim);
  ChannelReleaseOp::create(b, tile.channel, slot.getToken(),
                           kSoftmaxes[number]);
  Value next = CursorAdvanceOp::create(b, cursor, tile.channel);
  scf::YieldOp::create(b, ValueRange{results, next});
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, ValueRange{splat(type, 0), cursor});
  return {branch.getResult(0), branch.getResult(1)};
}

FailureOr<SmallVector<Value>> WsTmemEmitter::emitSoftmaxTile(int64_t number,
                                                             Value cursor) {
  widenBounds();
  KVLoopOp loop = emitSoftmaxLoop(number, cursor);
  if (!loop)
    return failure();
  auto [results, next] = emitTileResults(number, loop.getResult(2));
  Value oView = emitResultView("o"), lseView;
  if (facts.lse)
    lseView = emitResultView("lse");
  RunningState state(loop.getResult(0), loop.getResult(1), results);
  emitResults(emitFinalState(state), oView, lseView, /*scratch=*/Value(),
              plan.getEpilogue());
  return SmallVector<Value>{next};
}

LogicalResult WsTmemEmitter::emitSoftmax(int64_t number) {
  rank = context.i32(number);
  return toResult(emitTileLoop(
      [&]() -> SmallVector<Value> {
        return {CursorStartOp::create(b, tiles[number].channel,
                                      kSoftmaxes[number])};
      },
      [&](ValueRange cursors) {
        return emitSoftmaxTile(number, cursors.front());
      }));
}
