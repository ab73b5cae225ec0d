//===- WsWgmmaProducer.cpp - The producers of ws_wgmma --------------------===//

#include "../Tma/Widening.h"
#include "WsWgmmaEmitter.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// The producer
//===----------------------------------------------------------------------===//

void WsWgmmaEmitter::loadQueries(const TileCursors &cursors) {
  load(q, cursors.q, kProducer, at.head, row);
}

void WsWgmmaEmitter::loadBlock(Value block, const TileCursors &cursors) {
  Value key = arith::MulIOp::create(b, block, context.i32(plan.getBlockN()));
  load(k, cursors.k, kProducer, at.kvHead, key);
  load(v, cursors.v, kProducer, at.kvHead, key);
}

SmallVector<Value> WsWgmmaEmitter::emitBlockLoads(ArrayRef<const Ring *> rings,
                                                  ArrayRef<Value> cursors,
                                                  StringRef role) {
  Value one = context.i32(1);
  Value trips = b.createOrFold<arith::SubIOp>(walk.end, walk.begin);
  Value lastBlock = arith::SubIOp::create(b, walk.end, one);
  auto loop = scf::ForOp::create(b, context.i32(0), trips, one, cursors);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value block = arith::SubIOp::create(b, lastBlock, loop.getInductionVar());
  Value key = arith::MulIOp::create(b, block, context.i32(plan.getBlockN()));
  for (auto [ring, cursor] : llvm::zip(rings, loop.getRegionIterArgs()))
    load(*ring, cursor, role, at.kvHead, key);
  SmallVector<Value> next;
  for (auto [ring, cursor] : llvm::zip(rings, loop.getRegionIterArgs()))
    next.push_back(advance(cursor, *ring));
  scf::YieldOp::create(b, next);
  return loop.getResults();
}

TileCursors WsWgmmaEmitter::emitKeysAhead(TileCursors cursors) {
  Value zero = context.i32(0), one = context.i32(1);
  Value trips = b.createOrFold<arith::SubIOp>(walk.end, walk.begin);
  Value lastBlock = arith::SubIOp::create(b, walk.end, one);
  Value first = b.createOrFold<arith::MinSIOp>(trips, one);
  Value both = b.createOrFold<arith::SubIOp>(trips, first);
  auto emitLoad = [&](const Ring &ring, Value trip, Value &cursor) {
    Value block = arith::SubIOp::create(b, lastBlock, trip);
    Value key = arith::MulIOp::create(b, block, context.i32(plan.getBlockN()));
    load(ring, cursor, kProducer, at.kvHead, key);
    cursor = advance(cursor, ring);
  };
  TileCursors next =
      emitTrips(zero, first, cursors,
                [&](Value trip, TileCursors &at) { emitLoad(k, trip, at.k); });
  next = emitTrips(zero, both, next, [&](Value trip, TileCursors &at) {
    emitLoad(k, arith::AddIOp::create(b, trip, first), at.k);
    emitLoad(v, trip, at.v);
  });
  return emitTrips(both, trips, next, [&](Value trip, TileCursors &at) {
    emitLoad(v, trip, at.v);
  });
}

TileCursors WsWgmmaEmitter::emitProducerTile(TileCursors cursors) {
  loadQueries(cursors);
  if (hasValueProducer()) {
    Value nextK = emitBlockLoads({&k}, {cursors.k}, kProducer).front();
    return {advance(cursors.q, q), nextK, Value()};
  }
  // Several copies of a page's rows take a while to start: keys are asked for
  // while the loading thread would wait for the slot of the values in front of
  // them.
  if (facts.isPaged()) {
    TileCursors next = emitKeysAhead(cursors);
    next.q = advance(cursors.q, q);
    return next;
  }
  SmallVector<Value> next =
      emitBlockLoads({&k, &v}, {cursors.k, cursors.v}, kProducer);
  return {advance(cursors.q, q), next[0], next[1]};
}

LogicalResult WsWgmmaEmitter::emitValueProducer() {
  LogicalResult status = success();
  elect([&]() {
    prefetchMaps({v.map, v.whole});
    TileLoopOp loop = emitTileLoop(
        [&]() -> SmallVector<Value> {
          return {CursorStartOp::create(b, v.channel, kValueProducer)};
        },
        [&](ValueRange carried) -> FailureOr<SmallVector<Value>> {
          return emitBlockLoads({&v}, {carried[0]}, kValueProducer);
        });
    if (loop)
      setDealer(loop, dealer);
    else
      status = failure();
  });
  return status;
}

LogicalResult WsWgmmaEmitter::emitProducer() {
  LogicalResult status = success();
  elect([&]() {
    prefetchMaps(
        {q.map, k.map, hasValueProducer() ? Value() : v.map, resultMap.map});
    prefetchMaps({k.whole, hasValueProducer() ? Value() : v.whole});
    status = emitTiles(kProducer, [&](TileCursors cursors) {
      return emitProducerTile(cursors);
    });
  });
  return status;
}

//===----------------------------------------------------------------------===//
// The producer of 8-bit operands
//===----------------------------------------------------------------------===//

void WsWgmmaEmitter::emitTransposition(TileCursors &cursors) {
  auto [source, filled] = acquire(v, cursors.source, kTransposer);
  auto [dest, free] = acquire(vt, cursors.dest, kTransposer);
  LocalTransposeOp::create(b, source, dest);
  release(v, filled, kTransposer);
  release(vt, free, kTransposer);
  cursors.source = advance(cursors.source, v);
  cursors.dest = advance(cursors.dest, vt);
}

TileCursors
WsWgmmaEmitter::emitTrips(Value begin, Value end, TileCursors cursors,
                          llvm::function_ref<void(Value, TileCursors &)> body) {
  // The cursor of q is not carried through blocks.
  auto list = [](const TileCursors &at) {
    return llvm::to_vector(llvm::drop_begin(at.list()));
  };
  auto get = [&](ValueRange carried) {
    SmallVector<Value> all = {cursors.q};
    llvm::append_range(all, carried);
    return TileCursors(all);
  };
  auto loop = scf::ForOp::create(b, begin, end, context.i32(1), list(cursors));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  TileCursors next = get(loop.getRegionIterArgs());
  body(loop.getInductionVar(), next);
  scf::YieldOp::create(b, list(next));
  return get(loop.getResults());
}

TileCursors WsWgmmaEmitter::emitTransposingTile(TileCursors cursors) {
  elect([&]() { loadQueries(cursors); });
  // The transposition runs ahead of the consumers as far as the ring vt lets
  // it, and loads run one block ahead of that. They come behind it, since the
  // thread that loads waits for a slot, and its warp would be the last one; but
  // the second block of a tile is loaded while the first one is on its way.
  Value zero = context.i32(0), one = context.i32(1), two = context.i32(2);
  Value trips = b.createOrFold<arith::SubIOp>(walk.end, walk.begin);
  Value lastBlock = arith::SubIOp::create(b, walk.end, one);
  Value some = b.createOrFold<arith::MinSIOp>(trips, one);
  Value first = b.createOrFold<arith::MinSIOp>(trips, two);
  auto load = [&](Value trip, TileCursors &at) {
    Value block = arith::SubIOp::create(b, lastBlock, trip);
    elect([&]() { loadBlock(block, at); });
    advanceBlock(at);
  };
  auto transpose = [&](Value, TileCursors &at) { emitTransposition(at); };
  TileCursors next = emitTrips(zero, first, cursors, load);
  next = emitTrips(zero, some, next, transpose);
  next = emitTrips(two, trips, next, [&](Value trip, TileCursors &at) {
    emitTransposition(at);
    load(trip, at);
  });
  next = emitTrips(one, first, next, transpose);
  next.q = advance(cursors.q, q);
  return next;
}

LogicalResult WsWgmmaEmitter::emitTransposingProducer() {
  elect([&]() { prefetchMaps({q.map, k.map, v.map, resultMap.map}); });
  return emitTiles(kProducer, [&](TileCursors cursors) {
    return emitTransposingTile(cursors);
  });
}

//===----------------------------------------------------------------------===//
// Who widens keys and values
//===----------------------------------------------------------------------===//

/// A tile of f16 times a number of each row. A number is a power of two, which
/// f16 may not hold without losing digits of the rest, times one from 1 to 2.
static Value emitScaled(ImplicitLocOpBuilder &b, Value tile, Value scales) {
  auto type = cast<RankedTensorType>(tile.getType()),
       rows = cast<RankedTensorType>(scales.getType());
  RankedTensorType words = rows.clone(b.getI32Type());
  auto constant = [&](uint32_t bits) -> Value {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(words, b.getI32IntegerAttr(int32_t(bits))));
  };
  Value bits = arith::BitcastOp::create(b, words, scales);
  auto multiply = [&](Value x, Value factor) -> Value {
    Value spread =
        BroadcastOp::create(b, type.clone(b.getF32Type()),
                            arith::BitcastOp::create(b, rows, factor));
    return arith::MulFOp::create(b, x,
                                 arith::TruncFOp::create(b, type, spread));
  };
  constexpr uint32_t kExponent = 0x7f800000, kOne = 0x3f800000;
  Value mantissa = arith::OrIOp::create(
      b, arith::AndIOp::create(b, bits, constant(~kExponent)), constant(kOne));
  Value power = arith::AndIOp::create(b, bits, constant(kExponent));
  return multiply(multiply(tile, power), mantissa);
}

void WsWgmmaEmitter::emitWidening(const Ring &from, const Ring &to,
                                  Value scales, Value scaleRing, Value &source,
                                  Value &dest) {
  auto [narrow, filled] = acquire(from, source, kWidener);
  Value tile = loadNarrowRows(b, narrow);
  auto [wide, free] = acquire(to, dest, kWidener);
  tile = emitWidened(b, tile, getOperandType());
  if (scaleRing)
    LocalStoreOp::create(b, scales, emitRowNumbers(wide, scaleRing));
  else if (scales)
    tile = emitScaled(b, tile, scales);
  LocalStoreOp::create(b, tile, wide);
  // One fence for both: it takes longer than the slot waits.
  release(from, filled, kWidener);
  release(to, free, kWidener);
  source = advance(source, from);
  dest = advance(dest, to);
}

Value WsWgmmaEmitter::loadScales(Value view, Value block) {
  auto layout = BlockedLayoutAttr::get(b.getContext(), /*perThread=*/{1},
                                       kWarpgroupWarps, /*order=*/{0});
  auto type = RankedTensorType::get({plan.getBlockN()}, b.getF32Type(), layout);
  // Behind the last block, and of a tile without any, those of an own one.
  Value own = arith::MaxSIOp::create(b, block, walk.begin);
  Value key = arith::MulIOp::create(b, own, context.i32(plan.getBlockN()));
  return GlobalLoadOp::create(b, type, view, key);
}

SmallVector<Value> WsWgmmaEmitter::emitWideningTile(ValueRange cursors) {
  Value zero = context.i32(0), one = context.i32(1);
  SmallVector<Value> views;
  if (facts.kScales)
    views = {source->emitColumnView("k_scales", at, /*column=*/0),
             source->emitColumnView("v_scales", at, /*column=*/0)};
  Value trips = b.createOrFold<arith::SubIOp>(walk.end, walk.begin);
  Value lastBlock = arith::SubIOp::create(b, walk.end, one);
  // Behind the cursors, which go in pairs, scales of the block.
  SmallVector<Value> carried(cursors);
  for (Value view : views)
    carried.push_back(loadScales(view, lastBlock));
  auto blocks = scf::ForOp::create(b, zero, trips, one, carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(blocks.getBody());
  SmallVector<Value> next(blocks.getRegionIterArgs());
  Value nextBlock = arith::SubIOp::create(
      b, arith::SubIOp::create(b, lastBlock, blocks.getInductionVar()), one);
  auto emitPart = [&](unsigned part, const Ring &from, const Ring &to,
                      Value scaleRing) {
    Value *scales = views.empty() ? nullptr : &next[cursors.size() + part];
    emitWidening(from, to, scales ? *scales : Value(), scaleRing,
                 next[2 * part], next[2 * part + 1]);
    // They arrive while the other tensor is widened.
    if (scales)
      *scales = loadScales(views[part], nextBlock);
  };
  emitPart(0, k, kw, keyScales);
  emitPart(1, v, vw, /*scaleRing=*/Value());
  scf::YieldOp::create(b, next);
  return SmallVector<Value>(blocks.getResults().take_front(cursors.size()));
}

LogicalResult WsWgmmaEmitter::emitWidener() {
  SmallVector<const Ring *> rings = {&k, &kw, &v, &vw};
  TileLoopOp loop = emitTileLoop(
      [&] {
        SmallVector<Value> cursors;
        for (const Ring *ring : rings)
          cursors.push_back(CursorStartOp::create(b, ring->channel, kWidener));
        return cursors;
      },
      [&](ValueRange carried) -> FailureOr<SmallVector<Value>> {
        return emitWideningTile(carried);
      });
  if (!loop)
    return failure();
  setDealer(loop, dealer);
  return success();
}
