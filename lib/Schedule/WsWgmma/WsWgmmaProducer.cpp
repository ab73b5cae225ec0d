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

TileCursors WsWgmmaEmitter::emitProducerTile(TileCursors cursors) {
  loadQueries(cursors);
  if (hasValueProducer()) {
    Value nextK = emitBlockLoads({&k}, {cursors.k}, kProducer).front();
    return {advance(cursors.q, q), nextK, Value()};
  }
  SmallVector<Value> next =
      emitBlockLoads({&k, &v}, {cursors.k, cursors.v}, kProducer);
  return {advance(cursors.q, q), next[0], next[1]};
}

LogicalResult WsWgmmaEmitter::emitValueProducer() {
  LogicalResult status = success();
  elect([&]() {
    prefetchMaps({v.map});
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

TileCursors WsWgmmaEmitter::emitTransposingTile(TileCursors cursors) {
  elect([&]() { loadQueries(cursors); });
  // Loads run one block ahead of the transposition, which itself runs ahead of
  // the consumers as far as the ring vt lets it.
  Value one = context.i32(1), zero = context.i32(0);
  Value trips = b.createOrFold<arith::SubIOp>(walk.end, walk.begin);
  Value lastBlock = arith::SubIOp::create(b, walk.end, one);
  // The cursor of q is not carried through blocks.
  auto list = [](const TileCursors &cursors) {
    return llvm::to_vector(llvm::drop_begin(cursors.list()));
  };
  auto get = [&](ValueRange carried) {
    SmallVector<Value> all = {cursors.q};
    llvm::append_range(all, carried);
    return TileCursors(all);
  };
  SmallVector<Value> carried = list(cursors);
  Value some = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, trips, zero);
  auto branch = scf::IfOp::create(b, ValueRange(carried).getTypes(), some,
                                  /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, carried);
    b.setInsertionPointToStart(branch.thenBlock());
    elect([&]() { loadBlock(lastBlock, cursors); });
    TileCursors first = cursors;
    advanceBlock(first);
    auto loop = scf::ForOp::create(b, one, trips, one, list(first));
    {
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPointToStart(loop.getBody());
      TileCursors next = get(loop.getRegionIterArgs());
      Value block = arith::SubIOp::create(b, lastBlock, loop.getInductionVar());
      elect([&]() { loadBlock(block, next); });
      advanceBlock(next);
      emitTransposition(next);
      scf::YieldOp::create(b, list(next));
    }
    TileCursors last = get(loop.getResults());
    emitTransposition(last);
    scf::YieldOp::create(b, list(last));
  }
  Value nextQ = advance(cursors.q, q);
  TileCursors next = get(branch.getResults());
  next.q = nextQ;
  return next;
}

LogicalResult WsWgmmaEmitter::emitTransposingProducer() {
  elect([&]() { prefetchMaps({q.map, k.map, v.map, resultMap.map}); });
  return emitTiles(kProducer, [&](TileCursors cursors) {
    return emitTransposingTile(cursors);
  });
}
