//===- Producer.cpp - The producers of ws_wgmma ---------------------------===//

#include "Emitter.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// The producer
//===----------------------------------------------------------------------===//

void WsWgmmaEmitter::load(const Ring &ring, Value cursor, Value head,
                          Value first) {
  auto [slot, token] = acquire(b, ring, cursor, kProducer);
  // Packed sequences are one batch.
  Value batch = facts.varlen ? context.i32(0) : at.batch;
  Value zero = context.i32(0);
  SmallVector<Value> coordinates = {batch, head, first, zero};
  IntegerAttr stacked;
  if (ring.view == TensorMapView::Transposed) {
    coordinates = {batch, head, zero, first};
  } else if (ring.view == TensorMapView::Quads) {
    Value quad = arith::DivUIOp::create(b, first, context.i32(4));
    coordinates = {batch, head, quad, zero, zero};
    stacked = b.getI64IntegerAttr(2);
  }
  TmaLoadOp::create(b, ring.map, coordinates, slot, token,
                    /*barriers=*/Value(), /*index=*/Value(),
                    /*multicast=*/IntegerAttr(), stacked);
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

void WsWgmmaEmitter::prefetchMaps() {
  for (Value map : {q.map, k.map, v.map, resultMap.map})
    if (map)
      TmaPrefetchOp::create(b, map);
}

LogicalResult WsWgmmaEmitter::emitProducer() {
  LogicalResult status = success();
  elect([&]() {
    prefetchMaps();
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
  elect([&]() { prefetchMaps(); });
  return emitTileLoop(kProducer, [&](ValueRange cursors) {
    return emitTransposingTile(cursors);
  });
}
