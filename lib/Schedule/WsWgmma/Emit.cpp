//===- Emit.cpp - The kernel of ws_wgmma in tile IR -----------------------===//
//
// Both partitions walk the same tiles and, in each, the same blocks of keys
// from the last to the first; three channels (q, k, v) hand slots from the
// producer to the consumers. 8-bit values are transposed on the way by all
// warps of the producer's partition, since wgmma reads such operands with the
// contraction's index contiguous only: the channel v leads from its elected
// thread to its warps, and vt, which has as many slots as the plan gives V,
// from there to the consumers.
//
//===----------------------------------------------------------------------===//

#include "../AttentionEmitter.h"
#include "ClusterTile.h"
#include "WsWgmma.h"

using namespace mlir;
using namespace mlir::attn;

static constexpr llvm::StringLiteral kConsumer("consumer");
static constexpr llvm::StringLiteral kProducer("producer");
/// The second role of the producer's partition.
static constexpr llvm::StringLiteral kTransposer("producer.transposer");
/// The first of the named barriers by which warpgroups take turns.
static constexpr int64_t kTurnBarrier = 1;

namespace {

/// A ring of shared memory with its channel and the map that fills it.
struct Ring {
  Value buffer, channel, map;
  BufferType slotType;
};

class WsWgmmaEmitter : AttentionEmitter {
public:
  WsWgmmaEmitter(KernelContext &context, WsWgmmaPlanAttr plan)
      : AttentionEmitter(context, plan.getBlockM()), plan(plan) {}
  LogicalResult run();

private:
  /// A ring between two roles, and its map if TMA fills it.
  Ring makeRing(StringRef name, int64_t stages, int64_t rows, int64_t columns,
                StringRef from, StringRef to);
  /// The rings of a partition with its roles in them, in the order in which it
  /// carries their cursors.
  SmallVector<std::pair<const Ring *, StringRef>> getRings(StringRef partition);
  /// What consumers read V from.
  const Ring &values() const { return facts.isNarrow() ? vt : v; }
  bool isLongestFirst() const {
    return plan.getOrder() == TileOrder::LongestFirst;
  }
  /// The number of tiles of a head, in a cluster's CTAs side by side, and of
  /// the heads of all batches; this CTA's rank in its cluster.
  void emitExtents();
  /// Which of the tiles that the cluster's CTAs have at turn `index` is this
  /// CTA's; null if it is alone.
  Value emitPlace(Value index);
  /// Finds tile `index`, its lengths and its blocks of keys.
  void emitTile(Value index);
  /// The loop over this CTA's tiles in one role, which carries its cursors.
  LogicalResult
  emitTileLoop(StringRef role,
               function_ref<FailureOr<SmallVector<Value>>(ValueRange)> body);
  SmallVector<Value> startCursors(StringRef partition);
  Value advance(OpBuilder &builder, Value cursor, const Ring &ring) {
    return CursorAdvanceOp::create(builder, b.getLoc(), cursor, ring.channel);
  }
  /// Waits for a slot; its view and token.
  std::pair<Value, Value> acquire(OpBuilder &builder, const Ring &ring,
                                  Value cursor, StringRef role);
  void release(OpBuilder &builder, const Ring &ring, Value token,
               StringRef role) {
    ChannelReleaseOp::create(builder, b.getLoc(), ring.channel, token, role);
  }
  /// Loads rows from `first` on into the next slot.
  void load(const Ring &ring, Value cursor, Value head, Value first);

  /// Hands `count` slots of K and of V back unread; their next cursors.
  SmallVector<Value> emitSkip(Value count, ValueRange cursors);
  LogicalResult emitConsumer();
  FailureOr<SmallVector<Value>> emitConsumerTile(ValueRange cursors);
  LogicalResult emitProducer();
  FailureOr<SmallVector<Value>> emitProducerTile(ValueRange cursors);
  /// The producer of 8-bit operands, in all threads of its partition.
  LogicalResult emitTransposingProducer();
  FailureOr<SmallVector<Value>> emitTransposingTile(ValueRange cursors);
  /// Copies a slot of v to one of vt; the next cursors.
  SmallVector<Value> emitTransposition(OpBuilder &builder, ValueRange cursors);
  /// In one thread, what `emit` makes.
  void elect(function_ref<void()> emit);
  /// The loads of K and V of a block.
  void loadBlock(Value block, ValueRange cursors);
  /// Row `index` of a sequence that starts at row `start`, if that is there.
  Value emitRowOf(Value start, Value index);
  /// The probabilities as operand of PV, and what its other operand is.
  Value emitOperandA(OpBuilder &builder, Value p);
  Value emitOperandB(OpBuilder &builder, Value slot);

  WsWgmmaPlanAttr plan;
  Ring q, k, v, vt;
  Value tilesPerHead, allHeads, rank;
  /// The blocks of keys that all CTAs of the cluster walk.
  ClusterTile walk;
};

} // namespace

Ring WsWgmmaEmitter::makeRing(StringRef name, int64_t stages, int64_t rows,
                              int64_t columns, StringRef from, StringRef to) {
  Ring ring;
  ring.buffer = alloc(name, bufferType({stages, rows, columns}));
  ring.slotType = bufferType({rows, columns});
  MLIRContext *mlir = b.getContext();
  bool isLoaded = from == kProducer;
  Attribute roles[] = {
      RoleAttr::get(mlir, from, isLoaded ? SignalKind::Tx : SignalKind::Arrive),
      RoleAttr::get(mlir, to, SignalKind::Arrive)};
  ring.channel =
      ChannelCreateOp::create(b, ChannelType::get(mlir, stages),
                              b.getStringAttr(name), b.getArrayAttr(roles));
  if (!isLoaded)
    return ring;
  unsigned bits = facts.elementType.getIntOrFloatBitWidth();
  int64_t span = SharedLayout::chooseSpan(columns, bits);
  ring.map = context.getTensorMap(name, {1, 1, rows, span * 8 / bits}, span);
  return ring;
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
      // descends.
      Value behind = sub(arith::CeilDivUIOp::create(b, allHeads, size), group);
      ascends = isLess(arith::AndIOp::create(b, behind, one), one);
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
  if (!facts.varlen)
    return;
  // The tiles of the longest sequence are dealt for all. One that does not
  // exist has no keys and stores no rows.
  Value exists = isLess(walk.firstRow, queries), zero = context.i32(0);
  for (Value *value : {&queries, &bounds.begin, &bounds.fullBegin,
                       &bounds.fullEnd, &bounds.end, &walk.begin, &walk.end,
                       &walk.skippedBehind, &walk.skippedInFront})
    if (*value)
      *value = arith::SelectOp::create(b, exists, *value, zero);
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
    FailureOr<SmallVector<Value>> next = body(cursors);
    status = failure(failed(next));
    if (succeeded(status))
      YieldOp::create(b, *next);
  };
  // In turns of alternating direction whoever got the longest tile of one turn
  // gets the shortest of the next.
  TileLoopOp::create(b, count,
                     isLongestFirst() ? TileScheduler::Snake
                                      : TileScheduler::Strided,
                     startCursors(role), emitBody);
  return status;
}

SmallVector<std::pair<const Ring *, StringRef>>
WsWgmmaEmitter::getRings(StringRef partition) {
  if (partition == kConsumer)
    return {{&q, kConsumer}, {&k, kConsumer}, {&values(), kConsumer}};
  SmallVector<std::pair<const Ring *, StringRef>> rings = {
      {&q, kProducer}, {&k, kProducer}, {&v, kProducer}};
  if (facts.isNarrow())
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
// The producer
//===----------------------------------------------------------------------===//

void WsWgmmaEmitter::load(const Ring &ring, Value cursor, Value head,
                          Value first) {
  auto [slot, token] = acquire(b, ring, cursor, kProducer);
  // Packed sequences are one batch.
  Value batch = facts.varlen ? context.i32(0) : at.batch;
  Value coordinates[] = {batch, head, first, context.i32(0)};
  TmaLoadOp::create(b, ring.map, coordinates, slot, token,
                    /*barriers=*/Value(), /*index=*/Value(),
                    /*multicast=*/IntegerAttr());
  release(b, ring, token, kProducer);
}

Value WsWgmmaEmitter::emitRowOf(Value start, Value index) {
  if (!start)
    return index;
  Value offset = arith::TruncIOp::create(b, b.getI32Type(), start);
  return arith::AddIOp::create(b, offset, index);
}

void WsWgmmaEmitter::loadBlock(Value block, ValueRange cursors) {
  Value key = emitRowOf(
      keyStart, arith::MulIOp::create(b, block, context.i32(plan.getBlockN())));
  load(k, cursors[0], at.kvHead, key);
  load(v, cursors[1], at.kvHead, key);
}

FailureOr<SmallVector<Value>>
WsWgmmaEmitter::emitProducerTile(ValueRange cursors) {
  load(q, cursors[0], at.head, emitRowOf(queryStart, row));
  Value one = context.i32(1);
  Value trips = arith::SubIOp::create(b, walk.end, walk.begin);
  Value lastBlock = arith::SubIOp::create(b, walk.end, one);
  auto loop =
      scf::ForOp::create(b, context.i32(0), trips, one, cursors.drop_front());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    loadBlock(arith::SubIOp::create(b, lastBlock, loop.getInductionVar()),
              loop.getRegionIterArgs());
    scf::YieldOp::create(b,
                         ValueRange{advance(b, loop.getRegionIterArg(0), k),
                                    advance(b, loop.getRegionIterArg(1), v)});
  }
  return SmallVector<Value>{advance(b, cursors[0], q), loop.getResult(0),
                            loop.getResult(1)};
}

LogicalResult WsWgmmaEmitter::emitProducer() {
  LogicalResult status = success();
  elect([&]() {
    for (const Ring *ring : {&q, &k, &v})
      TmaPrefetchOp::create(b, ring->map);
    status = emitTileLoop(kProducer, [&](ValueRange cursors) {
      return emitProducerTile(cursors);
    });
  });
  return status;
}

//===----------------------------------------------------------------------===//
// The producer of 8-bit operands
//===----------------------------------------------------------------------===//

void WsWgmmaEmitter::elect(function_ref<void()> emit) {
  auto op = ElectOp::create(b);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&op.getBody());
  auto end = YieldOp::create(b, ValueRange());
  b.setInsertionPoint(end);
  emit();
}

SmallVector<Value> WsWgmmaEmitter::emitTransposition(OpBuilder &builder,
                                                     ValueRange cursors) {
  auto [source, filled] = acquire(builder, v, cursors[0], kTransposer);
  auto [dest, free] = acquire(builder, vt, cursors[1], kTransposer);
  LocalTransposeOp::create(builder, b.getLoc(), source, dest);
  release(builder, v, filled, kTransposer);
  release(builder, vt, free, kTransposer);
  return {advance(builder, cursors[0], v), advance(builder, cursors[1], vt)};
}

FailureOr<SmallVector<Value>>
WsWgmmaEmitter::emitTransposingTile(ValueRange cursors) {
  elect([&]() { load(q, cursors[0], at.head, emitRowOf(queryStart, row)); });
  // Loads run one block ahead of the transposition, which itself runs ahead of
  // the consumers as far as the ring vt lets it.
  Value one = context.i32(1), zero = context.i32(0);
  Value trips = arith::SubIOp::create(b, walk.end, walk.begin);
  Value lastBlock = arith::SubIOp::create(b, walk.end, one);
  ValueRange carried = cursors.drop_front();
  Value some = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, trips, zero);
  auto branch = scf::IfOp::create(b, carried.getTypes(), some,
                                  /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, carried);
    b.setInsertionPointToStart(branch.thenBlock());
    auto advanced = [&](ValueRange values) {
      SmallVector<Value> next = {advance(b, values[0], k),
                                 advance(b, values[1], v)};
      llvm::append_range(next, values.drop_front(2));
      return next;
    };
    elect([&]() { loadBlock(lastBlock, carried); });
    SmallVector<Value> inits = advanced(carried);
    auto loop = scf::ForOp::create(b, one, trips, one, inits);
    {
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPointToStart(loop.getBody());
      ValueRange values = loop.getRegionIterArgs();
      Value block = arith::SubIOp::create(b, lastBlock, loop.getInductionVar());
      elect([&]() { loadBlock(block, values); });
      SmallVector<Value> next = advanced(values.take_front(2));
      llvm::append_range(next, emitTransposition(b, values.drop_front(2)));
      scf::YieldOp::create(b, next);
    }
    SmallVector<Value> results(loop.getResults().take_front(2));
    llvm::append_range(
        results,
        emitTransposition(b, ValueRange(loop.getResults()).drop_front(2)));
    scf::YieldOp::create(b, results);
  }
  SmallVector<Value> next = {advance(b, cursors[0], q)};
  llvm::append_range(next, branch.getResults());
  return next;
}

LogicalResult WsWgmmaEmitter::emitTransposingProducer() {
  elect([&]() {
    for (const Ring *ring : {&q, &k, &v})
      TmaPrefetchOp::create(b, ring->map);
  });
  return emitTileLoop(kProducer, [&](ValueRange cursors) {
    return emitTransposingTile(cursors);
  });
}

//===----------------------------------------------------------------------===//
// The consumers
//===----------------------------------------------------------------------===//

Value WsWgmmaEmitter::emitOperandA(OpBuilder &builder, Value p) {
  RankedTensorType type =
      tileType({blockM, plan.getBlockN()}, facts.elementType);
  if (facts.isNarrow())
    return NarrowOperandOp::create(builder, b.getLoc(), type, p);
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
    if (failed(emitScores(lb, key, s)))
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
  release(b, q, queryToken, kConsumer);
  SmallVector<Value> next =
      emitSkip(walk.skippedInFront, loop.getResults().drop_front(3));

  Value oView = emitView("o", at.head, queryStart, queries);
  Value lseView;
  if (facts.lse)
    lseView = emitView("lse", at.head, queryStart, queries);
  emitResults(emitFinalState(loop.getResults()), oView, lseView,
              /*scratch=*/Value(), plan.getEpilogue());
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
  bool isNarrow = facts.isNarrow();
  q = makeRing("q", plan.getQStages(), blockM, facts.headDim, kProducer,
               kConsumer);
  k = makeRing("k", plan.getKStages(), blockN, facts.headDim, kProducer,
               kConsumer);
  v = makeRing("v", isNarrow ? kRawValueSlots : plan.getVStages(), blockN,
               facts.valueDim, kProducer, isNarrow ? kTransposer : kConsumer);
  if (isNarrow)
    vt = makeRing("vt", plan.getVStages(), facts.valueDim, blockN, kTransposer,
                  kConsumer);
  emitExtents();
  RegisterBudget budget = getRegisterBudget(facts, plan);
  auto op = WarpSpecializeOp::create(
      b, b.getStrArrayAttr({kConsumer, kProducer}),
      b.getDenseI64ArrayAttr({blockM / 16, 4}),
      b.getDenseI64ArrayAttr({budget.consumer, budget.producer}),
      /*partitionsCount=*/2);
  for (auto [region, emit] :
       llvm::zip(op.getPartitions(),
                 std::array{&WsWgmmaEmitter::emitConsumer,
                            isNarrow ? &WsWgmmaEmitter::emitTransposingProducer
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
