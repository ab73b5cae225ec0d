//===- Emit.cpp - The kernel of ws_wgmma in tile IR -----------------------===//
//
// Rings, the loop over tiles, and the consumers; Producer.cpp has the
// producers.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

using namespace mlir;
using namespace mlir::attn;

/// The first of the named barriers by which warpgroups take turns.
static constexpr int64_t kTurnBarrier = 1;

Value WsWgmmaEmitter::makeChannel(StringRef name, int64_t stages,
                                  StringRef from, StringRef to,
                                  SignalKind signal) {
  MLIRContext *mlir = b.getContext();
  Attribute roles[] = {RoleAttr::get(mlir, from, signal),
                       RoleAttr::get(mlir, to, SignalKind::Arrive)};
  return ChannelCreateOp::create(b, ChannelType::get(mlir, stages),
                                 b.getStringAttr(name), b.getArrayAttr(roles),
                                 /*parts=*/ArrayAttr());
}

Ring WsWgmmaEmitter::makeRing(StringRef name, int64_t stages, int64_t rows,
                              int64_t columns, StringRef from, StringRef to,
                              TensorMapView view) {
  Ring ring;
  ring.view = view;
  ring.buffer = alloc(name, bufferType({stages, rows, columns}));
  ring.slotType = bufferType({rows, columns});
  bool isLoaded = from == kProducer;
  ring.channel = makeChannel(name, stages, from, to,
                             isLoaded ? SignalKind::Tx : SignalKind::Arrive);
  if (!isLoaded)
    return ring;
  unsigned bits = facts.elementType.getIntOrFloatBitWidth();
  int64_t span = SharedLayout::chooseSpan(columns, bits);
  SmallVector<int64_t> box = {1, 1, rows, span * 8 / bits};
  // Of every four rows two go to each half of the slot.
  if (view == TensorMapView::Quads)
    box = {1, 1, rows / 4, 2, span * 8 / bits};
  ring.map = context.getTensorMap(name, box, span, view);
  return ring;
}

void WsWgmmaEmitter::makeDealer() {
  if (!plan.getDynamic())
    return;
  dealer.counter =
      context.addWorkspace({/*bytes=*/4, /*zeroed=*/true, /*restored=*/true});
  dealer.channel = makeChannel("tile", kTileStages, kProducer, kConsumer,
                               SignalKind::Arrive);
  dealer.ring = alloc(
      "tile", BufferType::get(b.getContext(), {kTileStages}, b.getI32Type(),
                              AutoLayoutAttr::get(b.getContext()),
                              MemorySpace::Shared));
}

void WsWgmmaEmitter::makeResultMap() {
  if (resultBuffer == ResultBuffer::None)
    return;
  unsigned bits = facts.outType.getIntOrFloatBitWidth();
  int64_t span = SharedLayout::chooseSpan(facts.valueDim, bits);
  // One instruction stores rows of one warpgroup.
  resultMap.map = context.getTensorMap("o", {1, 1, 64, span * 8 / bits}, span);
  if (resultBuffer == ResultBuffer::Own)
    resultMemory = alloc(
        "o", BufferType::get(b.getContext(), {blockM, facts.valueDim},
                             facts.outType, AutoLayoutAttr::get(b.getContext()),
                             MemorySpace::Shared));
}

void WsWgmmaEmitter::emitExtents() {
  Value length =
      facts.varlen ? context.i32(facts.queries) : context.getQueries();
  int64_t ctas = plan.getCluster();
  tilesPerHead =
      arith::CeilDivUIOp::create(b, length, context.i32(blockM * ctas));
  allHeads =
      arith::MulIOp::create(b, context.getHeads(), context.i32(facts.batch));
  if (ctas > 1)
    rank = arith::IndexCastOp::create(
        b, b.getI32Type(), gpu::ClusterBlockIdOp::create(b, gpu::Dimension::x));
}

Value WsWgmmaEmitter::emitPlace(Value index) {
  if (!rank || !isLongestFirst())
    return rank;
  // Turns alternate between even and odd tiles: whoever has the longest tile of
  // one turn has the shortest of the next.
  Value isOdd = arith::TruncIOp::create(b, b.getI1Type(), index);
  Value last = context.i32(plan.getCluster() - 1);
  return arith::SelectOp::create(b, isOdd, arith::SubIOp::create(b, last, rank),
                                 rank);
}

void WsWgmmaEmitter::emitTile(Value index) {
  auto divide = [&](Value x, Value y) -> std::pair<Value, Value> {
    Value quotient = arith::DivUIOp::create(b, x, y);
    Value product = arith::MulIOp::create(b, quotient, y);
    return {quotient, arith::SubIOp::create(b, x, product)};
  };
  auto sub = [&](Value x, Value y) -> Value {
    return arith::SubIOp::create(b, x, y);
  };
  auto isLess = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y);
  };
  Value place = emitPlace(index), head;
  if (isLongestFirst()) {
    Value one = context.i32(1);
    Value first = context.i32(0), heads = allHeads, inGroup = index, ascends;
    if (plan.getGroupHeads() != 0) {
      Value size = context.i32(plan.getGroupHeads());
      Value group;
      std::tie(group, inGroup) =
          divide(index, arith::MulIOp::create(b, size, tilesPerHead));
      first = arith::MulIOp::create(b, group, size);
      heads = arith::MinSIOp::create(b, size, sub(allHeads, first));
      // The end of a group meets tiles of its own length, and the last group
      // descends. A counter deals evenly whatever comes next.
      if (!plan.getDynamic()) {
        Value groups = arith::CeilDivUIOp::create(b, allHeads, size);
        Value behind = sub(groups, group);
        ascends = isLess(arith::AndIOp::create(b, behind, one), one);
      }
    }
    auto [turn, offset] = divide(inGroup, heads);
    // Under a causal mask the last tile of a head has the most keys.
    at.tile = sub(sub(tilesPerHead, one), turn);
    if (ascends)
      at.tile = arith::SelectOp::create(b, ascends, turn, at.tile);
    head = arith::AddIOp::create(b, first, offset);
  } else {
    std::tie(head, at.tile) = divide(index, tilesPerHead);
  }
  std::tie(at.batch, at.head) = divide(head, context.getHeads());
  at.kvHead = emitKVHead(at.head);
  emitLengths();
  walk = emitClusterTile(context, at.tile, place, plan.getCluster(), queries,
                         keys, blockM, plan.getBlockN());
  row = walk.row;
  bounds = walk.bounds;
}

FailureOr<SmallVector<Value>> WsWgmmaEmitter::emitIfThere(
    ValueRange cursors,
    function_ref<FailureOr<SmallVector<Value>>(ValueRange)> body) {
  if (!facts.varlen)
    return body(cursors);
  // The tiles of the longest sequence are dealt for all.
  Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                       walk.firstRow, queries);
  auto branch = scf::IfOp::create(b, cursors.getTypes(), exists,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, cursors);
  b.setInsertionPointToStart(branch.thenBlock());
  FailureOr<SmallVector<Value>> next = body(cursors);
  if (failed(next))
    return failure();
  scf::YieldOp::create(b, *next);
  return SmallVector<Value>(branch.getResults());
}

LogicalResult WsWgmmaEmitter::emitTileLoop(
    StringRef role,
    function_ref<FailureOr<SmallVector<Value>>(ValueRange)> body) {
  Value count = arith::MulIOp::create(b, allHeads, tilesPerHead);
  LogicalResult status = success();
  auto emitBody = [&](OpBuilder &builder, Location, Value tile,
                      ValueRange cursors) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(builder.getInsertionBlock());
    emitTile(tile);
    FailureOr<SmallVector<Value>> next = emitIfThere(cursors, body);
    status = failure(failed(next));
    if (succeeded(status))
      YieldOp::create(b, *next);
  };
  // In turns of alternating direction whoever got the longest tile of one turn
  // gets the shortest of the next.
  TileScheduler scheduler =
      isLongestFirst() ? TileScheduler::Snake : TileScheduler::Strided;
  if (plan.getDynamic())
    scheduler = TileScheduler::Dynamic;
  auto loop =
      TileLoopOp::create(b, count, scheduler, startCursors(role), emitBody);
  if (plan.getDynamic()) {
    loop.getCounterMutable().assign(dealer.counter);
    loop.getChannelMutable().assign(dealer.channel);
    loop.getRingMutable().assign(dealer.ring);
  }
  return status;
}

SmallVector<std::pair<const Ring *, StringRef>>
WsWgmmaEmitter::getRings(StringRef partition) {
  if (partition == kConsumer)
    return {{&q, kConsumer}, {&k, kConsumer}, {&values(), kConsumer}};
  SmallVector<std::pair<const Ring *, StringRef>> rings = {
      {&q, kProducer}, {&k, kProducer}, {&v, kProducer}};
  if (needsTransposer(facts))
    rings.append({{&v, kTransposer}, {&vt, kTransposer}});
  return rings;
}

SmallVector<Value> WsWgmmaEmitter::startCursors(StringRef partition) {
  SmallVector<Value> cursors;
  for (auto [ring, role] : getRings(partition))
    cursors.push_back(CursorStartOp::create(b, ring->channel, role));
  return cursors;
}

std::pair<Value, Value> WsWgmmaEmitter::acquire(OpBuilder &builder,
                                                const Ring &ring, Value cursor,
                                                StringRef role) {
  auto op =
      ChannelAcquireOp::create(builder, b.getLoc(), ring.channel, cursor, role);
  Value slot = SlotOp::create(builder, b.getLoc(), ring.slotType, ring.buffer,
                              op.getIndex(), /*distance=*/IntegerAttr());
  return {slot, op.getToken()};
}

//===----------------------------------------------------------------------===//
// The consumers
//===----------------------------------------------------------------------===//

Value WsWgmmaEmitter::emitOperandA(OpBuilder &builder, Value p) {
  RankedTensorType type =
      tileType({blockM, plan.getBlockN()}, facts.elementType);
  if (facts.isNarrow()) {
    KeyOrder order = KeyOrder::Interleaved;
    if (!needsTransposer(facts))
      order = plan.getKeyQuads() ? KeyOrder::Quads : KeyOrder::Plain;
    return NarrowOperandOp::create(builder, b.getLoc(), type, p, order);
  }
  return arith::TruncFOp::create(builder, b.getLoc(), type, p);
}

Value WsWgmmaEmitter::emitOperandB(OpBuilder &builder, Value slot) {
  if (!facts.isNarrow())
    return slot;
  return TransposeOp::create(builder, b.getLoc(),
                             bufferType({plan.getBlockN(), facts.valueDim}),
                             slot);
}

SmallVector<Value> WsWgmmaEmitter::emitSkip(Value count, ValueRange cursors) {
  if (!count)
    return cursors;
  auto body = [&](OpBuilder &builder, Location loc, Value, ValueRange carried) {
    SmallVector<Value> next;
    for (auto [ring, cursor] :
         llvm::zip(std::array<const Ring *, 2>{&k, &values()}, carried)) {
      auto [slot, token] = acquire(builder, *ring, cursor, kConsumer);
      release(builder, *ring, token, kConsumer);
      next.push_back(advance(builder, cursor, *ring));
    }
    scf::YieldOp::create(builder, loc, next);
  };
  return scf::ForOp::create(b, context.i32(0), count, context.i32(1), cursors,
                            body)
      .getResults();
}

/// Makes probabilities large where they are 8-bit floats, whose smallest normal
/// number is 2^-6 (e4m3): none exceeds 2^8, or `limit` where only sums are
/// known (docs/Rationale/NarrowTypes.md).
static void setNarrowRange(OnlineSoftmaxOp softmax) {
  SoftmaxPolicy policy = softmax.getPolicy();
  float offset = 8;
  if (policy == SoftmaxPolicy::Threshold)
    offset = 4;
  else if (policy == SoftmaxPolicy::Optimistic)
    offset = 3;
  softmax.setOffset(APFloat(offset));
  softmax.setGrowth(APFloat(4.0f));
  softmax.setLimit(APFloat(440.0f));
}

FailureOr<SmallVector<Value>>
WsWgmmaEmitter::emitConsumerTile(ValueRange cursors) {
  int64_t blockN = plan.getBlockN();
  RankedTensorType scoreType = f32Tile({blockM, blockN}),
                   outType = f32Tile({blockM, facts.valueDim});
  auto inFlight = [&](RankedTensorType type) {
    return InFlightType::get(b.getContext(), type.getShape(),
                             type.getElementType());
  };
  emitDescales();
  Value scale = emitExponentScale();
  Value queryTile, queryToken;
  std::tie(queryTile, queryToken) = acquire(b, q, cursors[0], kConsumer);
  SmallVector<Value> inits = emitInitialState(
      /*bets=*/plan.getSoftmax() == SoftmaxPolicy::Optimistic);
  llvm::append_range(inits, emitSkip(walk.skippedBehind, cursors.drop_front()));

  LogicalResult status = success();
  auto body = [&](OpBuilder &builder, Location loc, Value key,
                  ValueRange carried) {
    ImplicitLocOpBuilder lb(loc, builder);
    auto [keyTile, keyToken] = acquire(lb, k, carried[3], kConsumer);
    Value transposed =
        TransposeOp::create(lb, bufferType({facts.headDim, blockN}), keyTile);
    Value product = WgmmaOp::create(lb, inFlight(scoreType), queryTile,
                                    transposed, /*c=*/Value());
    Value s =
        WgmmaWaitOp::create(lb, scoreType, product, /*pending=*/0).getResult(0);
    release(lb, k, keyToken, kConsumer);
    if (failed(emitScores(lb, key, s, plan.getKeyQuads())))
      status = failure();
    auto softmax = OnlineSoftmaxOp::create(
        lb, s, carried[0], carried[1], carried[2], scale, plan.getSoftmax());
    if (facts.isNarrow())
      setNarrowRange(softmax);
    Value p = emitOperandA(lb, softmax.getP());
    auto [valueTile, valueToken] = acquire(lb, values(), carried[4], kConsumer);
    Value sum = WgmmaOp::create(lb, inFlight(outType), p,
                                emitOperandB(lb, valueTile), softmax.getNewO());
    Value o = WgmmaWaitOp::create(lb, outType, sum, /*pending=*/0).getResult(0);
    release(lb, values(), valueToken, kConsumer);
    YieldOp::create(lb, ValueRange{softmax.getNewM(), softmax.getNewL(), o,
                                   advance(lb, carried[3], k),
                                   advance(lb, carried[4], values())});
  };
  auto loop = KVLoopOp::create(b, bounds.begin, bounds.fullBegin,
                               bounds.fullEnd, bounds.end, blockN,
                               /*stages=*/1, inits, body);
  loop.setQkAhead(plan.getQkAhead());
  loop.setPvBehind(plan.getPvBehind());
  if (plan.getTurns())
    loop.setTurns(kTurnBarrier);
  if (failed(status))
    return failure();
  if (resultBuffer != ResultBuffer::Queries)
    release(b, q, queryToken, kConsumer);
  SmallVector<Value> next =
      emitSkip(walk.skippedInFront, loop.getResults().drop_front(3));

  Value oView = emitView("o", at.head, queryStart, queries);
  Value lseView;
  if (facts.lse)
    lseView = emitView("lse", at.head, queryStart, queries);
  Value scratch = resultMemory;
  if (resultBuffer == ResultBuffer::Queries)
    scratch = queryTile;
  if (resultMap.map)
    resultMap.coordinates = {at.batch, at.head, row, context.i32(0)};
  emitResults(emitFinalState(loop.getResults()), oView, lseView, scratch,
              plan.getEpilogue(), resultMap);
  if (resultBuffer == ResultBuffer::Queries) {
    // The thread that started the copy knows when the slot has been read.
    auto elect = ElectOp::create(b, /*each_warpgroup=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&elect.getBody());
    TmaWaitOp::create(b, /*pending=*/0, /*read=*/true);
    release(b, q, queryToken, kConsumer);
    YieldOp::create(b, ValueRange());
  }
  next.insert(next.begin(), advance(b, cursors[0], q));
  return next;
}

LogicalResult WsWgmmaEmitter::emitConsumer() {
  if (plan.getTurns())
    TurnStartOp::create(b, kTurnBarrier);
  return emitTileLoop(
      kConsumer, [&](ValueRange cursors) { return emitConsumerTile(cursors); });
}

LogicalResult WsWgmmaEmitter::run() {
  int64_t blockN = plan.getBlockN();
  bool transposes = needsTransposer(facts);
  q = makeRing("q", plan.getQStages(), blockM, facts.headDim, kProducer,
               kConsumer);
  k = makeRing(
      "k", plan.getKStages(), blockN, facts.headDim, kProducer, kConsumer,
      plan.getKeyQuads() ? TensorMapView::Quads : TensorMapView::Whole);
  if (facts.hasTransposedValues())
    v = makeRing("v", plan.getVStages(), facts.valueDim, blockN, kProducer,
                 kConsumer, TensorMapView::Transposed);
  else
    v = makeRing("v", transposes ? kRawValueSlots : plan.getVStages(), blockN,
                 facts.valueDim, kProducer,
                 transposes ? kTransposer : kConsumer);
  if (transposes)
    vt = makeRing("vt", plan.getVStages(), facts.valueDim, blockN, kTransposer,
                  kConsumer);
  makeResultMap();
  makeDealer();
  emitExtents();
  RegisterBudget budget = getRegisterBudget(facts, plan);
  auto op = WarpSpecializeOp::create(
      b, b.getStrArrayAttr({kConsumer, kProducer}),
      b.getDenseI64ArrayAttr({blockM / 16, 4}),
      b.getDenseI64ArrayAttr({budget.consumer, budget.producer}),
      /*partitionsCount=*/2);
  for (auto [region, emit] : llvm::zip(
           op.getPartitions(),
           std::array{&WsWgmmaEmitter::emitConsumer,
                      transposes ? &WsWgmmaEmitter::emitTransposingProducer
                                 : &WsWgmmaEmitter::emitProducer})) {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&region);
    auto end = YieldOp::create(b, ValueRange());
    b.setInsertionPoint(end);
    if (failed((this->*emit)()))
      return failure();
  }
  return success();
}

LogicalResult WsWgmmaSchedule::emit(KernelContext &context,
                                    PlanAttrInterface plan) const {
  return WsWgmmaEmitter(context, cast<WsWgmmaPlanAttr>(plan)).run();
}
