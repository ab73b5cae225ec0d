//===- WsWgmmaProducer.cpp - The producers of ws_wgmma --------------------===//

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

void WsWgmmaEmitter::emitWidening(const Ring &from, const Ring &to,
                                  Value &source, Value &dest) {
  // Lanes have a row each, 16 bytes of it and 32 of the wide one: whatever the
  // swizzle, eight of them reach all banks.
  auto layout = BlockedLayoutAttr::get(b.getContext(), /*perThread=*/{1, 16},
                                       kWarpgroupWarps, /*order=*/{0, 1});
  auto type =
      RankedTensorType::get(from.slotType.getShape(), facts.keyType, layout);
  auto [narrow, filled] = acquire(from, source, kWidener);
  Value tile = LocalLoadOp::create(b, type, narrow);
  auto [wide, free] = acquire(to, dest, kWidener);
  LocalStoreOp::create(
      b, arith::ExtFOp::create(b, type.clone(getOperandType()), tile), wide);
  // One fence for both: it takes longer than the slot waits.
  release(from, filled, kWidener);
  release(to, free, kWidener);
  source = advance(source, from);
  dest = advance(dest, to);
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
        Value trips = b.createOrFold<arith::SubIOp>(walk.end, walk.begin);
        auto blocks = scf::ForOp::create(b, context.i32(0), trips,
                                         context.i32(1), carried);
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(blocks.getBody());
        SmallVector<Value> next(blocks.getRegionIterArgs());
        emitWidening(k, kw, next[0], next[1]);
        emitWidening(v, vw, next[2], next[3]);
        scf::YieldOp::create(b, next);
        return SmallVector<Value>(blocks.getResults());
      });
  if (!loop)
    return failure();
  setDealer(loop, dealer);
  return success();
}
