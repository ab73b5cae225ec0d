//===- WsPairRows.cpp - The warpgroups of ws_pair that have rows ----------===//

#include "../Wgmma/WgmmaFacts.h"
#include "WsPairEmitter.h"

using namespace mlir;
using namespace mlir::attn;

/// What the loop over blocks carries in front of the results.
static constexpr unsigned kCarried = 5;

WsPairEmitter::BlockState::BlockState(ValueRange carried)
    : m(carried[0]), l(carried[1]), keys(carried[2]), toSend(carried[3]),
      toRead(carried[4]), results(carried.drop_front(kCarried)) {}

SmallVector<Value> WsPairEmitter::BlockState::list() const {
  SmallVector<Value> all = {m, l, keys, toSend, toRead};
  llvm::append_range(all, results);
  return all;
}

//===----------------------------------------------------------------------===//
// A block
//===----------------------------------------------------------------------===//

Value WsPairEmitter::send(Value p, Value m, Value cursor) {
  const Warpgroup &mine = warpgroups[number];
  auto slot =
      ChannelAcquireOp::create(b, mine.pChannel, cursor, kPairSenders[number]);
  LocalSendOp::create(b, p, mine.probabilities, slot.getToken(),
                      /*barriers=*/Value(), /*which=*/Value());
  LocalSendOp::create(b, m, mine.maxima, slot.getToken(), /*barriers=*/Value(),
                      /*which=*/Value());
  ChannelReleaseOp::create(b, mine.pChannel, slot.getToken(),
                           kPairSenders[number]);
  return advanceOn(cursor, mine.pChannel);
}

Value WsPairEmitter::emitCommonMaximum(Value otherM, Value otherP,
                                       BlockState &state) {
  SmallVector<Value> defaults = {state.m, state.l, otherP};
  llvm::append_range(defaults, state.results);
  Value differ =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, state.m, otherM);
  auto path = RareOp::create(b, ValueRange(defaults).getTypes(), differ,
                             defaults, /*each_warpgroup=*/false,
                             /*barrier=*/IntegerAttr(), /*leave_loop=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&path.getBody());
    Value m = arith::MaximumFOp::create(b, state.m, otherM);
    auto factorOf = [&](Value from) -> Value {
      return Exp2Op::create(b, m.getType(), arith::SubFOp::create(b, from, m));
    };
    auto rescale = [&](Value tile, Value factor) -> Value {
      auto type = cast<RankedTensorType>(tile.getType());
      Value spread = BroadcastOp::create(b, type.clone(b.getF32Type()), factor);
      if (!type.getElementType().isF32())
        spread = arith::TruncFOp::create(b, type, spread);
      return arith::MulFOp::create(b, tile, spread);
    };
    Value own = factorOf(state.m), other = factorOf(otherM);
    SmallVector<Value> changed = {m, rescale(state.l, own),
                                  rescale(otherP, other)};
    for (Value result : state.results)
      changed.push_back(rescale(result, own));
    YieldOp::create(b, changed);
  }
  state.m = path.getResult(0);
  state.l = path.getResult(1);
  state.results = llvm::to_vector(ValueRange(path.getResults()).drop_front(3));
  return path.getResult(2);
}

void WsPairEmitter::emitProducts(Value p, BlockState &state) {
  const Warpgroup &mine = warpgroups[number];
  auto [products, last] =
      startValueProducts(v, kPairUsers, p, state.results, state.keys);
  // What the other CTA sends is awaited under these products.
  auto slot = ChannelAcquireOp::create(b, mine.pChannel, state.toRead,
                                       kPairReaders[number]);
  Value otherP = LocalLoadOp::create(b, getScoreType(facts.elementType),
                                     mine.probabilities);
  Value otherM = LocalLoadOp::create(b, f32Tile({kPairRows}), mine.maxima);
  ChannelReleaseOp::create(b, mine.pChannel, slot.getToken(),
                           kPairReaders[number]);
  state.toRead = advanceOn(state.toRead, mine.pChannel);
  state.results = awaitProducts(products, last, kPairUsers);
  otherP = emitCommonMaximum(otherM, otherP, state);
  std::tie(products, last) =
      startValueProducts(v, kPairUsers, otherP, state.results, state.keys);
  state.results = awaitProducts(products, last, kPairUsers);
}

LogicalResult WsPairEmitter::emitBlock(Value scale, Value key,
                                       ValueRange carried) {
  BlockState state(carried);
  Value s =
      emitScoreProduct(k, kPairUsers, queryTiles, getScoreType(b.getF32Type()),
                       getKeyDepth(facts), state.keys);
  if (failed(emitScores(b, arith::AddIOp::create(b, key, ownKey), s)))
    return failure();
  auto softmax = OnlineSoftmaxOp::create(b, s, state.m, state.l, /*o=*/Value(),
                                         scale, plan.getSoftmax());
  Value p = arith::TruncFOp::create(b, getScoreType(facts.elementType),
                                    softmax.getP());
  state.m = softmax.getNewM();
  state.l = softmax.getNewL();
  state.results = emitRareRescale(b, softmax.getFactor(), state.results);
  state.toSend = send(p, state.m, state.toSend);
  emitProducts(p, state);
  YieldOp::create(b, state.list());
  return success();
}

//===----------------------------------------------------------------------===//
// A tile
//===----------------------------------------------------------------------===//

Value WsPairEmitter::emitSum(Value l, Value &toSend, Value &toRead) {
  const Warpgroup &mine = warpgroups[number];
  auto to =
      ChannelAcquireOp::create(b, mine.lChannel, toSend, kPairSenders[number]);
  LocalSendOp::create(b, l, mine.sums, to.getToken(), /*barriers=*/Value(),
                      /*which=*/Value());
  ChannelReleaseOp::create(b, mine.lChannel, to.getToken(),
                           kPairSenders[number]);
  auto from =
      ChannelAcquireOp::create(b, mine.lChannel, toRead, kPairReaders[number]);
  Value other = LocalLoadOp::create(b, l.getType(), mine.sums);
  ChannelReleaseOp::create(b, mine.lChannel, from.getToken(),
                           kPairReaders[number]);
  toSend = advanceOn(toSend, mine.lChannel);
  toRead = advanceOn(toRead, mine.lChannel);
  // Of two parts the sum is the same in either order.
  return arith::AddFOp::create(b, l, other);
}

FailureOr<SmallVector<Value>> WsPairEmitter::emitTile(ValueRange cursors) {
  const Ring &q = warpgroups[number].q;
  Value scale = emitExponentScale();
  auto queries =
      ChannelAcquireOp::create(b, q.channel, cursors[0], kPairRoles[number]);
  queryTiles.clear();
  for (int64_t i = 0; i < keySlices; ++i)
    queryTiles.push_back(SlotOp::create(b, q.slotType, q.buffer, context.i32(i),
                                        /*distance=*/IntegerAttr()));
  Value keys = cursors[1];
  SkippedRing skipped = {k, keySlices + kPairCTAs * valueSlices, keys};
  emitSkip(walk.skippedBehind, kPairUsers, skipped);
  RunningState running = emitInitialState(
      /*bets=*/plan.getSoftmax() == SoftmaxPolicy::Optimistic);
  BlockState init;
  init.m = running.m;
  init.l = running.l;
  init.keys = keys;
  init.toSend = cursors[2];
  init.toRead = cursors[3];
  for (int64_t i = 0; i < valueSlices; ++i)
    init.results.push_back(splat(f32Tile({kPairRows, getResultColumns(i)}), 0));
  bool isWhole = true;
  auto body = [&](OpBuilder &builder, Location, Value key, ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(builder.getInsertionBlock());
    isWhole = succeeded(emitBlock(scale, key, carried));
  };
  auto loop = KVLoopOp::create(b, bounds.begin, bounds.fullBegin,
                               bounds.fullEnd, bounds.end, plan.getBlockN(),
                               /*stages=*/1, init.list(), body);
  if (!isWhole)
    return failure();
  release(q, queries.getToken(), kPairRoles[number]);
  BlockState last(loop.getResults());
  keys = last.keys;
  emitSkip(walk.skippedInFront, kPairUsers, skipped);

  Value toSend = cursors[4], toRead = cursors[5];
  FinalRows rows = emitFinalRows(last.m, emitSum(last.l, toSend, toRead));
  Value factor = emitRowFactor(rows);
  if (facts.lse)
    emitOwnLSE(rows);
  storeResults(last.results, factor);
  return SmallVector<Value>{
      advance(cursors[0], q), keys, last.toSend, last.toRead, toSend, toRead};
}

LogicalResult WsPairEmitter::emitRows(int64_t partition) {
  number = partition;
  rank = context.i32(number);
  const Warpgroup &mine = warpgroups[number];
  TileLoopOp loop = emitTileLoop(
      [&]() -> SmallVector<Value> {
        SmallVector<Value> cursors = {start(mine.q.channel, kPairRoles[number]),
                                      start(k.channel, kPairUsers)};
        for (Value channel : {mine.pChannel, mine.lChannel}) {
          cursors.push_back(start(channel, kPairSenders[number]));
          cursors.push_back(start(channel, kPairReaders[number]));
        }
        return cursors;
      },
      [&](ValueRange cursors) { return emitTile(cursors); });
  return success(static_cast<bool>(loop));
}
