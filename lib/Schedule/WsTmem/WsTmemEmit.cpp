//===- WsTmemEmit.cpp - Memory, loads and products of ws_tmem -------------===//
//
// WsTmemSoftmax.cpp has the partitions of the softmaxes.
//
//===----------------------------------------------------------------------===//

#include "../Tma/RingFacts.h"
#include "WsTmemEmitter.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void WsTmemEmitter::makeRings() {
  int64_t stages = plan.getKvStages();
  auto spec = [&](StringRef name, RingRows holds, int64_t count, int64_t rows,
                  int64_t columns) {
    RingSpec spec = {name, holds, count, rows, columns, kLoader, kMultiplier};
    spec.signal = SignalKind::Commit;
    return spec;
  };
  q = makeRing(spec("q", RingRows::Queries, kTmemTiles, kTmemRows,
                    getKeyColumns(facts)));
  k = makeRing(spec("k", RingRows::Keys, stages, plan.getBlockN(),
                    getKeyColumns(facts)));
  if (!sharesRing(facts)) {
    v = makeRing(spec("v", RingRows::Keys, stages, plan.getBlockN(),
                      getValueColumns(facts)));
    return;
  }
  v = k;
  v.name = "v";
  auto map = cast<TensorMapType>(k.map.getType());
  v.map = context.getTensorMap("v", map.getBox(), map.getSwizzle(), k.view);
}

BufferType WsTmemEmitter::tensorType(ArrayRef<int64_t> shape,
                                     Type elementType) {
  MLIRContext *mlir = b.getContext();
  return BufferType::get(mlir, shape, elementType,
                         TmemLayoutAttr::get(mlir, kTmemRows),
                         MemorySpace::Tmem);
}

void WsTmemEmitter::makeTensorTile(int64_t number) {
  MLIRContext *mlir = b.getContext();
  TensorTile &tile = tiles[number];
  std::string suffix = std::to_string(number);
  int64_t blockN = plan.getBlockN();
  // Two probabilities take a column of 32 bits.
  int64_t packed = blockN / 2;
  auto fields =
      b.getArrayAttr({FieldAttr::get(mlir, "s", 0, blockN),
                      FieldAttr::get(mlir, "p", blockN - packed, packed)});
  Type f32 = b.getF32Type();
  Value memory = TmemAllocOp::create(b, tensorType({kTmemRows, blockN}, f32),
                                     b.getStringAttr("s" + suffix),
                                     /*column=*/IntegerAttr(), fields);
  tile.scores =
      TmemFieldOp::create(b, tensorType({kTmemRows, blockN}, f32), memory, "s");
  tile.probabilities = TmemFieldOp::create(
      b, tensorType({kTmemRows, blockN}, facts.elementType), memory, "p");
  tile.results = TmemAllocOp::create(
      b, tensorType({kTmemRows, getValueColumns(facts)}, f32),
      b.getStringAttr("o" + suffix), /*column=*/IntegerAttr(),
      /*fields=*/ArrayAttr());
  tile.channel = makeChannel("t" + suffix, /*stages=*/1,
                             {{kMultiplier, SignalKind::Commit},
                              {kSoftmaxes[number], SignalKind::Arrive}});
}

SmallVector<Value> WsTmemEmitter::getKeyChannels() {
  if (sharesRing(facts))
    return {k.channel};
  return {k.channel, v.channel};
}

SmallVector<Value> WsTmemEmitter::startKeyCursors(StringRef role) {
  SmallVector<Value> cursors;
  for (Value channel : getKeyChannels())
    cursors.push_back(CursorStartOp::create(b, channel, role));
  return cursors;
}

Value WsTmemEmitter::emitSlot(const Ring &ring, Value index) {
  return SlotOp::create(b, ring.slotType, ring.buffer, index,
                        /*distance=*/IntegerAttr());
}

//===----------------------------------------------------------------------===//
// Orders of issue
//===----------------------------------------------------------------------===//

void WsTmemEmitter::addKeySlots(IssueOrder &order) {
  order.channels = getKeyChannels();
  order.slots = {"v", "k"};
  order.slotChannels = {sharesRing(facts) ? 0 : 1, 0};
}

SmallVector<Value> WsTmemEmitter::emitIssueLoop(const IssueOrder &order) {
  SmallVector<StringRef> names;
  SmallVector<int64_t> counts, skews;
  SmallVector<Attribute> uses;
  for (const IssueStatement &statement : order.statements) {
    names.push_back(statement.name);
    counts.push_back(0);
    skews.push_back(statement.skew);
    uses.push_back(b.getStrArrayAttr(statement.uses));
  }
  SmallVector<Type> results(order.cursors.size(),
                            CursorType::get(b.getContext()));
  auto loop = IssueLoopOp::create(
      b, results, order.role, order.trips, order.channels, order.cursors,
      b.getStrArrayAttr(order.slots), order.slotChannels,
      b.getStrArrayAttr(names), counts, skews, b.getArrayAttr(uses),
      /*rising=*/false, order.statements.size());
  for (auto [statement, region] :
       llvm::zip(order.statements, loop.getBodies())) {
    OpBuilder::InsertionGuard guard(b);
    SmallVector<Type> types = {b.getI32Type()};
    for (size_t i = 0; i < statement.uses.size(); ++i)
      types.append({b.getI32Type(), TokenType::get(b.getContext())});
    Block *body = b.createBlock(
        &region, {}, types, SmallVector<Location>(types.size(), b.getLoc()));
    auto end = YieldOp::create(b, ValueRange());
    b.setInsertionPoint(end);
    statement.emit(body->getArguments());
  }
  return llvm::to_vector(ValueRange(loop.getResults()));
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

SmallVector<Value> WsTmemEmitter::emitLoaderTile(ValueRange cursors) {
  Value qCursor = cursors.front();
  for (int64_t number = 0; number < kTmemTiles; ++number) {
    Value first = arith::AddIOp::create(b, walk.firstRow,
                                        context.i32(number * kTmemRows));
    load(q, qCursor, kLoader, at.head, first);
    qCursor = advance(qCursor, q);
  }
  IssueOrder order;
  order.role = kLoader;
  order.trips = emitBlocks();
  order.cursors = llvm::to_vector(cursors.drop_front());
  addKeySlots(order);
  Value last = arith::SubIOp::create(b, walk.end, context.i32(1));
  auto add = [&](const Ring &ring, int64_t skew) {
    order.statements.push_back(
        {"load_" + ring.name.str(), skew, {ring.name}, [&](ValueRange args) {
           Value block = arith::SubIOp::create(b, last, args[0]);
           Value key =
               arith::MulIOp::create(b, block, context.i32(plan.getBlockN()));
           fill(ring, emitSlot(ring, args[1]), args[2], at.kvHead, key);
         }});
  };
  add(v, /*skew=*/1);
  add(k, /*skew=*/0);
  SmallVector<Value> next = {qCursor};
  llvm::append_range(next, emitIssueLoop(order));
  return next;
}

LogicalResult WsTmemEmitter::emitLoader() {
  LogicalResult status = success();
  elect([&]() {
    prefetchMaps({q.map, k.map, v.map});
    rank = context.i32(0);
    TileLoopOp loop = emitTileLoop(
        [&] {
          SmallVector<Value> cursors = {
              CursorStartOp::create(b, q.channel, kLoader)};
          llvm::append_range(cursors, startKeyCursors(kLoader));
          return cursors;
        },
        [&](ValueRange cursors) -> FailureOr<SmallVector<Value>> {
          return emitLoaderTile(cursors);
        });
    if (!(status = toResult(loop)).succeeded())
      return;
    // Nobody else waits for the last commits of the queries.
    Value cursor = loop.getResult(0);
    for (int64_t number = 0; number < kTmemTiles; ++number) {
      auto [slot, token] = acquire(q, cursor, kLoader);
      release(q, token, kLoader);
      cursor = advance(cursor, q);
    }
  });
  return status;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

SmallVector<Value> WsTmemEmitter::emitMultiplierTile(ValueRange cursors) {
  Value qCursor = cursors.front();
  SmallVector<std::pair<Value, Value>> queryTiles;
  for (int64_t number = 0; number < kTmemTiles; ++number) {
    queryTiles.push_back(acquire(q, qCursor, kMultiplier));
    qCursor = advance(qCursor, q);
  }
  IssueOrder order;
  order.role = kMultiplier;
  order.trips = emitBlocks();
  order.cursors = llvm::to_vector(cursors.drop_front());
  addKeySlots(order);
  static constexpr StringRef kNames[] = {"t0", "t1"};
  int64_t depth = llvm::alignTo(facts.headDim, 16);
  IntegerAttr limit = depth == getKeyColumns(facts)
                          ? IntegerAttr()
                          : b.getI64IntegerAttr(depth);
  for (int64_t number = 0; number < kTmemTiles; ++number) {
    const TensorTile &tile = tiles[number];
    order.slots.push_back(kNames[number]);
    order.slotChannels.push_back(order.channels.size());
    order.channels.push_back(tile.channel);
    std::string suffix = std::to_string(number);
    order.statements.push_back(
        {"pv" + suffix,
         /*skew=*/1,
         {"v", kNames[number]},
         [&](ValueRange args) {
           Value some = arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                              args[0], context.i32(0));
           Tcgen05MmaOp::create(b, tile.probabilities, emitSlot(v, args[1]),
                                tile.results, some, /*depth=*/IntegerAttr());
         }});
    Value queryTile = queryTiles[number].first;
    order.statements.push_back(
        {"qk" + suffix,
         /*skew=*/0,
         {"k", kNames[number]},
         [&, queryTile, limit](ValueRange args) {
           Value transposed = TransposeOp::create(
               b, bufferType({getKeyColumns(facts), plan.getBlockN()}),
               emitSlot(k, args[1]));
           Value none = arith::ConstantIntOp::create(b, 0, 1);
           Tcgen05MmaOp::create(b, queryTile, transposed, tile.scores, none,
                                limit);
         }});
  }
  SmallVector<Value> next = {qCursor};
  llvm::append_range(next, emitIssueLoop(order));
  for (auto [slot, token] : queryTiles)
    release(q, token, kMultiplier);
  return next;
}

LogicalResult WsTmemEmitter::emitMultiplier() {
  LogicalResult status = success();
  elect([&]() {
    rank = context.i32(0);
    status = toResult(emitTileLoop(
        [&] {
          SmallVector<Value> cursors = {
              CursorStartOp::create(b, q.channel, kMultiplier)};
          llvm::append_range(cursors, startKeyCursors(kMultiplier));
          for (const TensorTile &tile : tiles)
            cursors.push_back(
                CursorStartOp::create(b, tile.channel, kMultiplier));
          return cursors;
        },
        [&](ValueRange cursors) -> FailureOr<SmallVector<Value>> {
          return emitMultiplierTile(cursors);
        }));
  });
  return status;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

LogicalResult WsTmemEmitter::run() {
  makeRings();
  for (int64_t number = 0; number < kTmemTiles; ++number)
    makeTensorTile(number);
  emitExtents();
  auto op = WarpSpecializeOp::create(
      b,
      b.getStrArrayAttr({kSoftmaxes[0], kSoftmaxes[1], kMultiplier, kLoader}),
      b.getDenseI64ArrayAttr({4, 4, 1, 3}),
      b.getDenseI64ArrayAttr({4, 1, 4, 1, 0, 0, 0, 0}),
      b.getDenseI64ArrayAttr({kTmemSoftmaxRegisters, kTmemSoftmaxRegisters,
                              kTmemOtherRegisters, kTmemOtherRegisters}),
      /*partitionsCount=*/4);
  for (auto [index, region] : llvm::enumerate(op.getPartitions())) {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&region);
    auto end = YieldOp::create(b, ValueRange());
    b.setInsertionPoint(end);
    LogicalResult status = index < kTmemTiles    ? emitSoftmax(index)
                           : index == kTmemTiles ? emitMultiplier()
                                                 : emitLoader();
    if (failed(status))
      return failure();
  }
  return success();
}

LogicalResult WsTmemSchedule::emit(KernelContext &context,
                                   PlanAttrInterface plan) const {
  return WsTmemEmitter(context, cast<WsTmemPlanAttr>(plan)).run();
}
