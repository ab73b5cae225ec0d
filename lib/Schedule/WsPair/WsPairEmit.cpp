//===- WsPairEmit.cpp - Memory, loads and results of ws_pair --------------===//
//
// WsPairRows.cpp has the partition with rows.
//
//===----------------------------------------------------------------------===//

#include "WsPairEmitter.h"

using namespace mlir;
using namespace mlir::attn;

TilePlan WsPairEmitter::getTilePlan(WsPairPlanAttr plan) {
  TilePlan tilePlan = {kPairRows, plan.getBlockN(), plan.getOrder(),
                       plan.getGroupHeads(), kPairCTAs};
  tilePlan.ctasPerTile = kPairCTAs;
  return tilePlan;
}

void WsPairEmitter::makeExchanges() {
  auto exchange = [&](StringRef name) {
    static constexpr StringRef parts[] = {"upper", "lower"};
    return makeChannel(
        name, /*stages=*/1,
        {{kPairSender, SignalKind::Tx}, {kPairReader, SignalKind::Arrive}},
        parts, parts);
  };
  MLIRContext *mlir = b.getContext();
  pChannel = exchange("p");
  // Of a store of a warp the rows lie as close as they can.
  probabilities =
      alloc("p", BufferType::get(mlir, {kPairRows, getOwnKeys(plan)},
                                 facts.elementType,
                                 SwizzledLayoutAttr::get(mlir, /*span=*/32),
                                 MemorySpace::Shared));
  maxima = alloc("m", bufferType({kPairRows}, b.getF32Type()));
  lChannel = exchange("l");
  sums = alloc("l", bufferType(getPartialSumsType(mlir, kPairRows).getShape(),
                               b.getF32Type()));
}

void WsPairEmitter::makeRings() {
  keySlices = countKeySlices(facts, plan);
  valueSlices = countValueSlices(facts, plan);
  RingSpec queries = {"q",   RingRows::Queries, 1,        kPairRows,
                      slice, kPairLoader,       kPairUser};
  queries.together = keySlices;
  q = makeRing(queries);
  makeExchanges();
  RingSpec keys = {"kv",  RingRows::Keys, plan.getStages(), getOwnKeys(plan),
                   slice, kPairLoader,    kPairUser};
  keys.tensor = "k";
  k = makeRing(keys);
  v = k;
  v.name = "v";
  v.view = TensorMapView::Whole;
  addMap(v);
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

void WsPairEmitter::loadQueries(Value cursor) {
  auto free = ChannelAcquireOp::create(b, q.channel, cursor, kPairLoader);
  for (int64_t i = 0; i < keySlices; ++i) {
    Value slot = SlotOp::create(b, q.slotType, q.buffer, context.i32(i),
                                /*distance=*/IntegerAttr());
    fill(q, slot, free.getToken(), at.head, row, context.i32(i * slice));
  }
  release(q, free.getToken(), kPairLoader);
}

Value WsPairEmitter::loadKeys(Value block, int64_t index, Value cursor) {
  Value first = arith::MulIOp::create(b, block, context.i32(plan.getBlockN()));
  auto [slot, token] = acquire(k, cursor, kPairLoader);
  fill(k, slot, token, at.kvHead, arith::AddIOp::create(b, first, ownKey),
       context.i32(index * slice));
  release(k, token, kPairLoader);
  return advance(cursor, k);
}

Value WsPairEmitter::loadValues(Value block, int64_t index, Value cursor) {
  Value first = arith::MulIOp::create(b, block, context.i32(plan.getBlockN()));
  Value key =
      arith::AddIOp::create(b, first, index < valueSlices ? ownKey : otherKey);
  Value column = arith::AddIOp::create(
      b, arith::MulIOp::create(b, rank, context.i32(getOwnColumns(facts))),
      context.i32(index % valueSlices * slice));
  auto [slot, token] = acquire(v, cursor, kPairLoader);
  fill(v, slot, token, at.kvHead, key, column);
  release(v, token, kPairLoader);
  return advance(cursor, v);
}

void WsPairEmitter::forEachSlice(function_ref<void(int64_t)> keys,
                                 function_ref<void(int64_t)> values) const {
  int64_t steps = std::max(keySlices, countValueSlots());
  for (int64_t i = 0; i < steps; ++i) {
    if (i < keySlices)
      keys(i);
    if (i < countValueSlots())
      values(i);
  }
}

Value WsPairEmitter::emitTrips(Value begin, Value end, Value cursor,
                               function_ref<Value(Value, Value)> emit) {
  auto body = [&](OpBuilder &builder, Location, Value index,
                  ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(builder.getInsertionBlock());
    scf::YieldOp::create(b, emit(index, carried[0]));
  };
  return scf::ForOp::create(b, begin, end, context.i32(1), cursor, body)
      .getResult(0);
}

SmallVector<Value> WsPairEmitter::emitLoaderTile(ValueRange cursors) {
  loadQueries(cursors[0]);
  Value zero = context.i32(0), one = context.i32(1);
  Value trips = b.createOrFold<arith::SubIOp>(walk.end, walk.begin);
  Value some = b.createOrFold<arith::MinSIOp>(trips, one);
  Value last = arith::SubIOp::create(b, walk.end, one);
  Value cursor = cursors[1];
  cursor = emitTrips(zero, some, cursor, [&](Value, Value cursor) {
    for (int64_t i = 0; i < keySlices; ++i)
      cursor = loadKeys(last, i, cursor);
    return cursor;
  });
  cursor = emitTrips(one, trips, cursor, [&](Value index, Value cursor) {
    Value block = arith::SubIOp::create(b, last, index);
    Value before = arith::AddIOp::create(b, block, one);
    forEachSlice([&](int64_t i) { cursor = loadKeys(block, i, cursor); },
                 [&](int64_t i) { cursor = loadValues(before, i, cursor); });
    return cursor;
  });
  cursor = emitTrips(zero, some, cursor, [&](Value, Value cursor) {
    for (int64_t i = 0; i < countValueSlots(); ++i)
      cursor = loadValues(walk.begin, i, cursor);
    return cursor;
  });
  return {advance(cursors[0], q), cursor};
}

LogicalResult WsPairEmitter::emitLoader() {
  TileLoopOp loop;
  elect([&]() {
    prefetchMaps({q.map, k.map, v.map});
    loop = emitTileLoop(
        [&]() -> SmallVector<Value> {
          return {start(q.channel, kPairLoader), start(k.channel, kPairLoader)};
        },
        [&](ValueRange cursors) -> FailureOr<SmallVector<Value>> {
          return emitLoaderTile(cursors);
        });
  });
  return success(static_cast<bool>(loop));
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void WsPairEmitter::storeResults(ValueRange results, Value factor) {
  int64_t all = getOwnColumns(facts);
  for (auto [i, result] : llvm::enumerate(results)) {
    Value view = emitResultView("o", i * slice, getResultColumns(i), rank, all);
    StoreResultOp::create(b, emitQuotient(result, factor), view, row,
                          /*scratch=*/Value(), /*map=*/Value(),
                          /*coordinates=*/ValueRange(), plan.getEpilogue());
  }
}

void WsPairEmitter::emitOwnLSE(const FinalRows &rows) {
  OpBuilder::InsertionGuard guard(b);
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rank, context.i32(0));
  auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  emitLSE(rows.m, rows.l, emitResultView("lse"));
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

LogicalResult WsPairEmitter::run() {
  makeRings();
  emitExtents();
  ownKey = arith::MulIOp::create(b, rank, context.i32(getOwnKeys(plan)));
  otherKey = arith::SubIOp::create(b, context.i32(getOwnKeys(plan)), ownKey);
  auto op = WarpSpecializeOp::create(
      b, b.getStrArrayAttr({kPairUser.partition, kPairLoader.partition}),
      b.getDenseI64ArrayAttr({8, 4}), b.getDenseI64ArrayAttr({8, 1, 0, 0}),
      b.getDenseI64ArrayAttr({kPairRegisters, kPairLoaderRegisters}),
      /*partitionsCount=*/2);
  for (auto [region, emit] :
       llvm::zip(op.getPartitions(), std::array{&WsPairEmitter::emitRows,
                                                &WsPairEmitter::emitLoader})) {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&region);
    auto end = YieldOp::create(b, ValueRange());
    b.setInsertionPoint(end);
    if (failed((this->*emit)()))
      return failure();
  }
  return success();
}

LogicalResult WsPairSchedule::emit(KernelContext &context,
                                   PlanAttrInterface plan) const {
  return WsPairEmitter(context, cast<WsPairPlanAttr>(plan)).run();
}
