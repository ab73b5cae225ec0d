//===- WsTmemSoftmax.cpp - The softmaxes of ws_tmem -----------------------===//

#include "../Tma/RingFacts.h"
#include "WsTmemEmitter.h"
#include "attn/Dialect/Attn/IR/BulkStores.h"

using namespace mlir;
using namespace mlir::attn;

/// Columns of results that are rescaled at a time, so that they take few
/// registers beside a block's scores.
static constexpr int64_t kRescaledColumns = 32;
/// Columns whose probabilities the policy lagged computes in front of its vote,
/// and those that optimistic computes and stores at a time.
static constexpr int64_t kBetColumns = 32;
/// What a block's sum of probabilities stays below where optimistic bets. With
/// 2^4 ordinary scores lost many bets: a thread has a whole row.
static constexpr float kBetLimit = 0x1p8f;
/// Exponents of two by which maxima of the other policies may grow before they
/// change. With less the first block of a causal tile, whose rows have few
/// keys, lost more bets, which cost more where scores wait for probabilities;
/// with more keys that stand out are less accurate.
static constexpr float kMostGrowth = 7, kMostGrowthBeside = 6;

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

TmemRegsLayoutAttr WsTmemEmitter::getRowLayout() {
  return TmemRegsLayoutAttr::get(b.getContext(), TmemShape::S32x32b, {4, 1});
}

Value WsTmemEmitter::startTensorLoad(Value buffer, int64_t first,
                                     int64_t columns) {
  auto inFlight = InFlightType::get(b.getContext(), {kTmemRows, columns},
                                    b.getF32Type(), getRowLayout());
  auto load = TmemLoadOp::create(b, inFlight, /*row_values=*/Type(),
                                 emitColumns(buffer, first, columns),
                                 /*reduce=*/ReduceKindAttr());
  return load.getResult();
}

SmallVector<Value> WsTmemEmitter::awaitTensorLoads(ValueRange loads) {
  auto types = llvm::map_to_vector(loads, [&](Value load) -> Type {
    return f32Tile(cast<InFlightType>(load.getType()).getShape());
  });
  return llvm::to_vector(
      ValueRange(TmemWaitOp::create(b, types, loads).getResults()));
}

Value WsTmemEmitter::emitTensorLoad(Value buffer, int64_t first,
                                    int64_t columns) {
  return awaitTensorLoads(startTensorLoad(buffer, first, columns)).front();
}

//===----------------------------------------------------------------------===//
// A block
//===----------------------------------------------------------------------===//

Value WsTmemEmitter::emitIsFirst(Value key, arith::CmpIPredicate predicate) {
  Value lastKey = arith::MulIOp::create(
      b, arith::SubIOp::create(b, bounds.end, context.i32(1)),
      context.i32(plan.getBlockN()));
  return arith::CmpIOp::create(b, predicate, key, lastKey);
}

void WsTmemEmitter::emitRescale(const TensorTile &tile, Value factor, Value key,
                                Value standing) {
  RankedTensorType rows = f32Tile({kTmemRows});
  Value changed = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, factor,
                                        splat(rows, 1));
  // Nothing is there before the first block.
  auto emitSome = [&]() -> Value {
    return emitIsFirst(key, arith::CmpIPredicate::ne);
  };
  // A path with a vote of its own takes that into it; the softmax's takes the
  // path in.
  if (standing)
    changed = arith::AndIOp::create(
        b, changed,
        arith::CmpFOp::create(
            b, arith::CmpFPredicate::UNE, standing,
            splat(rows, -std::numeric_limits<double>::infinity())));
  else if (tile.handed)
    changed = arith::AndIOp::create(
        b, changed, tensor::SplatOp::create(b, emitSome(), changed.getType()));
  auto path = RareOp::create(b, TypeRange(), changed, ValueRange(),
                             /*each_warpgroup=*/false,
                             /*barrier=*/IntegerAttr(), /*leave_loop=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&path.getBody());
  auto end = YieldOp::create(b, ValueRange());
  b.setInsertionPoint(end);
  if (!standing && !tile.handed) {
    auto branch = scf::IfOp::create(b, emitSome(), /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  auto rescale = [&](Value buffer, int64_t first, int64_t count) {
    Value part = emitTensorLoad(buffer, first, count);
    Value spread = BroadcastOp::create(b, part.getType(), factor);
    TmemStoreOp::create(b, arith::MulFOp::create(b, part, spread),
                        emitColumns(buffer, first, count));
  };
  int64_t columns = facts.valueDim;
  for (int64_t first = 0; first < columns; first += kRescaledColumns)
    rescale(tile.results, first, std::min(kRescaledColumns, columns - first));
}

/// Where the columns that are computed one after the other start: what is
/// handed on first, of which the lagged policy bets on some, and the others.
static SmallVector<int64_t> getSliceStarts(SoftmaxPolicy policy,
                                           int64_t front) {
  if (policy == SoftmaxPolicy::Lagged && front > kBetColumns)
    return {0, kBetColumns, front};
  return {0, front};
}

SmallVector<Value> WsTmemEmitter::emitProbabilities(int64_t number, Value p,
                                                    Value factor, Value token,
                                                    Value key,
                                                    ValueRange cursors) {
  const TensorTile &tile = tiles[number];
  Role role = kSoftmaxes[number];
  // No condition that the check of barriers follows keeps a rescale with a vote
  // of its own from the first block.
  if (tile.handed)
    emitRescale(tile, factor, key);
  SmallVector<Value> next;
  for (auto [channel, cursor] : llvm::zip(tile.getChannels(), cursors))
    next.push_back(CursorAdvanceOp::create(b, cursor, channel));
  int64_t front = getFront(), columns = plan.getBlockN();
  if (front == 0) {
    TmemStoreOp::create(b, p, tile.probabilities);
    ChannelReleaseOp::create(b, tile.getLast(), token, role);
    return next;
  }
  Type type = TokenType::get(b.getContext());
  auto split = ChannelSplitOp::create(b, TypeRange{type, type}, tile.getLast(),
                                      token, role);
  SmallVector<int64_t> starts = getSliceStarts(plan.getSoftmax(), front);
  for (auto [index, first] : llvm::enumerate(starts)) {
    int64_t end = index + 1 < starts.size() ? starts[index + 1] : columns;
    Value slice = SliceOp::create(
        b, tileType({kTmemRows, end - first}, facts.elementType), p, first);
    TmemStoreOp::create(b, slice,
                        emitColumns(tile.probabilities, first, end - first));
    if (end != front && end != columns)
      continue;
    ChannelReleaseOp::create(b, tile.getLast(),
                             split.getResult(end == front ? 0 : 1), role);
  }
  return next;
}

SmallVector<Value> WsTmemEmitter::emitBetProbabilities(int64_t number, Value p,
                                                       Value factor,
                                                       Value standing,
                                                       Value token, Value key,
                                                       ValueRange cursors) {
  const TensorTile &tile = tiles[number];
  Role role = kSoftmaxes[number];
  SmallVector<Value> next;
  for (auto [channel, cursor] : llvm::zip(tile.getChannels(), cursors))
    next.push_back(CursorAdvanceOp::create(b, cursor, channel));
  for (int64_t first = 0; first < plan.getBlockN(); first += kBetColumns) {
    int64_t columns = std::min(kBetColumns, plan.getBlockN() - first);
    Value slice = SliceOp::create(
        b, tileType({kTmemRows, columns}, facts.elementType), p, first);
    // The products of the block before are awaited behind exponentials.
    if (tile.handed && first == 0)
      token =
          ChannelAcquireOp::create(b, tile.handed, cursors[1], role).getToken();
    TmemStoreOp::create(b, slice,
                        emitColumns(tile.probabilities, first, columns));
  }
  emitRescale(tile, factor, key, standing);
  ChannelReleaseOp::create(b, tile.getLast(), token, role);
  return next;
}

LogicalResult WsTmemEmitter::emitSoftmaxBlock(int64_t number, Value scale,
                                              Value key, ValueRange carried) {
  const TensorTile &tile = tiles[number];
  Role role = kSoftmaxes[number];
  ValueRange cursors = carried.drop_front(countRowValues());
  Value token =
      ChannelAcquireOp::create(b, tile.channel, cursors[0], role).getToken();
  Value scores = emitTensorLoad(tile.scores, 0, plan.getBlockN());
  if (tile.handed)
    ChannelReleaseOp::create(b, tile.channel, token, role);
  if (failed(emitScores(b, key, scores)))
    return failure();
  // A first block that stands apart for its maximum alone has no mask.
  if (auto mask = scores.getDefiningOp<ApplyMaskOp>();
      mask && hasFullBlocks(facts, plan.getBlockN())) {
    scores = mask.getSource();
    mask.erase();
  }
  auto softmax =
      OnlineSoftmaxOp::create(b, scores, carried[0], carried[1],
                              /*o=*/Value(), scale, plan.getSoftmax(),
                              roundsLargest() ? carried[2] : Value());
  softmax.setLimit(APFloat(kBetLimit));
  softmax.setGrowth(
      APFloat(plan.getPBeside() ? kMostGrowthBeside : kMostGrowth));
  softmax.setPolynomial(plan.getPolynomial());
  Value p = softmax.getP();
  auto narrow = [&] {
    p = arith::TruncFOp::create(
        b, tileType({kTmemRows, plan.getBlockN()}, facts.elementType), p);
  };
  SmallVector<Value> next = {softmax.getNewM(), softmax.getNewL()};
  if (roundsLargest())
    next.push_back(softmax.getNewLargest());
  if (betsOnSums()) {
    narrow();
    llvm::append_range(next,
                       emitBetProbabilities(number, p, softmax.getFactor(),
                                            carried[0], token, key, cursors));
    YieldOp::create(b, next);
    return success();
  }
  if (tile.handed) {
    // The products of the block before are awaited behind the exponentials.
    narrow();
    token =
        ChannelAcquireOp::create(b, tile.handed, cursors[1], role).getToken();
  } else {
    emitRescale(tile, softmax.getFactor(), key);
    narrow();
  }
  llvm::append_range(next, emitProbabilities(number, p, softmax.getFactor(),
                                             token, key, cursors));
  YieldOp::create(b, next);
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
  if (!bounds.lower && !bounds.upper && !facts.hasKeyRange()) {
    walk.skippedBehind = walk.skippedInFront = Value();
    bounds = emitBlockBounds(context, getBoundedTiles(*this), row, kTmemRows,
                             plan.getBlockN());
    return;
  }
  walk.skippedBehind = walk.skippedInFront = Value();
  bounds.begin = walk.begin;
  bounds.end = walk.end;
  bounds.fullEnd = clamp(bounds.fullEnd, bounds.begin, bounds.end);
  bounds.fullBegin = clamp(bounds.fullBegin, bounds.begin, bounds.fullEnd);
}

SmallVector<Value> WsTmemEmitter::emitSkips(int64_t number, Value count,
                                            ValueRange cursors) {
  if (!count)
    return llvm::to_vector(cursors);
  auto loop =
      scf::ForOp::create(b, context.i32(0), count, context.i32(1), cursors);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next;
  for (auto [channel, cursor] :
       llvm::zip(tiles[number].getChannels(), loop.getRegionIterArgs())) {
    Role role = kSoftmaxes[number];
    auto slot = ChannelAcquireOp::create(b, channel, cursor, role);
    emitReleaseAll(number, channel, slot.getToken());
    next.push_back(CursorAdvanceOp::create(b, cursor, channel));
  }
  scf::YieldOp::create(b, next);
  return llvm::to_vector(ValueRange(loop.getResults()));
}

void WsTmemEmitter::emitReleaseAll(int64_t number, Value channel, Value token) {
  Role role = kSoftmaxes[number];
  if (!hasParts(number, channel)) {
    ChannelReleaseOp::create(b, channel, token, role);
    return;
  }
  Type type = TokenType::get(b.getContext());
  auto split =
      ChannelSplitOp::create(b, TypeRange{type, type}, channel, token, role);
  for (Value part : split.getResults())
    ChannelReleaseOp::create(b, channel, part, role);
}

void WsTmemEmitter::awaitLastCommit(int64_t number, Value cursor) {
  Value channel = tiles[number].getLast();
  auto slot = ChannelAcquireOp::create(b, channel, cursor, kSoftmaxes[number]);
  emitReleaseAll(number, channel, slot.getToken());
  CursorAdvanceOp::create(b, cursor, channel);
}

KVLoopOp WsTmemEmitter::emitSoftmaxLoop(int64_t number, ValueRange cursors) {
  Value scale = emitExponentScale();
  Value m = emitInitialState(plan.getSoftmax() == SoftmaxPolicy::Optimistic).m;
  // A thread adds up its row by itself.
  MLIRContext *mlir = b.getContext();
  auto sums = RankedTensorType::get(
      {kTmemRows, 1}, b.getF32Type(),
      PartialLayoutAttr::get(mlir, AutoLayoutAttr::get(mlir)));
  bool isWhole = true;
  auto body = [&](OpBuilder &builder, Location, Value key, ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(builder.getInsertionBlock());
    isWhole = succeeded(emitSoftmaxBlock(number, scale, key, carried));
  };
  SmallVector<Value> inits = {m, splat(sums, 0)};
  if (roundsLargest())
    inits.push_back(m);
  llvm::append_range(inits, cursors);
  Value fullEnd = bounds.fullEnd, fullBegin = bounds.fullBegin;
  if (betsOnSums()) {
    // The first block has no maximum to bet on.
    Value second = arith::MaxSIOp::create(
        b, arith::SubIOp::create(b, bounds.end, context.i32(1)), bounds.begin);
    fullEnd = arith::MinSIOp::create(b, fullEnd, second);
    if (fullBegin != bounds.begin)
      fullBegin = arith::MinSIOp::create(b, fullBegin, fullEnd);
  }
  auto loop = KVLoopOp::create(b, bounds.begin, fullBegin, fullEnd, bounds.end,
                               plan.getBlockN(),
                               /*stages=*/1, inits, body);
  return isWhole ? loop : KVLoopOp();
}

std::pair<Value, SmallVector<Value>>
WsTmemEmitter::emitTileResults(int64_t number, ValueRange cursors) {
  const TensorTile &tile = tiles[number];
  RankedTensorType type = f32Tile({kTmemRows, facts.valueDim});
  Value channel = tile.getChannels().back(), cursor = cursors.back();
  auto emitLoad = [&] {
    return emitTensorLoad(tile.results, 0, facts.valueDim);
  };
  auto isSome = [&](Value begin, Value end) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, begin, end);
  };
  auto branch = scf::IfOp::create(b, TypeRange{type, cursor.getType()},
                                  isSome(walk.begin, walk.end),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  auto slot = ChannelAcquireOp::create(b, channel, cursor, kSoftmaxes[number]);
  Value results;
  if (walk.skippedBehind || walk.skippedInFront) {
    // A tile may have no block of its own among those of both.
    auto own = scf::IfOp::create(b, type, isSome(bounds.begin, bounds.end),
                                 /*withElseRegion=*/true);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(own.thenBlock());
    scf::YieldOp::create(b, emitLoad());
    b.setInsertionPointToStart(own.elseBlock());
    scf::YieldOp::create(b, splat(type, 0));
    results = own.getResult(0);
  } else {
    results = emitLoad();
  }
  emitReleaseAll(number, channel, slot.getToken());
  Value behind = CursorAdvanceOp::create(b, cursor, channel);
  scf::YieldOp::create(b, ValueRange{results, behind});
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, ValueRange{splat(type, 0), cursor});
  SmallVector<Value> next = llvm::to_vector(cursors.drop_back());
  next.push_back(branch.getResult(1));
  return {branch.getResult(0), next};
}

FinalRows WsTmemEmitter::emitRows(KVLoopOp loop) {
  return emitFinalRows(loop.getResult(0), loop.getResult(1),
                       roundsLargest() ? loop.getResult(2) : Value());
}

FailureOr<SmallVector<Value>>
WsTmemEmitter::emitSoftmaxTile(int64_t number, ValueRange cursors) {
  if (!plan.getOwnBlocks())
    widenBounds();
  size_t channels = tiles[number].getChannels().size();
  SmallVector<Value> at(cursors.take_front(channels));
  at = emitSkips(number, walk.skippedBehind, at);
  KVLoopOp loop = emitSoftmaxLoop(number, at);
  if (!loop)
    return failure();
  at = emitSkips(number, walk.skippedInFront,
                 loop.getResults().slice(countRowValues(), channels));
  // LSE leaves under the last product.
  Value lseView = facts.lse ? emitResultView("lse") : Value();
  FinalRows rows = emitRows(loop);
  if (lseView)
    emitLSE(rows.m, rows.l, lseView);
  auto [results, next] = emitTileResults(number, at);
  RunningState state = emitState(rows, results);
  Value oView = plan.getOHalves() ? Value() : emitResultView("o");
  if (resultBuffer == ResultBuffer::Queries)
    next.push_back(
        emitResultsOverQueries(number, state, oView, cursors[channels]));
  else if (resultBuffer == ResultBuffer::Own)
    emitStagedResults(number, state, oView);
  else
    emitResults(state, oView, /*lseView=*/Value(), /*scratch=*/Value(),
                plan.getEpilogue());
  return next;
}

void WsTmemEmitter::emitStagedResults(int64_t number, RunningState state,
                                      Value oView) {
  Value o = emitQuotient(state.o, emitInverse(state.getDivisor()));
  int64_t columns = getStagedColumns(facts, plan);
  Value staging = getStaging(number);
  for (int64_t first = 0; first < facts.valueDim; first += columns) {
    Value part = o;
    if (columns != facts.valueDim)
      part = SliceOp::create(b, tileType({kTmemRows, columns}, facts.outType),
                             o, first);
    SmallVector<Value> coordinates;
    if (resultMap)
      coordinates = emitResultStart(first);
    Value view = oView ? oView : emitResultView("o", first, columns);
    StoreResultOp::create(b, part, view, row, staging, resultMap, coordinates,
                          plan.getEpilogue());
  }
}

Value WsTmemEmitter::getStaging(int64_t number) {
  if (resultBuffer == ResultBuffer::Queries)
    return emitSlot(q, context.i32(number));
  auto type = BufferType::get(
      b.getContext(), {kTmemRows, getStagedColumns(facts, plan)}, facts.outType,
      AutoLayoutAttr::get(b.getContext()), MemorySpace::Shared);
  return alloc(("o" + llvm::Twine(number)).str(), type);
}

Value WsTmemEmitter::emitResultsOverQueries(int64_t number, RunningState state,
                                            Value oView, Value cursor) {
  Value channel = tiles[number].stored;
  Role role = kSoftmaxes[number];
  auto slot = ChannelAcquireOp::create(b, channel, cursor, role);
  emitStagedResults(number, state, oView);
  // The thread that started the copy knows when the slot has been read.
  auto elect = ElectOp::create(b, /*each_warpgroup=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&elect.getBody());
    awaitBulkStores(b, b.getLoc());
    ChannelReleaseOp::create(b, channel, slot.getToken(), role);
    YieldOp::create(b, ValueRange());
  }
  return CursorAdvanceOp::create(b, cursor, channel);
}

LogicalResult WsTmemEmitter::emitSoftmax(int64_t number) {
  rank = context.i32(number);
  const TensorTile &tile = tiles[number];
  TileLoopOp loop = emitTileLoop(
      [&]() -> SmallVector<Value> {
        SmallVector<Value> channels = tile.getChannels();
        if (tile.stored)
          channels.push_back(tile.stored);
        return llvm::map_to_vector(channels, [&](Value channel) -> Value {
          return CursorStartOp::create(b, channel, kSoftmaxes[number]);
        });
      },
      [&](ValueRange cursors) { return emitSoftmaxTile(number, cursors); });
  if (!loop)
    return failure();
  setDealer(loop, dealer);
  // Nobody else waits for the last commit.
  if (tile.handed)
    awaitLastCommit(number, loop.getResult(1));
  return success();
}
