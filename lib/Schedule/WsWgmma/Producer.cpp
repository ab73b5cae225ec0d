//===- Producer.cpp - The producers of ws_wgmma ---------------------------===//

#include "Emitter.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// The producer
//===----------------------------------------------------------------------===//

void WsWgmmaEmitter::loadQueries(Value cursor) {
  load(q, cursor, kProducer, at.head, row);
}

void WsWgmmaEmitter::loadBlock(Value block, ValueRange cursors) {
  Value key = arith::MulIOp::create(b, block, context.i32(plan.getBlockN()));
  load(k, cursors[0], kProducer, at.kvHead, key);
  load(v, cursors[1], kProducer, at.kvHead, key);
}

FailureOr<SmallVector<Value>>
WsWgmmaEmitter::emitProducerTile(ValueRange cursors) {
  loadQueries(cursors[0]);
  Value one = context.i32(1);
  Value trips = b.createOrFold<arith::SubIOp>(walk.end, walk.begin);
  Value lastBlock = arith::SubIOp::create(b, walk.end, one);
  auto loop =
      scf::ForOp::create(b, context.i32(0), trips, one, cursors.drop_front());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    loadBlock(arith::SubIOp::create(b, lastBlock, loop.getInductionVar()),
              loop.getRegionIterArgs());
    scf::YieldOp::create(b, ValueRange{advance(loop.getRegionIterArg(0), k),
                                       advance(loop.getRegionIterArg(1), v)});
  }
  return SmallVector<Value>{advance(cursors[0], q), loop.getResult(0),
                            loop.getResult(1)};
}

LogicalResult WsWgmmaEmitter::emitProducer() {
  LogicalResult status = success();
  elect([&]() {
    prefetchMaps({q.map, k.map, v.map, resultMap.map});
    status = emitTiles(kProducer, [&](ValueRange cursors) {
      return emitProducerTile(cursors);
    });
  });
  return status;
}

//===----------------------------------------------------------------------===//
// The producer of 8-bit operands
//===----------------------------------------------------------------------===//

SmallVector<Value> WsWgmmaEmitter::emitTransposition(ValueRange cursors) {
  auto [source, filled] = acquire(v, cursors[0], kTransposer);
  auto [dest, free] = acquire(vt, cursors[1], kTransposer);
  LocalTransposeOp::create(b, source, dest);
  release(v, filled, kTransposer);
  release(vt, free, kTransposer);
  return {advance(cursors[0], v), advance(cursors[1], vt)};
}

FailureOr<SmallVector<Value>>
WsWgmmaEmitter::emitTransposingTile(ValueRange cursors) {
  elect([&]() { loadQueries(cursors[0]); });
  // Loads run one block ahead of the transposition, which itself runs ahead of
  // the consumers as far as the ring vt lets it.
  Value one = context.i32(1), zero = context.i32(0);
  Value trips = b.createOrFold<arith::SubIOp>(walk.end, walk.begin);
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
      SmallVector<Value> next = {advance(values[0], k), advance(values[1], v)};
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
      llvm::append_range(next, emitTransposition(values.drop_front(2)));
      scf::YieldOp::create(b, next);
    }
    SmallVector<Value> results(loop.getResults().take_front(2));
    llvm::append_range(
        results,
        emitTransposition(ValueRange(loop.getResults()).drop_front(2)));
    scf::YieldOp::create(b, results);
  }
  SmallVector<Value> next = {advance(cursors[0], q)};
  llvm::append_range(next, branch.getResults());
  return next;
}

LogicalResult WsWgmmaEmitter::emitTransposingProducer() {
  elect([&]() { prefetchMaps({q.map, k.map, v.map, resultMap.map}); });
  return emitTiles(kProducer, [&](ValueRange cursors) {
    return emitTransposingTile(cursors);
  });
}
