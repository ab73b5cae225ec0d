//===- WsPairRows.cpp - The warpgroups of ws_pair that have rows ----------===//

#include "../Wgmma/WgmmaFacts.h"
#include "WsPairEmitter.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;

/// What the loop over blocks carries in front of the results.
static constexpr unsigned kCarried = 6;

WsPairEmitter::BlockState::BlockState(ValueRange carried)
    : m(carried[0]), l(carried[1]), p(carried[2]), keys(carried[3]),
      toSend(carried[4]), toRead(carried[5]),
      results(carried.drop_front(kCarried)) {}

SmallVector<Value> WsPairEmitter::BlockState::list() const {
  SmallVector<Value> all = {m, l, p, keys, toSend, toRead};
  llvm::append_range(all, results);
  return all;
}

//===----------------------------------------------------------------------===//
// What is sent, and what comes
//===----------------------------------------------------------------------===//

Value WsPairEmitter::acquirePart(Value channel, Value cursor, StringRef role) {
  return ChannelAcquireOp::create(b, channel, cursor, role,
                                  /*part=*/StringAttr(),
                                  /*each_warpgroup=*/true)
      .getToken();
}

FailureOr<Value> WsPairEmitter::emitSoftmax(Value scale, Value key, Value s,
                                            SoftmaxPolicy policy,
                                            BlockState &state) {
  if (failed(emitScores(b, arith::AddIOp::create(b, key, ownKey), s)))
    return failure();
  auto softmax = OnlineSoftmaxOp::create(b, s, state.m, state.l, /*o=*/Value(),
                                         scale, policy);
  state.m = softmax.getNewM();
  state.l = softmax.getNewL();
  state.p = arith::TruncFOp::create(b, getScoreType(facts.elementType),
                                    softmax.getP());
  Value slot = acquirePart(pChannel, state.toSend, kPairSender);
  auto sendTo = [&](Value tile, Value memory) {
    LocalSendOp::create(b, tile, memory, slot, /*barriers=*/Value(),
                        /*which=*/Value());
  };
  sendTo(state.p, probabilities);
  sendTo(state.m, maxima);
  ChannelReleaseOp::create(b, pChannel, slot, kPairSender);
  state.toSend = advanceOn(state.toSend, pChannel);
  return softmax.getFactor();
}

WsPairEmitter::Theirs WsPairEmitter::emitTheirs(BlockState &state) {
  Value slot = acquirePart(pChannel, state.toRead, kPairReader);
  Value p =
      LocalLoadOp::create(b, getScoreType(facts.elementType), probabilities);
  Value m = LocalLoadOp::create(b, f32Tile({kPairRows}), maxima);
  state.toRead = advanceOn(state.toRead, pChannel);

  SmallVector<Value> defaults = {state.m, state.l, p};
  llvm::append_range(defaults, state.results);
  Value differ =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, state.m, m);
  auto path = RareOp::create(b, ValueRange(defaults).getTypes(), differ,
                             defaults, /*each_warpgroup=*/false,
                             /*barrier=*/IntegerAttr(), /*leave_loop=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&path.getBody());
  Value larger = arith::MaximumFOp::create(b, state.m, m);
  auto factorOf = [&](Value from) -> Value {
    return Exp2Op::create(b, m.getType(),
                          arith::SubFOp::create(b, from, larger));
  };
  auto rescale = [&](Value tile, Value factor) -> Value {
    auto type = cast<RankedTensorType>(tile.getType());
    Value spread = BroadcastOp::create(b, type.clone(b.getF32Type()), factor);
    if (!type.getElementType().isF32())
      spread = arith::TruncFOp::create(b, type, spread);
    return arith::MulFOp::create(b, tile, spread);
  };
  Value own = factorOf(state.m);
  SmallVector<Value> changed = {larger, rescale(state.l, own),
                                rescale(p, factorOf(m))};
  for (Value result : state.results)
    changed.push_back(rescale(result, own));
  YieldOp::create(b, changed);
  state.m = path.getResult(0);
  state.l = path.getResult(1);
  state.results = llvm::to_vector(ValueRange(path.getResults()).drop_front(3));
  return {path.getResult(2), slot};
}

WsPairEmitter::Theirs WsPairEmitter::emitSum(Value l, Value &toSend,
                                             Value &toRead) {
  Value to = acquirePart(lChannel, toSend, kPairSender);
  LocalSendOp::create(b, l, sums, to, /*barriers=*/Value(),
                      /*which=*/Value());
  ChannelReleaseOp::create(b, lChannel, to, kPairSender);
  Value from = acquirePart(lChannel, toRead, kPairReader);
  Value other = LocalLoadOp::create(b, l.getType(), sums);
  toSend = advanceOn(toSend, lChannel);
  toRead = advanceOn(toRead, lChannel);
  // Of two parts the sum is the same in either order.
  return {arith::AddFOp::create(b, l, other), from};
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

WsPairEmitter::BlockState WsPairEmitter::emitIfAny(const BlockState &state,
                                                   StateBody emit) {
  Value trips = b.createOrFold<arith::SubIOp>(bounds.end, bounds.begin);
  Value any = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sgt, trips,
                                            context.i32(0));
  if (matchPattern(any, m_One()))
    return emit();
  auto branch = scf::IfOp::create(b, ValueRange(state.list()).getTypes(), any,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, emit().list());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, state.list());
  return BlockState(branch.getResults());
}

FailureOr<WsPairEmitter::BlockState>
WsPairEmitter::emitFirstBlock(Value scale, BlockState state) {
  Value s =
      emitScoreProduct(k, kPairUser, queryTiles, getScoreType(b.getF32Type()),
                       getKeyDepth(facts), state.keys);
  Value last = arith::SubIOp::create(b, bounds.end, context.i32(1));
  Value key = arith::MulIOp::create(b, last, context.i32(plan.getBlockN()));
  // No maximum to bet on.
  if (failed(emitSoftmax(scale, key, s, SoftmaxPolicy::Exact, state)))
    return failure();
  return state;
}

LogicalResult WsPairEmitter::emitBlock(Value scale, Value key,
                                       ValueRange carried) {
  BlockState state(carried);
  RankedTensorType type = getScoreType(b.getF32Type());
  SmallVector<Type> types =
      llvm::to_vector(ValueRange(state.results).getTypes());
  Value product, p = state.p, theirs;
  HeldSlot held;
  auto multiplyKeys = [&](int64_t i) {
    product = startScoreSlice(k, kPairUser, queryTiles[i], i, type,
                              getKeyDepth(facts), product, held, state.keys);
  };
  auto multiplyValues = [&](int64_t i) {
    if (i == valueSlices) {
      // The own values' products are complete behind the keys' that follow.
      auto wait = WgmmaWaitOp::create(b, types, state.results,
                                      /*pending=*/i < keySlices ? 1 : 0);
      state.results = llvm::to_vector(ValueRange(wait.getResults()));
      std::tie(p, theirs) = emitTheirs(state);
    }
    Value &result = state.results[i % valueSlices];
    result =
        startValueSlice(v, kPairUser, p, result,
                        getResultColumns(i % valueSlices), held, state.keys);
    // Only what a product reads has come.
    if (i == valueSlices)
      ChannelReleaseOp::create(b, pChannel, theirs, kPairReader);
  };
  forEachSlice(multiplyKeys, multiplyValues);
  bool endsWithKeys = keySlices > countValueSlots();
  Value s = WgmmaWaitOp::create(b, type, product,
                                /*pending=*/endsWithKeys ? 0 : 1)
                .getResult(0);
  FailureOr<Value> factor =
      emitSoftmax(scale, key, s, plan.getSoftmax(), state);
  if (failed(factor))
    return failure();
  auto wait = WgmmaWaitOp::create(b, types, state.results, /*pending=*/0);
  release(*held.ring, held.token, kPairUser);
  state.results = emitRareRescale(b, *factor, wait.getResults());
  YieldOp::create(b, state.list());
  return success();
}

WsPairEmitter::BlockState WsPairEmitter::emitLastBlock(BlockState state) {
  auto multiply = [&](Value p, Value theirs) {
    HeldSlot held;
    SmallVector<Value> products;
    for (auto [i, result] : llvm::enumerate(state.results)) {
      products.push_back(startValueSlice(
          v, kPairUser, p, result, getResultColumns(i), held, state.keys));
      if (theirs && i == 0)
        ChannelReleaseOp::create(b, pChannel, theirs, kPairReader);
    }
    state.results = awaitProducts(products, held, kPairUser);
  };
  multiply(state.p, /*theirs=*/Value());
  auto [p, theirs] = emitTheirs(state);
  multiply(p, theirs);
  return state;
}

FailureOr<WsPairEmitter::BlockState>
WsPairEmitter::emitLoop(Value scale, const BlockState &first) {
  auto min = [&](Value x, Value y) {
    return b.createOrFold<arith::MinSIOp>(x, y);
  };
  auto max = [&](Value x, Value y) {
    return b.createOrFold<arith::MaxSIOp>(x, y);
  };
  Value end = max(b.createOrFold<arith::SubIOp>(bounds.end, context.i32(1)),
                  bounds.begin);
  Value fullEnd = max(min(bounds.fullEnd, end), bounds.begin);
  Value fullBegin = min(bounds.fullBegin, fullEnd);
  bool isWhole = true;
  auto body = [&](OpBuilder &builder, Location, Value key, ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(builder.getInsertionBlock());
    isWhole = succeeded(emitBlock(scale, key, carried));
  };
  auto loop =
      KVLoopOp::create(b, bounds.begin, fullBegin, fullEnd, end,
                       plan.getBlockN(), /*stages=*/1, first.list(), body);
  if (!isWhole)
    return failure();
  return BlockState(loop.getResults());
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

WsPairEmitter::BlockState
WsPairEmitter::emitInitialBlockState(Value keys, Value toSend, Value toRead) {
  RunningState running = emitInitialState(
      /*bets=*/plan.getSoftmax() == SoftmaxPolicy::Optimistic);
  BlockState state;
  state.m = running.m;
  state.l = running.l;
  state.p = arith::ConstantOp::create(
      b, DenseElementsAttr::get(getScoreType(facts.elementType),
                                b.getFloatAttr(facts.elementType, 0)));
  state.keys = keys;
  state.toSend = toSend;
  state.toRead = toRead;
  for (int64_t i = 0; i < valueSlices; ++i)
    state.results.push_back(
        splat(f32Tile({kPairRows, getResultColumns(i)}), 0));
  return state;
}

FailureOr<SmallVector<Value>> WsPairEmitter::emitTile(ValueRange cursors) {
  Value scale = emitExponentScale();
  auto queries = ChannelAcquireOp::create(b, q.channel, cursors[0], kPairUser);
  queryTiles.clear();
  for (int64_t i = 0; i < keySlices; ++i)
    queryTiles.push_back(SlotOp::create(b, q.slotType, q.buffer, context.i32(i),
                                        /*distance=*/IntegerAttr()));
  BlockState state = emitInitialBlockState(cursors[1], cursors[2], cursors[3]);
  bool isWhole = true;
  state = emitIfAny(state, [&] {
    FailureOr<BlockState> first = emitFirstBlock(scale, state);
    isWhole = succeeded(first);
    return isWhole ? *first : state;
  });
  FailureOr<BlockState> last = failure();
  if (!isWhole || failed(last = emitLoop(scale, state)))
    return failure();
  release(q, queries.getToken(), kPairUser);
  state = emitIfAny(*last, [&] { return emitLastBlock(*last); });

  Value toSend = cursors[4], toRead = cursors[5];
  auto [sum, theirs] = emitSum(state.l, toSend, toRead);
  FinalRows rows = emitFinalRows(state.m, sum);
  Value factor = emitRowFactor(rows);
  if (facts.lse)
    emitOwnLSE(rows);
  storeResults(state.results, factor);
  ChannelReleaseOp::create(b, lChannel, theirs, kPairReader);
  return SmallVector<Value>{advance(cursors[0], q), state.keys, state.toSend,
                            state.toRead,           toSend,     toRead};
}

LogicalResult WsPairEmitter::emitRows() {
  TileLoopOp loop = emitTileLoop(
      [&]() -> SmallVector<Value> {
        SmallVector<Value> cursors = {start(q.channel, kPairUser),
                                      start(k.channel, kPairUser)};
        for (Value channel : {pChannel, lChannel}) {
          cursors.push_back(start(channel, kPairSender));
          cursors.push_back(start(channel, kPairReader));
        }
        return cursors;
      },
      [&](ValueRange cursors) { return emitTile(cursors); });
  return success(static_cast<bool>(loop));
}
