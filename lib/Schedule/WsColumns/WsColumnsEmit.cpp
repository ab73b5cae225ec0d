//===- WsColumnsEmit.cpp - Memory, loads and results of ws_columns --------===//
//
// WsColumnsSoftmax.cpp has the two warpgroups.
//
//===----------------------------------------------------------------------===//

#include "WsColumnsEmitter.h"

using namespace mlir;
using namespace mlir::attn;

TilePlan WsColumnsEmitter::getTilePlan(WsColumnsPlanAttr plan) {
  TilePlan tilePlan = {kColumnsRows, plan.getBlockN(), plan.getOrder(),
                       plan.getGroupHeads(), plan.getCluster()};
  tilePlan.ctasPerTile = plan.getDepthCtas();
  return tilePlan;
}

void WsColumnsEmitter::makeExchange() {
  sChannel =
      makeChannel("s", /*stages=*/1,
                  {{kSender, SignalKind::Tx}, {kAdder, SignalKind::Arrive}});
  // A store of a warp, 8 columns of 8 rows, is a run of bytes.
  sent = alloc(
      "s", BufferType::get(b.getContext(), {kColumnsRows, plan.getBlockN()},
                           b.getF32Type(),
                           SwizzledLayoutAttr::get(b.getContext(), /*span=*/32),
                           MemorySpace::Shared));
}

void WsColumnsEmitter::makeRings() {
  int64_t slice = plan.getSlice(), blockN = plan.getBlockN();
  keySlices = countKeySlices(facts, plan);
  own = {0, plan.getSoftmaxColumns() / slice};
  others = {own.count,
            countSlices(getOwnColumns(facts, plan), plan) - own.count};
  RingSpec queries = {"q",   RingRows::Queries, 1,       kColumnsRows,
                      slice, kKeyLoader,        kSoftmax};
  queries.together = keySlices;
  q = makeRing(queries);
  auto keys = [&](StringRef name, int64_t stages, Role from, Role to) {
    return RingSpec{name, RingRows::Keys, stages, blockN, slice, from, to};
  };
  k = makeRing(keys("k", plan.getKStages(), kKeyLoader, kSoftmax));
  // An odd number of slices leaves the second CTA one without a column.
  if (q.view == TensorMapView::Packed && isDepthDivided() &&
      keySlices * plan.getDepthCtas() > countSlices(facts.headDim, plan)) {
    addSpare(q);
    addSpare(k);
  }
  v = makeRing(keys("v", plan.getVStages(), kValueLoader, kSoftmax));
  RingSpec otherValues = keys("w", plan.getWStages(), kOtherLoader, kColumns);
  otherValues.tensor = "v";
  w = makeRing(otherValues);
  auto handOver = [&](StringRef name) {
    return makeChannel(
        name, /*stages=*/1,
        {{kSoftmax, SignalKind::Arrive}, {kColumns, SignalKind::Arrive}});
  };
  auto rows = [&](StringRef name) {
    return alloc(name,
                 BufferType::get(b.getContext(), {kColumnsRows}, b.getF32Type(),
                                 AutoLayoutAttr::get(b.getContext()),
                                 MemorySpace::Shared));
  };
  pChannel = handOver("p");
  probabilities = alloc("p", bufferType({kColumnsRows, blockN}));
  factors = rows("factor");
  scaleChannel = handOver("scale");
  scales = rows("scale");
  if (isDepthDivided())
    makeExchange();
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

Value WsColumnsEmitter::emitFirstColumn(int64_t index, int64_t perCTA) {
  Value column = context.i32(index * plan.getSlice());
  if (!isDepthDivided())
    return column;
  return arith::AddIOp::create(
      b, column, arith::MulIOp::create(b, rank, context.i32(perCTA)));
}

void WsColumnsEmitter::loadQueries(Value cursor) {
  auto free = ChannelAcquireOp::create(b, q.channel, cursor, kKeyLoader);
  for (int64_t i = 0; i < keySlices; ++i) {
    Value slot = SlotOp::create(b, q.slotType, q.buffer, context.i32(i),
                                /*distance=*/IntegerAttr());
    fill(q, slot, free.getToken(), at.head, row,
         emitFirstColumn(i, keySlices * plan.getSlice()));
  }
  release(q, free.getToken(), kKeyLoader);
}

Value WsColumnsEmitter::loadBlocks(const Ring &ring, Role role,
                                   SliceRange range, Value cursor) {
  Value one = context.i32(1);
  Value trips = b.createOrFold<arith::SubIOp>(walk.end, walk.begin);
  Value last = arith::SubIOp::create(b, walk.end, one);
  int64_t perCTA = role.name == kKeyLoader.name ? keySlices * plan.getSlice()
                                                : getOwnColumns(facts, plan);
  auto body = [&](OpBuilder &builder, Location, Value index,
                  ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(builder.getInsertionBlock());
    Value block = arith::SubIOp::create(b, last, index);
    Value key = arith::MulIOp::create(b, block, context.i32(plan.getBlockN()));
    Value next = carried[0];
    for (int64_t i = 0; i < range.count; ++i) {
      auto [slot, token] = acquire(ring, next, role);
      fill(ring, slot, token, at.kvHead, key,
           emitFirstColumn(range.first + i, perCTA));
      release(ring, token, role);
      next = advance(next, ring);
    }
    scf::YieldOp::create(b, next);
  };
  return scf::ForOp::create(b, context.i32(0), trips, one, cursor, body)
      .getResult(0);
}

LogicalResult WsColumnsEmitter::emitLoader(const Ring &ring, Role role,
                                           SliceRange range, bool withQueries) {
  TileLoopOp loop;
  elect([&]() {
    prefetchMaps({withQueries ? q.map : Value(), ring.map});
    loop = emitTileLoop(
        [&] {
          SmallVector<Value> cursors = {start(ring.channel, role)};
          if (withQueries)
            cursors.push_back(start(q.channel, role));
          return cursors;
        },
        [&](ValueRange cursors) -> FailureOr<SmallVector<Value>> {
          if (withQueries)
            loadQueries(cursors[1]);
          SmallVector<Value> next = {loadBlocks(ring, role, range, cursors[0])};
          if (withQueries)
            next.push_back(advance(cursors[1], q));
          return next;
        });
  });
  return success(static_cast<bool>(loop));
}

LogicalResult WsColumnsEmitter::emitKeyLoader() {
  return emitLoader(k, kKeyLoader, {0, keySlices}, /*withQueries=*/true);
}

LogicalResult WsColumnsEmitter::emitValueLoader() {
  return emitLoader(v, kValueLoader, own, /*withQueries=*/false);
}

LogicalResult WsColumnsEmitter::emitOtherLoader() {
  return emitLoader(w, kOtherLoader, others, /*withQueries=*/false);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

SmallVector<Value> WsColumnsEmitter::emitInitialResults(SliceRange range) {
  SmallVector<Value> results;
  for (int64_t i = 0; i < range.count; ++i)
    results.push_back(
        splat(f32Tile({kColumnsRows, getResultColumns(range.first + i)}), 0));
  return results;
}

void WsColumnsEmitter::storeResults(SliceRange range, ValueRange results,
                                    Value factor) {
  for (auto [i, result] : llvm::enumerate(results)) {
    int64_t slice = range.first + i;
    Value view =
        emitResultView("o", slice * plan.getSlice(), getResultColumns(slice),
                       isDepthDivided() ? rank : Value(),
                       isDepthDivided() ? getOwnColumns(facts, plan) : 0);
    StoreResultOp::create(b, emitQuotient(result, factor), view, row,
                          /*scratch=*/Value(), /*map=*/Value(),
                          /*coordinates=*/ValueRange(), plan.getEpilogue());
  }
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

LogicalResult WsColumnsEmitter::run() {
  makeRings();
  emitExtents();
  auto op = WarpSpecializeOp::create(
      b,
      b.getStrArrayAttr(
          {kSoftmax, kColumns, kKeyLoader, kValueLoader, kOtherLoader}),
      b.getDenseI64ArrayAttr({4, 4, 1, 1, 2}),
      b.getDenseI64ArrayAttr({4, 1, 4, 1, 0, 0, 0, 0, 0, 0}),
      b.getDenseI64ArrayAttr({kColumnsRegisters, kColumnsRegisters,
                              kLoaderRegisters, kLoaderRegisters,
                              kLoaderRegisters}),
      /*partitionsCount=*/5);
  for (auto [region, emit] :
       llvm::zip(op.getPartitions(),
                 std::array{&WsColumnsEmitter::emitSoftmax,
                            &WsColumnsEmitter::emitColumns,
                            &WsColumnsEmitter::emitKeyLoader,
                            &WsColumnsEmitter::emitValueLoader,
                            &WsColumnsEmitter::emitOtherLoader})) {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&region);
    auto end = YieldOp::create(b, ValueRange());
    b.setInsertionPoint(end);
    if (failed((this->*emit)()))
      return failure();
  }
  return success();
}

LogicalResult WsColumnsSchedule::emit(KernelContext &context,
                                      PlanAttrInterface plan) const {
  return WsColumnsEmitter(context, cast<WsColumnsPlanAttr>(plan)).run();
}
