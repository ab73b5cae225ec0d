//===- RingEmitter.cpp - What schedules with rings and wgmma emit ---------===//

#include "RingEmitter.h"
#include "RingFacts.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

Value RingEmitter::makeChannel(
    StringRef name, int64_t stages,
    ArrayRef<std::pair<StringRef, SignalKind>> roles) {
  MLIRContext *mlir = b.getContext();
  SmallVector<Attribute> attributes;
  for (auto [role, signal] : roles)
    attributes.push_back(RoleAttr::get(mlir, role, signal));
  return ChannelCreateOp::create(b, ChannelType::get(mlir, stages),
                                 b.getStringAttr(name),
                                 b.getArrayAttr(attributes),
                                 /*parts=*/ArrayAttr());
}

Ring RingEmitter::makeRing(StringRef name, int64_t stages, int64_t rows,
                           int64_t columns, StringRef from, StringRef to,
                           bool isLoaded, TensorMapView view) {
  Ring ring;
  ring.name = name;
  ring.view = view;
  ring.buffer = alloc(name, bufferType({stages, rows, columns}));
  ring.slotType = bufferType({rows, columns});
  ring.channel =
      makeChannel(name, stages,
                  {{from, isLoaded ? SignalKind::Tx : SignalKind::Arrive},
                   {to, SignalKind::Arrive}});
  if (!isLoaded)
    return ring;
  // A sequence ends before the tensor does: what lies behind its end belongs to
  // others, and 0 times it may not be 0.
  if (facts.varlen)
    ring.view = TensorMapView::Packed;
  unsigned bits = facts.elementType.getIntOrFloatBitWidth();
  int64_t span = SharedLayout::chooseSpan(columns, bits);
  SmallVector<int64_t> box = {1, 1, rows, span * 8 / bits};
  // Of every four rows two go to each half of the slot.
  if (view == TensorMapView::Quads)
    box = {1, 1, rows / 4, 2, span * 8 / bits};
  ring.map = context.getTensorMap(name, box, span, ring.view);
  return ring;
}

Ring RingEmitter::makeValueRing(int64_t stages, StringRef from, StringRef to) {
  if (facts.hasTransposedValues())
    return makeRing("v", stages, facts.valueDim, ringPlan.blockN, from, to,
                    /*isLoaded=*/true, TensorMapView::Transposed);
  return makeRing("v", stages, ringPlan.blockN, getValueColumns(facts), from,
                  to);
}

Value RingEmitter::makeResultMap() {
  unsigned bits = facts.outType.getIntOrFloatBitWidth();
  int64_t span = SharedLayout::chooseSpan(facts.valueDim, bits);
  int64_t width = span == 0 ? facts.valueDim : span * 8 / bits;
  return context.getTensorMap("o", {1, 1, 64, width}, span);
}

Value RingEmitter::allocResults() {
  return alloc("o", BufferType::get(b.getContext(), {blockM, facts.valueDim},
                                    facts.outType,
                                    AutoLayoutAttr::get(b.getContext()),
                                    MemorySpace::Shared));
}

std::pair<Value, Value> RingEmitter::acquire(const Ring &ring, Value cursor,
                                             StringRef role) {
  auto op = ChannelAcquireOp::create(b, ring.channel, cursor, role);
  Value slot = SlotOp::create(b, ring.slotType, ring.buffer, op.getIndex(),
                              /*distance=*/IntegerAttr());
  return {slot, op.getToken()};
}

SmallVector<Value> RingEmitter::emitBoxStart(const Ring &ring, Value head,
                                             Value first) {
  Value zero = context.i32(0);
  switch (ring.view) {
  case TensorMapView::Whole:
    return {at.batch, head, first, zero};
  case TensorMapView::Transposed:
    return {at.batch, head, zero, first};
  case TensorMapView::Quads: {
    Value quad = arith::DivUIOp::create(b, first, context.i32(4));
    return {at.batch, head, quad, zero, zero};
  }
  case TensorMapView::Packed:
    break;
  }
  bool isQueries = ring.name == "q";
  Value length = isQueries ? queries : keys;
  Value start = arith::TruncIOp::create(b, b.getI32Type(),
                                        isQueries ? queryStart : keyStart);
  Value end = arith::AddIOp::create(b, start, length);
  Value shift = arith::SubIOp::create(b, context.getRows(ring.name), length);
  return {end, head, arith::AddIOp::create(b, shift, first), zero};
}

void RingEmitter::load(const Ring &ring, Value cursor, StringRef role,
                       Value head, Value first) {
  auto [slot, token] = acquire(ring, cursor, role);
  IntegerAttr stacked;
  if (ring.view == TensorMapView::Quads)
    stacked = b.getI64IntegerAttr(2);
  TmaLoadOp::create(b, ring.map, emitBoxStart(ring, head, first), slot, token,
                    /*barriers=*/Value(), /*index=*/Value(),
                    /*multicast=*/IntegerAttr(), stacked);
  release(ring, token, role);
}

void RingEmitter::prefetchMaps(ArrayRef<Value> maps) {
  for (Value map : maps)
    if (map)
      TmaPrefetchOp::create(b, map);
}

void RingEmitter::elect(function_ref<void()> emit) {
  auto op = ElectOp::create(b);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&op.getBody());
  auto end = YieldOp::create(b, ValueRange());
  b.setInsertionPoint(end);
  emit();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void RingEmitter::emitExtents() {
  Value length =
      facts.varlen ? context.i32(facts.queries) : context.getQueries();
  int64_t ctas = ringPlan.cluster;
  tilesPerHead =
      arith::CeilDivUIOp::create(b, length, context.i32(blockM * ctas));
  allHeads = b.createOrFold<arith::MulIOp>(context.getHeads(),
                                           context.i32(facts.batch));
  allTiles = arith::MulIOp::create(b, allHeads, tilesPerHead);
  if (ctas > 1)
    rank = arith::IndexCastOp::create(
        b, b.getI32Type(), gpu::ClusterBlockIdOp::create(b, gpu::Dimension::x));
}

Value RingEmitter::emitPlace(Value index) {
  if (!rank || !isLongestFirst())
    return rank;
  // Turns alternate between even and odd tiles: whoever has the longest tile of
  // one turn has the shortest of the next.
  Value isOdd = arith::TruncIOp::create(b, b.getI1Type(), index);
  Value last = context.i32(ringPlan.cluster - 1);
  return arith::SelectOp::create(b, isOdd, arith::SubIOp::create(b, last, rank),
                                 rank);
}

void RingEmitter::emitTile(Value index) {
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
    if (ringPlan.groupHeads != 0) {
      Value size = context.i32(ringPlan.groupHeads);
      Value group;
      std::tie(group, inGroup) =
          divide(index, arith::MulIOp::create(b, size, tilesPerHead));
      first = arith::MulIOp::create(b, group, size);
      heads = arith::MinSIOp::create(b, size, sub(allHeads, first));
      // The end of a group meets tiles of its own length, and the last group
      // descends. A counter deals evenly whatever comes next.
      if (!ringPlan.dynamic) {
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
    head = b.createOrFold<arith::AddIOp>(first, offset);
  } else {
    std::tie(head, at.tile) = divide(index, tilesPerHead);
  }
  std::tie(at.batch, at.head) = divide(head, context.getHeads());
  at.kvHead = emitKVHead(at.head);
  emitLengths();
  walk = emitClusterTile(context, at.tile, place, ringPlan.cluster, queries,
                         keys, blockM, ringPlan.blockN);
  row = walk.row;
  bounds = walk.bounds;
}

FailureOr<SmallVector<Value>> RingEmitter::emitIfThere(
    ValueRange carried,
    function_ref<FailureOr<SmallVector<Value>>(ValueRange)> body) {
  if (!facts.varlen)
    return body(carried);
  // The tiles of the longest sequence are dealt for all.
  Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                       walk.firstRow, queries);
  auto branch = scf::IfOp::create(b, carried.getTypes(), exists,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, carried);
  b.setInsertionPointToStart(branch.thenBlock());
  FailureOr<SmallVector<Value>> next = body(carried);
  if (failed(next))
    return failure();
  scf::YieldOp::create(b, *next);
  return SmallVector<Value>(branch.getResults());
}

TileLoopOp RingEmitter::emitTileLoop(
    function_ref<SmallVector<Value>()> init,
    function_ref<FailureOr<SmallVector<Value>>(ValueRange)> body) {
  SmallVector<Value> inits = init();
  bool isWhole = true;
  auto emitBody = [&](OpBuilder &builder, Location, Value tile,
                      ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(builder.getInsertionBlock());
    emitTile(tile);
    FailureOr<SmallVector<Value>> next = emitIfThere(carried, body);
    isWhole = succeeded(next);
    if (isWhole)
      YieldOp::create(b, *next);
  };
  // In turns of alternating direction whoever got the longest tile of one turn
  // gets the shortest of the next.
  TileScheduler scheduler =
      isLongestFirst() ? TileScheduler::Snake : TileScheduler::Strided;
  if (ringPlan.dynamic)
    scheduler = TileScheduler::Dynamic;
  auto loop = TileLoopOp::create(b, allTiles, scheduler, inits, emitBody);
  return isWhole ? loop : TileLoopOp();
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Value RingEmitter::emitOperandA(Value p) {
  RankedTensorType type =
      tileType({blockM, ringPlan.blockN}, facts.elementType);
  if (facts.isNarrow()) {
    KeyOrder order = KeyOrder::Interleaved;
    if (!needsTransposer(facts))
      order = ringPlan.keyQuads ? KeyOrder::Quads : KeyOrder::Plain;
    return NarrowOperandOp::create(b, type, p, order);
  }
  return arith::TruncFOp::create(b, type, p);
}

Value RingEmitter::emitOperandB(Value slot) {
  // Slots of 8-bit values are transposed by whoever fills them.
  if (!facts.isNarrow() && !facts.hasTransposedValues())
    return slot;
  int64_t rows = cast<BufferType>(slot.getType()).getShape()[0];
  return TransposeOp::create(b, bufferType({ringPlan.blockN, rows}), slot);
}

/// Makes probabilities large where they are 8-bit floats, whose smallest normal
/// number is 2^-6 (e4m3): the largest is 2^8, which no rounding touches. With
/// so few digits only the true maximum will do, so that `threshold` lets it
/// grow by nothing. `optimistic` knows nothing but sums, for which flat rows
/// need room (docs/Rationale/NarrowTypes.md).
static void setNarrowRange(OnlineSoftmaxOp softmax) {
  bool bets = softmax.getPolicy() == SoftmaxPolicy::Optimistic;
  softmax.setOffset(APFloat(bets ? 3.0f : 8.0f));
  softmax.setGrowth(APFloat(bets ? 4.0f : 0.0f));
  softmax.setLimit(APFloat(440.0f));
}

void RingEmitter::emitTransposition(const BlockOperands &operands,
                                    Value cursor) {
  auto [slot, token] = acquire(operands.values, cursor, operands.transposer);
  LocalTransposeOp::create(b, slot, operands.transposed);
  release(operands.values, token, operands.transposer);
}

FailureOr<SmallVector<Value>> RingEmitter::emitBlock(
    const BlockOperands &operands, Value key, ValueRange carried,
    function_ref<SmallVector<Value>(Value, ValueRange)> between) {
  RankedTensorType scoreType = f32Tile({blockM, ringPlan.blockN}),
                   outType = f32Tile({blockM, facts.valueDim});
  auto inFlight = [&](RankedTensorType type) {
    return InFlightType::get(b.getContext(), type.getShape(),
                             type.getElementType());
  };
  auto wait = [&](RankedTensorType type, Value product) {
    return WgmmaWaitOp::create(b, type, product, /*pending=*/0).getResult(0);
  };
  auto [keyTile, keyToken] = acquire(operands.keys, carried[3], operands.role);
  Value transposed = TransposeOp::create(
      b, bufferType({getKeyColumns(facts), ringPlan.blockN}), keyTile);
  auto unlessWhole = [&](int64_t used, int64_t columns) {
    return used == columns ? IntegerAttr() : b.getI64IntegerAttr(used);
  };
  Value product = WgmmaOp::create(
      b, inFlight(scoreType), operands.queries, transposed, /*c=*/Value(),
      /*columns=*/IntegerAttr(),
      unlessWhole(getKeyDepth(facts), getKeyColumns(facts)));
  // One place for all blocks: it is free while QK runs, or, where PV of the
  // last block then runs too, behind the softmax.
  bool transposes = static_cast<bool>(operands.transposed);
  if (transposes && !ringPlan.qkAhead)
    emitTransposition(operands, carried[4]);
  Value s = wait(scoreType, product);
  release(operands.keys, keyToken, operands.role);
  if (failed(emitScores(b, key, s, ringPlan.keyQuads)))
    return failure();
  auto softmax =
      OnlineSoftmaxOp::create(b, s, carried[0], carried[1], carried[2],
                              operands.scale, ringPlan.softmax);
  if (facts.isNarrow())
    setNarrowRange(softmax);
  SmallVector<Value> others;
  if (between)
    others = between(key, carried.drop_front(5));
  if (transposes && ringPlan.qkAhead)
    emitTransposition(operands, carried[4]);
  Value p = emitOperandA(softmax.getP());
  if (operands.probabilities) {
    LocalStoreOp::create(b, p, operands.probabilities);
    p = operands.probabilities;
  }
  Value valueTile = operands.transposed, valueToken;
  if (!transposes)
    std::tie(valueTile, valueToken) =
        acquire(operands.values, carried[4], operands.role);
  Value sum = WgmmaOp::create(
      b, inFlight(outType), p, emitOperandB(valueTile), softmax.getNewO(),
      unlessWhole(facts.valueDim, getValueColumns(facts)),
      /*depth=*/IntegerAttr());
  Value o = wait(outType, sum);
  if (!transposes)
    release(operands.values, valueToken, operands.role);
  SmallVector<Value> next = {softmax.getNewM(), softmax.getNewL(), o,
                             advance(carried[3], operands.keys),
                             advance(carried[4], operands.values)};
  llvm::append_range(next, others);
  return next;
}

KVLoopOp RingEmitter::emitBlocks(
    const BlockOperands &operands, ValueRange inits,
    function_ref<SmallVector<Value>(Value, ValueRange)> between) {
  bool isWhole = true;
  auto body = [&](OpBuilder &builder, Location, Value key, ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(builder.getInsertionBlock());
    FailureOr<SmallVector<Value>> next =
        emitBlock(operands, key, carried, between);
    isWhole = succeeded(next);
    if (isWhole)
      YieldOp::create(b, *next);
  };
  auto loop = KVLoopOp::create(b, bounds.begin, bounds.fullBegin,
                               bounds.fullEnd, bounds.end, ringPlan.blockN,
                               /*stages=*/1, inits, body);
  loop.setQkAhead(ringPlan.qkAhead);
  return isWhole ? loop : KVLoopOp();
}
