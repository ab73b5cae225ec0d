//===- WsTmemEmit.cpp - Memory, loads and products of ws_tmem -------------===//
//
// WsTmemOrders.cpp has the orders of issue, and WsTmemSoftmax.cpp the
// partitions of the softmaxes.
//
//===----------------------------------------------------------------------===//

#include "../Tma/RingFacts.h"
#include "WsTmemEmitter.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TilePlan WsTmemEmitter::getTilePlan(const ProblemFacts &facts,
                                    WsTmemPlanAttr plan) {
  TilePlan tiles = {kTmemRows, plan.getBlockN(), plan.getOrder(),
                    plan.getGroupHeads()};
  tiles.dynamic = plan.getDynamic();
  tiles.tilesPerCTA = kTmemTiles;
  tiles.packedHeads = getTmemPackedHeads(facts, plan);
  tiles.queryRows = getTmemQueryRows(facts, plan);
  return tiles;
}

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
  if (!sharesRing(facts, plan)) {
    v = makeRing(spec("v", RingRows::Keys, stages, plan.getBlockN(),
                      getValueColumns(facts)));
    return;
  }
  v = k;
  v.name = "v";
  v.view = TensorMapView::Whole;
  addMap(v);
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
  BufferType scores = tensorType({kTmemRows, blockN}, b.getF32Type());
  BufferType narrow = tensorType({kTmemRows, blockN}, facts.elementType);
  auto alloc = [&](StringRef name, BufferType type, ArrayAttr fields) -> Value {
    return TmemAllocOp::create(b, type, b.getStringAttr(name + suffix),
                               /*column=*/IntegerAttr(), fields);
  };
  if (plan.getPBeside()) {
    tile.scores = alloc("s", scores, ArrayAttr());
    tile.probabilities = alloc("p", narrow, ArrayAttr());
  } else {
    // Two probabilities take a column of 32 bits.
    int64_t packed = blockN / 2;
    auto fields =
        b.getArrayAttr({FieldAttr::get(mlir, "s", 0, blockN),
                        FieldAttr::get(mlir, "p", blockN - packed, packed)});
    Value memory = alloc("s", scores, fields);
    tile.scores = TmemFieldOp::create(b, scores, memory, "s");
    tile.probabilities = TmemFieldOp::create(b, narrow, memory, "p");
  }
  tile.results = alloc(
      "o", tensorType({kTmemRows, getValueColumns(facts)}, b.getF32Type()),
      ArrayAttr());
  std::pair<Role, SignalKind> multiplier = {kMultiplier, SignalKind::Commit};
  std::pair<Role, SignalKind> softmax = {kSoftmaxes[number],
                                         SignalKind::Arrive};
  if (resultBuffer == ResultBuffer::Queries)
    tile.stored = makeChannel("r" + suffix, /*stages=*/1,
                              {{kLoader, SignalKind::Arrive},
                               {kSoftmaxes[number], SignalKind::Arrive}});
  ArrayRef<StringRef> none, parts = getFront() != 0 ? ArrayRef(kParts) : none;
  if (!plan.getPBeside()) {
    tile.channel = makeChannel("t" + suffix, /*stages=*/1,
                               {multiplier, softmax}, none, parts);
    return;
  }
  tile.channel = makeChannel("s" + suffix, /*stages=*/1, {multiplier, softmax});
  tile.handed = makeChannel("p" + suffix, /*stages=*/1, {softmax, multiplier},
                            parts, none);
}

void WsTmemEmitter::makeDealer() {
  if (!plan.getDynamic())
    return;
  SmallVector<std::pair<Role, SignalKind>> roles;
  for (Role role : {kLoader, kMultiplier, kSoftmaxes[0], kSoftmaxes[1]})
    roles.push_back({role, SignalKind::Arrive});
  dealer = RingEmitter::makeDealer(roles);
}

SmallVector<Value> WsTmemEmitter::getKeyChannels() {
  if (sharesRing(facts, plan))
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
// Loads
//===----------------------------------------------------------------------===//

SmallVector<Value> WsTmemEmitter::emitLoaderTile(ValueRange cursors) {
  Value last = arith::SubIOp::create(b, walk.end, context.i32(1));
  auto keyOf = [&](Value iteration) -> Value {
    Value block = arith::SubIOp::create(b, last, iteration);
    return arith::MulIOp::create(b, block, context.i32(plan.getBlockN()));
  };
  auto loadQueries = [&](int64_t number, Value &cursor) {
    Value first = arith::AddIOp::create(b, walk.firstRow,
                                        context.i32(number * kTmemRows));
    load(q, cursor, kLoader, at.head, first);
    cursor = advance(cursor, q);
  };
  // The first product needs the first keys and one tile of queries. The keys'
  // slot is free before those of the queries are.
  SmallVector<Value> next = llvm::to_vector(cursors);
  load(k, next[1], kLoader, at.kvHead, keyOf(context.i32(0)));
  next[1] = advance(next[1], k);
  for (int64_t number = 0; number < kTmemTiles; ++number)
    loadQueries(number, next[0]);
  IssueOrder order = startOrder(kLoader, ArrayRef(next).drop_front());
  auto add = [&](const Ring &ring, bool isLess) {
    order.statements.push_back({"load_" + ring.name.str(),
                                isLess,
                                {ring.name},
                                /*parts=*/{},
                                [this, &ring, isLess, &keyOf](ValueRange args) {
                                  Value iteration = args[0];
                                  if (isLess)
                                    iteration = arith::AddIOp::create(
                                        b, iteration, context.i32(1));
                                  fill(ring, emitSlot(ring, args[1]), args[2],
                                       at.kvHead, keyOf(iteration));
                                }});
  };
  // In the order in which they are multiplied with.
  if (plan.getPBeside())
    add(k, /*isLess=*/true);
  add(v, /*isLess=*/false);
  if (!plan.getPBeside())
    add(k, /*isLess=*/true);
  SmallVector<Value> behind = {next[0]};
  llvm::append_range(behind, emitIssueLoop(order));
  return behind;
}

SmallVector<Value> WsTmemEmitter::awaitStored(ValueRange cursors) {
  SmallVector<Value> next;
  for (auto [tile, cursor] : llvm::zip(tiles, cursors)) {
    auto slot = ChannelAcquireOp::create(b, tile.stored, cursor, kLoader);
    ChannelReleaseOp::create(b, tile.stored, slot.getToken(), kLoader);
    next.push_back(CursorAdvanceOp::create(b, cursor, tile.stored));
  }
  return next;
}

LogicalResult WsTmemEmitter::emitLoader() {
  LogicalResult status = success();
  elect([&]() {
    prefetchMaps({q.map, k.map, v.map, resultMap});
    rank = context.i32(0);
    TileLoopOp loop = emitTileLoop(
        [&] {
          SmallVector<Value> cursors = {
              CursorStartOp::create(b, q.channel, kLoader)};
          llvm::append_range(cursors, startKeyCursors(kLoader));
          if (resultBuffer == ResultBuffer::Queries)
            for (const TensorTile &tile : tiles)
              cursors.push_back(CursorStartOp::create(b, tile.stored, kLoader));
          return cursors;
        },
        [&](ValueRange cursors) -> FailureOr<SmallVector<Value>> {
          SmallVector<Value> stored;
          if (resultBuffer == ResultBuffer::Queries)
            stored = awaitStored(cursors.take_back(kTmemTiles));
          SmallVector<Value> next =
              emitIfBlocks(cursors.drop_back(stored.size()),
                           [&](ValueRange at) { return emitLoaderTile(at); });
          llvm::append_range(next, stored);
          return next;
        });
    if (!(status = toResult(loop)).succeeded())
      return;
    setDealer(loop, dealer);
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

void WsTmemEmitter::emitIfOwn(const ClusterTile &own, Value iteration,
                              function_ref<void(Value)> emit) {
  auto compare = [&](arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, predicate, x, y);
  };
  if (!own.skippedBehind && !own.skippedInFront) {
    emit(compare(arith::CmpIPredicate::ne, iteration, context.i32(0)));
    return;
  }
  Value first = arith::SubIOp::create(b, own.end, own.bounds.end);
  Value behind = arith::SubIOp::create(b, own.end, own.bounds.begin);
  Value isOwn = arith::AndIOp::create(
      b, compare(arith::CmpIPredicate::sge, iteration, first),
      compare(arith::CmpIPredicate::slt, iteration, behind));
  auto branch = scf::IfOp::create(b, isOwn, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emit(compare(arith::CmpIPredicate::ne, iteration, first));
}

ClusterTile WsTmemEmitter::emitOwnTile(int64_t number) {
  return emitClusterTile(context, getBoundedTiles(*this), walk.firstRow,
                         context.i32(number), kTmemTiles, kTmemRows,
                         plan.getBlockN());
}

void WsTmemEmitter::emitScoreProduct(int64_t number, Value queryTile,
                                     Value index) {
  int64_t depth = llvm::alignTo(facts.headDim, 16);
  IntegerAttr limit = depth == getKeyColumns(facts)
                          ? IntegerAttr()
                          : b.getI64IntegerAttr(depth);
  Value transposed = TransposeOp::create(
      b, bufferType({getKeyColumns(facts), plan.getBlockN()}),
      emitSlot(k, index));
  Value none = arith::ConstantIntOp::create(b, 0, 1);
  Tcgen05MmaOp::create(b, queryTile, transposed, tiles[number].scores, none,
                       limit, /*first=*/IntegerAttr());
}

void WsTmemEmitter::emitResultProduct(int64_t number, Value index, Value some,
                                      int64_t first, int64_t depth) {
  bool isWhole = depth == plan.getBlockN();
  auto depthAttr = isWhole ? IntegerAttr() : b.getI64IntegerAttr(depth);
  auto firstAttr = first == 0 ? IntegerAttr() : b.getI64IntegerAttr(first);
  Tcgen05MmaOp::create(b, tiles[number].probabilities, emitSlot(v, index),
                       tiles[number].results, some, depthAttr, firstAttr);
}

void WsTmemEmitter::addScores(IssueOrder &order, int64_t number,
                              Value queryTile, const ClusterTile &own) {
  order.statements.push_back({"qk" + std::to_string(number),
                              /*isLess=*/false,
                              {"k", kTileSlots[number]},
                              /*parts=*/{},
                              [this, number, queryTile, &own](ValueRange args) {
                                Value iteration = arith::AddIOp::create(
                                    b, args[0], context.i32(1));
                                emitIfOwn(own, iteration, [&](Value) {
                                  emitScoreProduct(number, queryTile, args[1]);
                                });
                              }});
}

void WsTmemEmitter::addResults(IssueOrder &order, int64_t number,
                               const ClusterTile &own, Value before) {
  StringRef slot =
      plan.getPBeside() ? kHandedSlots[number] : kTileSlots[number];
  auto add = [&](StringRef part, int64_t first, int64_t depth) {
    std::string name = "pv" + std::to_string(number);
    IssueStatement statement = {
        part.empty() ? name : name + "_" + part.str(),
        /*isLess=*/false,
        {"v", slot},
        /*parts=*/{},
        [this, number, first, depth, before, &own](ValueRange args) {
          Value iteration = args[0];
          if (before)
            iteration = arith::AddIOp::create(b, iteration, before);
          emitIfOwn(own, iteration, [&](Value some) {
            if (first != 0)
              some = arith::ConstantIntOp::create(b, 1, 1);
            emitResultProduct(number, args[1], some, first, depth);
          });
        }};
    if (!part.empty())
      statement.parts = {"", part};
    order.statements.push_back(std::move(statement));
  };
  int64_t front = getFront(), columns = plan.getBlockN();
  if (front == 0) {
    add("", 0, columns);
    return;
  }
  add(kFront, 0, front);
  add(kBack, front, columns - front);
}

Value WsTmemEmitter::acquireTile(int64_t number, Value channel, Value cursor) {
  SmallVector<StringRef> parts = {StringRef()};
  if (hasParts(number, channel))
    parts = {kFront, kBack};
  SmallVector<Value> tokens;
  for (StringRef part : parts) {
    auto slot = ChannelAcquireOp::create(b, channel, cursor, kMultiplier);
    if (!part.empty())
      slot.setPart(part);
    tokens.push_back(slot.getToken());
  }
  if (tokens.size() == 1)
    return tokens.front();
  return ChannelJoinOp::create(b, channel, tokens, kMultiplier);
}

SmallVector<Value> WsTmemEmitter::emitMultiplierTile(ValueRange cursors) {
  SmallVector<Value> next = llvm::to_vector(cursors);
  size_t first = 1 + getKeyChannels().size();
  size_t each = tiles[0].getChannels().size();
  ClusterTile own[kTmemTiles];
  SmallVector<std::pair<Value, Value>> queryTiles;
  // The first scores of a tile wait for its own queries alone. Where a tile may
  // have no product, they wait for both: the commits that hand queries back
  // order what products behind those waits read, and nothing else.
  auto firstKeys = ChannelAcquireOp::create(b, k.channel, next[1], kMultiplier);
  next[1] = advance(next[1], k);
  auto acquireQueries = [&] {
    queryTiles.push_back(acquire(q, next[0], kMultiplier));
    next[0] = advance(next[0], q);
  };
  if (plan.getOwnBlocks())
    for (int64_t number = 0; number < kTmemTiles; ++number) {
      own[number] = emitOwnTile(number);
      acquireQueries();
    }
  for (int64_t number = 0; number < kTmemTiles; ++number) {
    if (!plan.getOwnBlocks())
      acquireQueries();
    Value channel = tiles[number].channel;
    Value &cursor = next[first + each * number];
    Value token = acquireTile(number, channel, cursor);
    emitIfOwn(own[number], context.i32(0), [&](Value) {
      emitScoreProduct(number, queryTiles[number].first, firstKeys.getIndex());
    });
    ChannelReleaseOp::create(b, channel, token, kMultiplier);
    cursor = CursorAdvanceOp::create(b, cursor, channel);
  }
  if (!holdsKeys(plan))
    release(k, firstKeys.getToken(), kMultiplier);
  // Behind the first scores a step has a block's results and the next one's
  // scores; the results of the last block stand alone.
  IssueOrder order = startOrder(kMultiplier, ArrayRef(next).drop_front());
  Value last = arith::SubIOp::create(b, order.trips, context.i32(1));
  order.trips = last;
  for (int64_t number = 0; number < kTmemTiles; ++number) {
    order.addSlot(kTileSlots[number], tiles[number].channel);
    if (plan.getPBeside())
      order.addSlot(kHandedSlots[number], tiles[number].handed);
  }
  IssueOrder lastOrder = order;
  // Scores in the place of probabilities come behind what reads these. Else
  // they come first, since nothing but their own columns holds them up.
  if (plan.getPBeside())
    for (int64_t number = 0; number < kTmemTiles; ++number)
      addScores(order, number, queryTiles[number].first, own[number]);
  for (int64_t number = 0; number < kTmemTiles; ++number) {
    addResults(order, number, own[number], /*before=*/Value());
    addResults(lastOrder, number, own[number], last);
    if (!plan.getPBeside())
      addScores(order, number, queryTiles[number].first, own[number]);
  }
  if (holdsKeys(plan)) {
    order.held = firstKeys.getToken();
    order.heldSlot = "k";
    order.releasedBehind = order.statements[getFront() != 0 ? 1 : 0].name;
  }
  lastOrder.cursors = emitIssueLoop(order);
  if (order.held)
    release(k, lastOrder.cursors.pop_back_val(), kMultiplier);
  // The next tile's queries are loaded while this one's last softmaxes run.
  for (auto [slot, token] : queryTiles)
    release(q, token, kMultiplier);
  lastOrder.trips = context.i32(1);
  SmallVector<Value> behind = {next[0]};
  llvm::append_range(behind, emitIssueLoop(lastOrder));
  if (plan.getPBeside())
    emitResultRounds(MutableArrayRef(behind).drop_front(first));
  return behind;
}

void WsTmemEmitter::emitResultRounds(MutableArrayRef<Value> cursors) {
  // Whoever has read the results hands them back without probabilities.
  for (int64_t number = 0; number < kTmemTiles; ++number) {
    Value channel = tiles[number].handed;
    Value &cursor = cursors[2 * number + 1];
    Value token = acquireTile(number, channel, cursor);
    ChannelReleaseOp::create(b, channel, token, kMultiplier);
    cursor = CursorAdvanceOp::create(b, cursor, channel);
  }
}

LogicalResult WsTmemEmitter::emitMultiplier() {
  LogicalResult status = success();
  elect([&]() {
    rank = context.i32(0);
    TileLoopOp loop = emitTileLoop(
        [&] {
          SmallVector<Value> cursors = {
              CursorStartOp::create(b, q.channel, kMultiplier)};
          llvm::append_range(cursors, startKeyCursors(kMultiplier));
          for (const TensorTile &tile : tiles)
            for (Value channel : tile.getChannels())
              cursors.push_back(CursorStartOp::create(b, channel, kMultiplier));
          return cursors;
        },
        [&](ValueRange cursors) -> FailureOr<SmallVector<Value>> {
          return emitIfBlocks(
              cursors, [&](ValueRange at) { return emitMultiplierTile(at); });
        });
    status = toResult(loop);
    if (loop)
      setDealer(loop, dealer);
  });
  return status;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

LogicalResult WsTmemEmitter::run() {
  makeRings();
  // Beside scores and probabilities nothing is kept that only results need.
  context.getKernel()->setAttr(kRenewEntryAttr, b.getUnitAttr());
  for (int64_t number = 0; number < kTmemTiles; ++number)
    makeTensorTile(number);
  makeDealer();
  if (plan.getEpilogue() == EpilogueKind::Tma)
    resultMap = makeResultMap(kTmemRows, getStagedColumns(facts, plan));
  emitExtents();
  struct Partition {
    StringRef name;
    int64_t warps, rows, registers;
    std::function<LogicalResult()> emit;
  };
  SmallVector<Partition> partitions;
  for (int64_t number = 0; number < kTmemTiles; ++number)
    partitions.push_back({kSoftmaxes[number], 4, 4, kTmemSoftmaxRegisters,
                          [this, number] { return emitSoftmax(number); }});
  partitions.push_back({kMultiplier, 1, 0, kTmemOtherRegisters,
                        [this] { return emitMultiplier(); }});
  partitions.push_back(
      {kLoader, 3, 0, kTmemOtherRegisters, [this] { return emitLoader(); }});
  SmallVector<StringRef> names;
  SmallVector<int64_t> warps, grids, registers;
  for (const Partition &partition : partitions) {
    names.push_back(partition.name);
    warps.push_back(partition.warps);
    grids.append({partition.rows, partition.rows != 0 ? 1 : 0});
    registers.push_back(partition.registers);
  }
  auto op = WarpSpecializeOp::create(
      b, b.getStrArrayAttr(names), b.getDenseI64ArrayAttr(warps),
      b.getDenseI64ArrayAttr(grids), b.getDenseI64ArrayAttr(registers),
      partitions.size());
  for (auto [partition, region] : llvm::zip(partitions, op.getPartitions())) {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&region);
    auto end = YieldOp::create(b, ValueRange());
    b.setInsertionPoint(end);
    if (failed(partition.emit()))
      return failure();
  }
  return success();
}

LogicalResult WsTmemSchedule::emit(KernelContext &context,
                                   PlanAttrInterface plan) const {
  return WsTmemEmitter(context, cast<WsTmemPlanAttr>(plan)).run();
}
