//===- Emit.cpp - The kernel of ws_wgmma in tile IR -----------------------===//
//
// Both partitions walk the same tiles and, in each, the same blocks of keys
// from the last to the first; three channels (q, k, v) hand slots from the
// producer to the consumers.
//
//===----------------------------------------------------------------------===//

#include "../AttentionEmitter.h"
#include "WsWgmma.h"

using namespace mlir;
using namespace mlir::attn;

static constexpr llvm::StringLiteral kConsumer("consumer");
static constexpr llvm::StringLiteral kProducer("producer");

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
  Ring makeRing(StringRef name, int64_t stages, int64_t rows, int64_t columns);
  bool isLongestFirst() const {
    return plan.getOrder() == TileOrder::LongestFirst;
  }
  /// The number of tiles of a head, of the heads of all batches, and of tiles
  /// in all.
  void emitExtents();
  /// Finds tile `index`, its lengths and its blocks of keys.
  void emitTile(Value index);
  /// A loop over this CTA's tiles that carries cursors.
  LogicalResult
  emitTileLoop(ValueRange cursors,
               function_ref<FailureOr<SmallVector<Value>>(ValueRange)> body);
  SmallVector<Value> startCursors(StringRef role);
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

  LogicalResult emitConsumer();
  FailureOr<SmallVector<Value>> emitConsumerTile(ValueRange cursors);
  LogicalResult emitProducer();
  FailureOr<SmallVector<Value>> emitProducerTile(ValueRange cursors);

  WsWgmmaPlanAttr plan;
  Ring q, k, v;
  Value tilesPerHead, allHeads, allTiles;
};

} // namespace

Ring WsWgmmaEmitter::makeRing(StringRef name, int64_t stages, int64_t rows,
                              int64_t columns) {
  Ring ring;
  ring.buffer = alloc(name, bufferType({stages, rows, columns}));
  ring.slotType = bufferType({rows, columns});
  MLIRContext *mlir = b.getContext();
  Attribute roles[] = {RoleAttr::get(mlir, kProducer, SignalKind::Tx),
                       RoleAttr::get(mlir, kConsumer, SignalKind::Arrive)};
  ring.channel =
      ChannelCreateOp::create(b, ChannelType::get(mlir, stages),
                              b.getStringAttr(name), b.getArrayAttr(roles));
  unsigned bits = facts.elementType.getIntOrFloatBitWidth();
  int64_t span = SharedLayout::chooseSpan(columns, bits);
  ring.map = context.getTensorMap(name, {1, 1, rows, span * 8 / bits}, span);
  return ring;
}

void WsWgmmaEmitter::emitExtents() {
  Value length =
      facts.varlen ? context.i32(facts.queries) : context.getQueries();
  tilesPerHead = arith::CeilDivUIOp::create(b, length, context.i32(blockM));
  allHeads =
      arith::MulIOp::create(b, context.getHeads(), context.i32(facts.batch));
  allTiles = arith::MulIOp::create(b, allHeads, tilesPerHead);
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
  Value head, exists;
  if (isLongestFirst()) {
    // The last turn may have more CTAs than tiles.
    exists = isLess(index, allTiles);
    Value one = context.i32(1);
    index = arith::MinSIOp::create(b, index, sub(allTiles, one));
    Value first = context.i32(0), heads = allHeads, inGroup = index;
    if (plan.getGroupHeads() != 0) {
      Value size = context.i32(plan.getGroupHeads());
      Value group;
      std::tie(group, inGroup) =
          divide(index, arith::MulIOp::create(b, size, tilesPerHead));
      first = arith::MulIOp::create(b, group, size);
      heads = arith::MinSIOp::create(b, size, sub(allHeads, first));
    }
    auto [turn, offset] = divide(inGroup, heads);
    // Under a causal mask the last tile of a head has the most keys.
    at.tile = sub(sub(tilesPerHead, one), turn);
    head = arith::AddIOp::create(b, first, offset);
  } else {
    std::tie(head, at.tile) = divide(index, tilesPerHead);
  }
  std::tie(at.batch, at.head) = divide(head, context.getHeads());
  at.kvHead = emitKVHead(at.head);
  emitLengths();
  row = arith::MulIOp::create(b, at.tile, context.i32(blockM));
  bounds =
      emitBlockBounds(context, row, queries, keys, blockM, plan.getBlockN());
  if (facts.varlen) {
    // The tiles of the longest sequence are dealt for all.
    Value inSequence = isLess(row, queries);
    exists = exists ? arith::AndIOp::create(b, exists, inSequence).getResult()
                    : inSequence;
  }
  if (!exists)
    return;
  // A tile that does not exist has no keys and stores no rows.
  Value zero = context.i32(0);
  for (Value *value : {&queries, &bounds.begin, &bounds.fullBegin,
                       &bounds.fullEnd, &bounds.end})
    *value = arith::SelectOp::create(b, exists, *value, zero);
}

LogicalResult WsWgmmaEmitter::emitTileLoop(
    ValueRange cursors,
    function_ref<FailureOr<SmallVector<Value>>(ValueRange)> body) {
  Type i32 = b.getI32Type();
  Value first = arith::IndexCastOp::create(
      b, i32, gpu::BlockIdOp::create(b, gpu::Dimension::x));
  Value step = arith::IndexCastOp::create(
      b, i32, gpu::GridDimOp::create(b, gpu::Dimension::x));
  Value end = allTiles;
  if (isLongestFirst())
    end = arith::MulIOp::create(b, arith::CeilDivUIOp::create(b, end, step),
                                step);
  auto loop = scf::ForOp::create(b, first, end, step, cursors);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value index = loop.getInductionVar();
  if (isLongestFirst()) {
    // Each second turn goes backwards, so that whoever got the longest tile of
    // one turn gets the shortest of the next.
    Value one = context.i32(1);
    Value turn = arith::DivUIOp::create(b, index, step);
    Value isOdd = arith::TruncIOp::create(b, b.getI1Type(), turn);
    Value start = arith::MulIOp::create(b, turn, step);
    Value last =
        arith::SubIOp::create(b, arith::AddIOp::create(b, start, step), one);
    Value backwards =
        arith::AddIOp::create(b, start, arith::SubIOp::create(b, last, index));
    index = arith::SelectOp::create(b, isOdd, backwards, index);
  }
  emitTile(index);
  FailureOr<SmallVector<Value>> next = body(loop.getRegionIterArgs());
  if (failed(next))
    return failure();
  scf::YieldOp::create(b, *next);
  return success();
}

SmallVector<Value> WsWgmmaEmitter::startCursors(StringRef role) {
  SmallVector<Value> cursors;
  for (const Ring *ring : {&q, &k, &v})
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

FailureOr<SmallVector<Value>>
WsWgmmaEmitter::emitProducerTile(ValueRange cursors) {
  auto rowOf = [&](Value start, Value index) -> Value {
    if (!start)
      return index;
    Value offset = arith::TruncIOp::create(b, b.getI32Type(), start);
    return arith::AddIOp::create(b, offset, index);
  };
  load(q, cursors[0], at.head, rowOf(queryStart, row));
  Value one = context.i32(1);
  Value trips = arith::SubIOp::create(b, bounds.end, bounds.begin);
  Value lastBlock = arith::SubIOp::create(b, bounds.end, one);
  auto loop =
      scf::ForOp::create(b, context.i32(0), trips, one, cursors.drop_front());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value block = arith::SubIOp::create(b, lastBlock, loop.getInductionVar());
    Value key =
        rowOf(keyStart,
              arith::MulIOp::create(b, block, context.i32(plan.getBlockN())));
    SmallVector<Value> next;
    for (auto [ring, cursor] : llvm::zip(std::array<const Ring *, 2>{&k, &v},
                                         loop.getRegionIterArgs())) {
      load(*ring, cursor, at.kvHead, key);
      next.push_back(advance(b, cursor, *ring));
    }
    scf::YieldOp::create(b, next);
  }
  return SmallVector<Value>{advance(b, cursors[0], q), loop.getResult(0),
                            loop.getResult(1)};
}

LogicalResult WsWgmmaEmitter::emitProducer() {
  auto elect = ElectOp::create(b);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&elect.getBody());
  auto end = YieldOp::create(b, ValueRange());
  b.setInsertionPoint(end);
  for (const Ring *ring : {&q, &k, &v})
    TmaPrefetchOp::create(b, ring->map);
  return emitTileLoop(startCursors(kProducer), [&](ValueRange cursors) {
    return emitProducerTile(cursors);
  });
}

//===----------------------------------------------------------------------===//
// The consumers
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>>
WsWgmmaEmitter::emitConsumerTile(ValueRange cursors) {
  int64_t blockN = plan.getBlockN();
  RankedTensorType scoreType = f32Tile({blockM, blockN}),
                   outType = f32Tile({blockM, facts.valueDim});
  auto inFlight = [&](RankedTensorType type) {
    return InFlightType::get(b.getContext(), type.getShape(),
                             type.getElementType());
  };
  Value scale = context.f32(exponentScale);
  Value queryTile, queryToken;
  std::tie(queryTile, queryToken) = acquire(b, q, cursors[0], kConsumer);
  SmallVector<Value> inits = emitInitialState();
  llvm::append_range(inits, cursors.drop_front());

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
    auto softmax =
        OnlineSoftmaxOp::create(lb, s, carried[0], carried[1], carried[2],
                                scale, plan.getSoftmax(), /*finite=*/false);
    Value p = arith::TruncFOp::create(
        lb, tileType({blockM, blockN}, facts.elementType), softmax.getP());
    auto [valueTile, valueToken] = acquire(lb, v, carried[4], kConsumer);
    Value sum =
        WgmmaOp::create(lb, inFlight(outType), p, valueTile, softmax.getNewO());
    Value o = WgmmaWaitOp::create(lb, outType, sum, /*pending=*/0).getResult(0);
    release(lb, v, valueToken, kConsumer);
    YieldOp::create(lb, ValueRange{softmax.getNewM(), softmax.getNewL(), o,
                                   advance(lb, carried[3], k),
                                   advance(lb, carried[4], v)});
  };
  auto loop = KVLoopOp::create(b, bounds.begin, bounds.fullBegin,
                               bounds.fullEnd, bounds.end, blockN,
                               /*stages=*/1, inits, body);
  loop.setQkAhead(plan.getQkAhead());
  if (failed(status))
    return failure();
  release(b, q, queryToken, kConsumer);

  Value oView = emitView("o", at.head, queryStart, queries);
  Value lseView;
  if (facts.lse)
    lseView = emitView("lse", at.head, queryStart, queries);
  emitResults(emitFinalState(loop.getResults()), oView, lseView,
              /*scratch=*/Value(), plan.getEpilogue());
  return SmallVector<Value>{advance(b, cursors[0], q), loop.getResult(3),
                            loop.getResult(4)};
}

LogicalResult WsWgmmaEmitter::emitConsumer() {
  return emitTileLoop(startCursors(kConsumer), [&](ValueRange cursors) {
    return emitConsumerTile(cursors);
  });
}

LogicalResult WsWgmmaEmitter::run() {
  int64_t blockN = plan.getBlockN();
  q = makeRing("q", plan.getQStages(), blockM, facts.headDim);
  k = makeRing("k", plan.getKStages(), blockN, facts.headDim);
  v = makeRing("v", plan.getVStages(), blockN, facts.valueDim);
  emitExtents();
  auto names = b.getStrArrayAttr({kConsumer, kProducer});
  auto op = WarpSpecializeOp::create(
      b, names, b.getDenseI64ArrayAttr({blockM / 16, 4}),
      b.getDenseI64ArrayAttr({kConsumerRegisters, kProducerRegisters}),
      /*partitionsCount=*/2);
  for (auto [region, emit] : llvm::zip(
           op.getPartitions(), std::array{&WsWgmmaEmitter::emitConsumer,
                                          &WsWgmmaEmitter::emitProducer})) {
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
