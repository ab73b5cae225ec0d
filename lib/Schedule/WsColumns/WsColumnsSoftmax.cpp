//===- WsColumnsSoftmax.cpp - The two warpgroups of ws_columns ------------===//

#include "../Wgmma/WgmmaFacts.h"
#include "WsColumnsEmitter.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

std::pair<Value, Value>
WsColumnsEmitter::emitDepthSum(Value part, Value &toSend, Value &toAdd) {
  auto to = ChannelAcquireOp::create(b, sChannel, toSend, kSender);
  LocalSendOp::create(b, part, sent, to.getToken(), /*barriers=*/Value(),
                      /*which=*/Value());
  ChannelReleaseOp::create(b, sChannel, to.getToken(), kSender);
  auto from = ChannelAcquireOp::create(b, sChannel, toAdd, kAdder);
  Value other = LocalLoadOp::create(b, part.getType(), sent);
  toSend = advanceOn(toSend, sChannel);
  toAdd = advanceOn(toAdd, sChannel);
  // Of two parts the sum is the same in either order.
  return {arith::AddFOp::create(b, part, other), from.getToken()};
}

SmallVector<Value> WsColumnsEmitter::emitValueProducts(const Ring &ring,
                                                       StringRef role, Value p,
                                                       ValueRange results,
                                                       Value &cursor) {
  auto [products, last] = startValueProducts(ring, role, p, results, cursor);
  return awaitProducts(products, last, role);
}

//===----------------------------------------------------------------------===//
// The warpgroup of the softmax
//===----------------------------------------------------------------------===//

Value WsColumnsEmitter::handOver(Value p, Value factor, Value cursor) {
  auto slot = ChannelAcquireOp::create(b, pChannel, cursor, kSoftmax);
  LocalStoreOp::create(b, p, probabilities);
  LocalStoreOp::create(b, factor, factors);
  ChannelReleaseOp::create(b, pChannel, slot.getToken(), kSoftmax);
  return advanceOn(cursor, pChannel);
}

/// What the loop of the softmax carries in front of its accumulators: m, l, and
/// the cursors of k, v, p, and of both roles of s if there is such a channel.
static unsigned countCarried(bool exchanges) { return exchanges ? 7 : 5; }

LogicalResult WsColumnsEmitter::emitSoftmaxBlock(Value scale, Value key,
                                                 ValueRange carried) {
  Value kCursor = carried[2], vCursor = carried[3];
  // Zeros behind the last column are behind the same one in all CTAs only where
  // these do not divide the depth.
  int64_t depth =
      isDepthDivided() ? keySlices * plan.getSlice() : getKeyDepth(facts);
  Value s = emitScoreProduct(k, kSoftmax, queryTiles,
                             f32Tile({kColumnsRows, plan.getBlockN()}), depth,
                             kCursor);
  Value toSend, toAdd, sent;
  if (isDepthDivided()) {
    toSend = carried[5];
    toAdd = carried[6];
    std::tie(s, sent) = emitDepthSum(s, toSend, toAdd);
  }
  if (failed(emitScores(b, key, s)))
    return failure();
  auto softmax =
      OnlineSoftmaxOp::create(b, s, carried[0], carried[1],
                              /*o=*/Value(), scale, plan.getSoftmax());
  Value p = arith::TruncFOp::create(
      b, tileType({kColumnsRows, plan.getBlockN()}, facts.elementType),
      softmax.getP());
  Value pCursor = handOver(p, softmax.getFactor(), carried[4]);
  // What was loaded is used: probabilities are stored.
  if (sent)
    ChannelReleaseOp::create(b, sChannel, sent, kAdder);
  SmallVector<Value> results =
      emitRareRescale(b, softmax.getFactor(),
                      carried.drop_front(countCarried(isDepthDivided())));
  results = emitValueProducts(v, kSoftmax, p, results, vCursor);
  SmallVector<Value> next = {softmax.getNewM(), softmax.getNewL(), kCursor,
                             vCursor, pCursor};
  if (isDepthDivided())
    llvm::append_range(next, ArrayRef{toSend, toAdd});
  llvm::append_range(next, results);
  YieldOp::create(b, next);
  return success();
}

KVLoopOp WsColumnsEmitter::emitSoftmaxLoop(Value scale, ValueRange cursors) {
  RunningState state = emitInitialState(
      /*bets=*/plan.getSoftmax() == SoftmaxPolicy::Optimistic);
  SmallVector<Value> inits = {state.m, state.l};
  llvm::append_range(inits, cursors);
  llvm::append_range(inits, emitInitialResults(own));
  bool isWhole = true;
  auto body = [&](OpBuilder &builder, Location, Value key, ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(builder.getInsertionBlock());
    isWhole = succeeded(emitSoftmaxBlock(scale, key, carried));
  };
  auto loop = KVLoopOp::create(b, bounds.begin, bounds.fullBegin,
                               bounds.fullEnd, bounds.end, plan.getBlockN(),
                               /*stages=*/1, inits, body);
  return isWhole ? loop : KVLoopOp();
}

void WsColumnsEmitter::emitOwnLSE(const FinalRows &rows) {
  OpBuilder::InsertionGuard guard(b);
  if (isDepthDivided()) {
    Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rank,
                                          context.i32(0));
    auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  emitLSE(rows.m, rows.l, emitResultView("lse"));
}

FailureOr<SmallVector<Value>>
WsColumnsEmitter::emitSoftmaxTile(ValueRange cursors) {
  Value scale = emitExponentScale();
  auto queries = ChannelAcquireOp::create(b, q.channel, cursors[0], kSoftmax);
  queryTiles.clear();
  for (int64_t i = 0; i < keySlices; ++i)
    queryTiles.push_back(SlotOp::create(b, q.slotType, q.buffer, context.i32(i),
                                        /*distance=*/IntegerAttr()));
  Value kCursor = cursors[1], vCursor = cursors[2];
  SmallVector<SkippedRing> rings = {{k, keySlices, kCursor},
                                    {v, own.count, vCursor}};
  emitSkip(walk.skippedBehind, kSoftmax, rings);
  SmallVector<Value> inits = {kCursor, vCursor, cursors[3]};
  llvm::append_range(inits, cursors.drop_front(5));
  KVLoopOp loop = emitSoftmaxLoop(scale, inits);
  if (!loop)
    return failure();
  release(q, queries.getToken(), kSoftmax);
  kCursor = loop.getResult(2);
  vCursor = loop.getResult(3);
  emitSkip(walk.skippedInFront, kSoftmax, rings);

  FinalRows rows = emitFinalRows(loop.getResult(0), loop.getResult(1));
  Value factor = emitRowFactor(rows);
  auto slot = ChannelAcquireOp::create(b, scaleChannel, cursors[4], kSoftmax);
  LocalStoreOp::create(b, factor, scales);
  ChannelReleaseOp::create(b, scaleChannel, slot.getToken(), kSoftmax);
  if (facts.lse)
    emitOwnLSE(rows);
  unsigned carried = countCarried(isDepthDivided());
  storeResults(own, ValueRange(loop.getResults()).drop_front(carried), factor);
  SmallVector<Value> next = {advance(cursors[0], q), kCursor, vCursor,
                             loop.getResult(4),
                             advanceOn(cursors[4], scaleChannel)};
  llvm::append_range(next, loop.getResults().slice(5, carried - 5));
  return next;
}

LogicalResult WsColumnsEmitter::emitSoftmax() {
  TileLoopOp loop = emitTileLoop(
      [&]() -> SmallVector<Value> {
        SmallVector<Value> cursors = {
            start(q.channel, kSoftmax), start(k.channel, kSoftmax),
            start(v.channel, kSoftmax), start(pChannel, kSoftmax),
            start(scaleChannel, kSoftmax)};
        if (isDepthDivided())
          for (StringRef role : {kSender.name, kAdder.name})
            cursors.push_back(start(sChannel, role));
        return cursors;
      },
      [&](ValueRange cursors) { return emitSoftmaxTile(cursors); });
  return success(static_cast<bool>(loop));
}

//===----------------------------------------------------------------------===//
// The warpgroup of the other columns
//===----------------------------------------------------------------------===//

/// What its loop carries in front of its accumulators: the cursors of w and p.
static constexpr unsigned kColumnsCarried = 2;

void WsColumnsEmitter::emitColumnsBlock(ValueRange carried) {
  auto slot = ChannelAcquireOp::create(b, pChannel, carried[1], kColumns);
  Value factor = LocalLoadOp::create(b, f32Tile({kColumnsRows}), factors);
  Value p = LocalLoadOp::create(
      b, tileType({kColumnsRows, plan.getBlockN()}, facts.elementType),
      probabilities);
  ChannelReleaseOp::create(b, pChannel, slot.getToken(), kColumns);
  SmallVector<Value> results =
      emitRareRescale(b, factor, carried.drop_front(kColumnsCarried));
  Value wCursor = carried[0];
  results = emitValueProducts(w, kColumns, p, results, wCursor);
  SmallVector<Value> next = {wCursor, advanceOn(carried[1], pChannel)};
  llvm::append_range(next, results);
  scf::YieldOp::create(b, next);
}

SmallVector<Value> WsColumnsEmitter::emitColumnsTile(ValueRange cursors) {
  Value wCursor = cursors[0];
  SkippedRing ring = {w, others.count, wCursor};
  emitSkip(walk.skippedBehind, kColumns, ring);
  SmallVector<Value> inits = {wCursor, cursors[1]};
  llvm::append_range(inits, emitInitialResults(others));
  auto body = [&](OpBuilder &builder, Location, Value, ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(builder.getInsertionBlock());
    emitColumnsBlock(carried);
  };
  Value trips = b.createOrFold<arith::SubIOp>(bounds.end, bounds.begin);
  auto loop =
      scf::ForOp::create(b, context.i32(0), trips, context.i32(1), inits, body);
  wCursor = loop.getResult(0);
  emitSkip(walk.skippedInFront, kColumns, ring);
  auto slot = ChannelAcquireOp::create(b, scaleChannel, cursors[2], kColumns);
  Value factor = LocalLoadOp::create(b, f32Tile({kColumnsRows}), scales);
  ChannelReleaseOp::create(b, scaleChannel, slot.getToken(), kColumns);
  storeResults(others,
               ValueRange(loop.getResults()).drop_front(kColumnsCarried),
               factor);
  return {wCursor, loop.getResult(1), advanceOn(cursors[2], scaleChannel)};
}

LogicalResult WsColumnsEmitter::emitColumns() {
  TileLoopOp loop = emitTileLoop(
      [&]() -> SmallVector<Value> {
        return {start(w.channel, kColumns), start(pChannel, kColumns),
                start(scaleChannel, kColumns)};
      },
      [&](ValueRange cursors) -> FailureOr<SmallVector<Value>> {
        return emitColumnsTile(cursors);
      });
  return success(static_cast<bool>(loop));
}
