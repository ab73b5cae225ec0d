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
  const Warpgroup &mine = warpgroups[number];
  auto slot = ChannelAcquireOp::create(b, mine.pChannel, state.toSend,
                                       kPairSenders[number]);
  auto sendTo = [&](Value tile, Value memory) {
    LocalSendOp::create(b, tile, memory, slot.getToken(), /*barriers=*/Value(),
                        /*which=*/Value());
  };
  sendTo(state.p, mine.probabilities);
  sendTo(state.m, mine.maxima);
  ChannelReleaseOp::create(b, mine.pChannel, slot.getToken(),
                           kPairSenders[number]);
  state.toSend = advanceOn(state.toSend, mine.pChannel);
  return softmax.getFactor();
}

WsPairEmitter::Theirs WsPairEmitter::emitTheirs(BlockState &state) {
  const Warpgroup &mine = warpgroups[number];
  auto slot = ChannelAcquireOp::create(b, mine.pChannel, state.toRead,
                                       kPairReaders[number]);
  Value p = LocalLoadOp::create(b, getScoreType(facts.elementType),
                                mine.probabilities);
  Value m = LocalLoadOp::create(b, f32Tile({kPairRows}), mine.maxima);
  state.toRead = advanceOn(state.toRead, mine.pChannel);

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
  return {path.getResult(2), slot.getToken()};
}

WsPairEmitter::Theirs WsPairEmitter::emitSum(Value l, Value &toSend,
                                             Value &toRead) {
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
  toSend = advanceOn(toSend, mine.lChannel);
  toRead = advanceOn(toRead, mine.lChannel);
  // Of two parts the sum is the same in either order.
  return {arith::AddFOp::create(b, l, other), from.getToken()};
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Value WsPairEmitter::skipOnce(Value count, int64_t slots, Value cursor) {
  if (!count || slots <= 0)
    return cursor;
  Value some = b.createOrFold<arith::MinSIOp>(count, context.i32(1));
  return emitTrips(context.i32(0), some, cursor,
                   [&](Value, Value at) { return skipSlots(slots, at); });
}

Value WsPairEmitter::skipOthers(Value count, int64_t slots, Value cursor) {
  if (!count)
    return cursor;
  return emitTrips(context.i32(1), count, cursor,
                   [&](Value, Value at) { return skipSlots(slots, at); });
}

Value WsPairEmitter::skipSlots(int64_t slots, Value cursor) {
  return emitTrips(context.i32(0), context.i32(slots), cursor,
                   [&](Value, Value at) {
                     auto [slot, token] = acquire(k, at, kPairUsers);
                     release(k, token, kPairUsers);
                     return advance(at, k);
                   });
}

WsPairEmitter::BlockState
WsPairEmitter::emitIfAny(const BlockState &state, StateBody emit,
                         function_ref<Value()> otherwise) {
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
  BlockState none = state;
  none.keys = otherwise();
  scf::YieldOp::create(b, none.list());
  return BlockState(branch.getResults());
}

FailureOr<WsPairEmitter::BlockState>
WsPairEmitter::emitFirstBlock(Value scale, BlockState state) {
  // Values of a block that was skipped lie between these keys.
  Value skipped = walk.skippedBehind;
  RankedTensorType type = getScoreType(b.getF32Type());
  Value product;
  HeldSlot held;
  for (int64_t i = 0; i < keySlices; ++i) {
    product = startScoreSlice(k, kPairUsers, queryTiles[i], i, type,
                              getKeyDepth(facts), product, held, state.keys);
    if (i < countValueSlots())
      state.keys = skipOnce(skipped, 1, state.keys);
  }
  Value s = WgmmaWaitOp::create(b, type, product, /*pending=*/0).getResult(0);
  release(k, held.token, kPairUsers);
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
    product = startScoreSlice(k, kPairUsers, queryTiles[i], i, type,
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
        startValueSlice(v, kPairUsers, p, result,
                        getResultColumns(i % valueSlices), held, state.keys);
    // Only what a product reads has come.
    if (i == valueSlices)
      ChannelReleaseOp::create(b, warpgroups[number].pChannel, theirs,
                               kPairReaders[number]);
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
  release(*held.ring, held.token, kPairUsers);
  state.results = emitRareRescale(b, *factor, wait.getResults());
  YieldOp::create(b, state.list());
  return success();
}

WsPairEmitter::BlockState WsPairEmitter::emitLastBlock(BlockState state) {
  // Keys of a block that is skipped lie between these values.
  Value skipped = walk.skippedInFront;
  auto multiply = [&](Value p, int64_t first, Value theirs) {
    HeldSlot held;
    SmallVector<Value> products;
    for (auto [i, result] : llvm::enumerate(state.results)) {
      if (first + int64_t(i) < keySlices)
        state.keys = skipOnce(skipped, 1, state.keys);
      products.push_back(startValueSlice(
          v, kPairUsers, p, result, getResultColumns(i), held, state.keys));
      if (theirs && i == 0)
        ChannelReleaseOp::create(b, warpgroups[number].pChannel, theirs,
                                 kPairReaders[number]);
    }
    state.results = awaitProducts(products, held, kPairUsers);
  };
  multiply(state.p, 0, /*theirs=*/Value());
  auto [p, theirs] = emitTheirs(state);
  multiply(p, valueSlices, theirs);
  state.keys = skipOnce(skipped, keySlices - countValueSlots(), state.keys);
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
  const Ring &q = warpgroups[number].q;
  Value scale = emitExponentScale();
  auto queries =
      ChannelAcquireOp::create(b, q.channel, cursors[0], kPairRoles[number]);
  queryTiles.clear();
  for (int64_t i = 0; i < keySlices; ++i)
    queryTiles.push_back(SlotOp::create(b, q.slotType, q.buffer, context.i32(i),
                                        /*distance=*/IntegerAttr()));
  Value behind = walk.skippedBehind, inFront = walk.skippedInFront;
  int64_t perBlock = keySlices + countValueSlots();
  int64_t mixed = std::min(keySlices, countValueSlots());
  Value keys = skipOnce(behind, keySlices, cursors[1]);
  keys = skipOthers(behind, perBlock, keys);
  BlockState state = emitInitialBlockState(keys, cursors[2], cursors[3]);
  bool isWhole = true;
  state = emitIfAny(
      state,
      [&] {
        FailureOr<BlockState> first = emitFirstBlock(scale, state);
        isWhole = succeeded(first);
        return isWhole ? *first : state;
      },
      [&] { return skipOnce(behind, mixed, state.keys); });
  state.keys = skipOnce(behind, countValueSlots() - mixed, state.keys);
  FailureOr<BlockState> last = failure();
  if (!isWhole || failed(last = emitLoop(scale, state)))
    return failure();
  release(q, queries.getToken(), kPairRoles[number]);
  state = emitIfAny(
      *last, [&] { return emitLastBlock(*last); },
      [&] { return skipOnce(inFront, keySlices, last->keys); });
  state.keys = skipOthers(inFront, perBlock, state.keys);
  state.keys = skipOnce(inFront, countValueSlots(), state.keys);

  Value toSend = cursors[4], toRead = cursors[5];
  auto [sum, theirs] = emitSum(state.l, toSend, toRead);
  FinalRows rows = emitFinalRows(state.m, sum);
  Value factor = emitRowFactor(rows);
  if (facts.lse)
    emitOwnLSE(rows);
  storeResults(state.results, factor);
  ChannelReleaseOp::create(b, warpgroups[number].lChannel, theirs,
                           kPairReaders[number]);
  return SmallVector<Value>{advance(cursors[0], q), state.keys, state.toSend,
                            state.toRead,           toSend,     toRead};
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
