//===- WsWgmmaEmit.cpp - The kernel of ws_wgmma in tile IR ----------------===//
//
// Rings, the loop over tiles, and the consumers; WsWgmmaProducer.cpp has the
// producers.
//
//===----------------------------------------------------------------------===//

#include "FirstBlockKeys.h"
#include "WsWgmmaEmitter.h"
#include "attn/Dialect/Attn/IR/BulkStores.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

/// The first of the named barriers by which warpgroups take turns.
static constexpr int64_t kTurnBarrier = 1;

void WsWgmmaEmitter::makeDealer() {
  if (!plan.getDynamic())
    return;
  SmallVector<std::pair<Role, SignalKind>> roles = {
      {kProducer, SignalKind::Arrive}};
  if (producerReadsTiles(context.facts, plan)) {
    // What one CTA sends to all of a cluster is counted in bytes.
    if (plan.getCluster() > 1)
      roles.front().second = SignalKind::Tx;
    roles.push_back({kTileReader, SignalKind::Arrive});
  } else if (hasValueProducer()) {
    roles.push_back({kValueProducer, SignalKind::Arrive});
  }
  if (facts.hasNarrowKeys())
    roles.push_back({kWidener, SignalKind::Arrive});
  roles.push_back({kConsumer, SignalKind::Arrive});
  dealer = RingEmitter::makeDealer(roles);
}

void WsWgmmaEmitter::makeResults() {
  if (resultBuffer == ResultBuffer::None)
    return;
  resultMap.map = makeResultMap(/*rows=*/64, facts.valueDim);
  if (resultBuffer == ResultBuffer::Own)
    resultMemory = allocResults();
}

TileCursors::TileCursors(ValueRange carried)
    : TileCursors(carried[0], carried[1],
                  carried.size() > 2 ? carried[2] : Value()) {
  if (carried.size() <= 3)
    return;
  source = carried[3];
  dest = carried[4];
}

SmallVector<Value> TileCursors::list() const {
  SmallVector<Value> all = {q, k};
  if (v)
    all.push_back(v);
  if (source)
    all.append({source, dest});
  return all;
}

LogicalResult WsWgmmaEmitter::emitTiles(StringRef partition, TileBody body) {
  TileLoopOp loop =
      emitTileLoop([&] { return startCursors(partition).list(); },
                   [&](ValueRange carried) -> FailureOr<SmallVector<Value>> {
                     FailureOr<TileCursors> next = body(TileCursors(carried));
                     if (failed(next))
                       return failure();
                     return next->list();
                   });
  if (!loop)
    return failure();
  setDealer(loop, dealer);
  return success();
}

TileCursors WsWgmmaEmitter::startCursors(StringRef partition) {
  auto start = [&](const Ring &ring, StringRef role) -> Value {
    return CursorStartOp::create(b, ring.channel, role);
  };
  bool isConsumer = partition == kConsumer;
  TileCursors cursors{start(q, partition),
                      start(isConsumer ? keyOperands() : k, partition),
                      Value()};
  if (isConsumer || !hasValueProducer())
    cursors.v = start(isConsumer ? values() : v, partition);
  if (!isConsumer && needsTransposer(facts)) {
    cursors.source = start(v, kTransposer);
    cursors.dest = start(vt, kTransposer);
  }
  return cursors;
}

//===----------------------------------------------------------------------===//
// The consumers
//===----------------------------------------------------------------------===//

void WsWgmmaEmitter::emitSkip(Value count, TileCursors &cursors) {
  if (!count)
    return;
  auto skip = [&](const Ring &ring, Value cursor) {
    auto [slot, token] = acquire(ring, cursor, kConsumer);
    release(ring, token, kConsumer);
    return advance(cursor, ring);
  };
  auto body = [&](OpBuilder &builder, Location, Value, ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(builder.getInsertionBlock());
    Value nextK = skip(keyOperands(), carried[0]),
          nextV = skip(values(), carried[1]);
    scf::YieldOp::create(b, ValueRange{nextK, nextV});
  };
  auto loop = scf::ForOp::create(b, context.i32(0), count, context.i32(1),
                                 ValueRange{cursors.k, cursors.v}, body);
  cursors.k = loop.getResult(0);
  cursors.v = loop.getResult(1);
}

void WsWgmmaEmitter::narrowToWarpgroup() {
  // Warpgroups that take turns meet in every block.
  if (!bounds.lower || plan.getTurns() ||
      plan.getFirstBlock() == FirstBlock::Whole || blockM == kGroupRows)
    return;
  auto min = [&](Value x, Value y) -> Value {
    return arith::MinSIOp::create(b, x, y);
  };
  auto max = [&](Value x, Value y) -> Value {
    return arith::MaxSIOp::create(b, x, y);
  };
  Value offset = arith::MulIOp::create(b, WarpgroupIndexOp::create(b),
                                       context.i32(kGroupRows));
  BlockBounds own =
      emitBlockBounds(context, arith::AddIOp::create(b, row, offset), queries,
                      keys, kGroupRows, plan.getBlockN());
  bounds.begin = min(max(bounds.begin, own.begin), bounds.end);
  bounds.fullEnd = max(bounds.fullEnd, bounds.begin);
  bounds.fullBegin = min(max(own.fullBegin, bounds.begin), bounds.fullEnd);
  walk.skippedInFront = arith::SubIOp::create(b, bounds.begin, walk.begin);
  remark::passed(
      b.getLoc(),
      remark::RemarkOpts::name("last-block").category("attn.ws-wgmma"))
      << remark::add("warpgroups end at the first block of their own rows' "
                     "window")
      << remark::metric("rows", kGroupRows)
      << remark::metric("block", plan.getBlockN());
}

void WsWgmmaEmitter::setFirstBlock(KVLoopOp loop) {
  std::optional<FirstBlockSizes> sizes = findFirstBlock(facts, plan);
  auto options =
      remark::RemarkOpts::name("first-block").category("attn.ws-wgmma");
  if (!sizes) {
    remark::missed(b.getLoc(), options) << remark::reason(
        "first blocks are multiplied whole: lengths are not constant, "
        "keys have another order, or all are needed");
    return;
  }
  loop.setFirst(sizes->keys);
  if (sizes->second)
    loop.setSecond(*sizes->second);
  std::string keys = llvm::join(
      llvm::map_range(sizes->keys, [](int64_t n) { return std::to_string(n); }),
      ",");
  remark::passed(b.getLoc(), options)
      << remark::add("warpgroups multiply the keys of a first block that they "
                     "need")
      << remark::metric("keys", keys)
      << remark::metric("block", plan.getBlockN())
      << remark::metric("saved-percent",
                        llvm::formatv("{0:f1}", 100 * sizes->saved).str());
}

FailureOr<TileCursors> WsWgmmaEmitter::emitConsumerTile(TileCursors cursors) {
  emitScoreDescale();
  emitValueDescale();
  Value scale = emitExponentScale();
  Value queryTile, queryToken;
  std::tie(queryTile, queryToken) = acquire(q, cursors.q, kConsumer);
  RunningState running = emitInitialState(
      /*bets=*/plan.getSoftmax() == SoftmaxPolicy::Optimistic);
  emitSkip(walk.skippedBehind, cursors);
  narrowToWarpgroup();
  Value operandTile = facts.elementType == getOperandType()
                          ? queryTile
                          : emitConverted(queryTile);

  KVLoopOp loop = emitBlocks(
      {kConsumer, keyOperands(), values(), operandTile, scale, probabilities,
       /*transposed=*/Value(), /*transposer=*/{}, keyScales},
      {running, cursors.k, cursors.v});
  if (!loop)
    return failure();
  loop.setPvBehind(plan.getPvBehind());
  loop.setRescore(rescores(facts, plan));
  if (plan.getTurns())
    loop.setTurns(kTurnBarrier);
  if (plan.getFirstBlock() == FirstBlock::Auto)
    setFirstBlock(loop);
  if (resultBuffer != ResultBuffer::Queries)
    release(q, queryToken, kConsumer);
  BlockState last(loop.getResults());
  TileCursors next(cursors.q, last.keys, last.values);
  emitSkip(walk.skippedInFront, next);

  Value oView = emitResultView("o");
  Value lseView;
  if (facts.lse)
    lseView = emitResultView("lse");
  Value scratch = resultMemory;
  if (resultBuffer == ResultBuffer::Queries)
    scratch = queryTile;
  if (resultMap.map)
    resultMap.coordinates = {at.batch, at.head, row, context.i32(0)};
  emitResults(emitFinalState(last.running), oView, lseView, scratch,
              plan.getEpilogue(), resultMap);
  if (resultBuffer == ResultBuffer::Queries) {
    // The thread that started the copy knows when the slot has been read.
    auto elect = ElectOp::create(b, /*each_warpgroup=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&elect.getBody());
    awaitBulkStores(b, b.getLoc());
    release(q, queryToken, kConsumer);
    YieldOp::create(b, ValueRange());
  }
  next.q = advance(cursors.q, q);
  return next;
}

LogicalResult WsWgmmaEmitter::emitConsumer() {
  if (plan.getTurns())
    TurnStartOp::create(b, kTurnBarrier);
  return emitTiles(kConsumer, [&](TileCursors cursors) {
    return emitConsumerTile(cursors);
  });
}

void WsWgmmaEmitter::makeWidenedRings(StringRef name, StringRef made,
                                      int64_t columns, int64_t stages,
                                      Ring &source, Ring &dest) {
  RingSpec spec = {name,    RingRows::Keys, kRawSlots, plan.getBlockN(),
                   columns, kProducer,      kWidener};
  if (name == "v" && hasValueProducer())
    spec.from = kValueProducer;
  spec.elementType = facts.keyType;
  source = makeRing(spec);
  RingSpec madeSpec = {made,    RingRows::Keys, stages,   plan.getBlockN(),
                       columns, kWidener,       kConsumer};
  madeSpec.isLoaded = false;
  madeSpec.elementType = getOperandType();
  dest = makeRing(madeSpec);
}

void WsWgmmaEmitter::makeRings() {
  int64_t blockN = plan.getBlockN();
  q = makeRing({"q", RingRows::Queries, plan.getQStages(), blockM,
                getKeyColumns(facts), kProducer, kConsumer});
  if (facts.hasNarrowKeys()) {
    makeWidenedRings("k", "kw", getKeyColumns(facts), plan.getKStages(), k, kw);
    makeWidenedRings("v", "vw", getValueColumns(facts), plan.getVStages(), v,
                     vw);
    if (facts.kScales)
      keyScales = allocRowNumbers("k_scales", plan.getKStages(), blockN);
    return;
  }
  bool transposes = needsTransposer(facts);
  k = makeRing(
      {"k", RingRows::Keys, plan.getKStages(), blockN, getKeyColumns(facts),
       kProducer, kConsumer,
       /*isLoaded=*/true,
       plan.getKeyQuads() ? TensorMapView::Quads : TensorMapView::Whole});
  v = makeValueRing(transposes ? kRawSlots : plan.getVStages(),
                    hasValueProducer() ? kValueProducer : kProducer,
                    transposes ? kTransposer : kConsumer);
  if (transposes)
    vt = makeRing({"vt", RingRows::Keys, plan.getVStages(),
                   getValueColumns(facts), blockN, kTransposer, kConsumer,
                   /*isLoaded=*/false});
}

LogicalResult WsWgmmaEmitter::run() {
  makeRings();
  if (plan.getPShared())
    probabilities =
        alloc("p", bufferType({blockM, plan.getBlockN()}, getOperandType()));
  makeResults();
  makeDealer();
  emitExtents();
  return emitPartitions();
}

LogicalResult WsWgmmaEmitter::emitPartitions() {
  RegisterBudget budget = getRegisterBudget(facts, plan);
  SmallVector<StringRef> names = {kConsumer, kProducer};
  SmallVector<int64_t> warps = {blockM / 16, kWarpgroupWarps};
  SmallVector<int64_t> tiles = {blockM / 16, 1, 0, 0};
  SmallVector<int64_t> registers = {budget.consumer, budget.producer};
  SmallVector<LogicalResult (WsWgmmaEmitter::*)()> bodies = {
      &WsWgmmaEmitter::emitConsumer,
      needsTransposer(facts) ? &WsWgmmaEmitter::emitTransposingProducer
                             : &WsWgmmaEmitter::emitProducer};
  if (hasValueProducer()) {
    names.push_back(kValueProducer);
    warps.back() = kWarpgroupWarps / 2;
    warps.push_back(kWarpgroupWarps / 2);
    tiles.append({0, 0});
    registers.push_back(budget.producer);
    bodies.push_back(&WsWgmmaEmitter::emitValueProducer);
  }
  if (facts.hasNarrowKeys()) {
    names.push_back(kWidener);
    warps.push_back(kWarpgroupWarps);
    tiles.append({kWarpgroupWarps, 1});
    registers.push_back(budget.widener);
    bodies.push_back(&WsWgmmaEmitter::emitWidener);
  }
  auto op = WarpSpecializeOp::create(
      b, b.getStrArrayAttr(names), b.getDenseI64ArrayAttr(warps),
      b.getDenseI64ArrayAttr(tiles), b.getDenseI64ArrayAttr(registers),
      /*partitionsCount=*/unsigned(names.size()));
  for (auto [region, emit] : llvm::zip(op.getPartitions(), bodies)) {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&region);
    auto end = YieldOp::create(b, ValueRange());
    b.setInsertionPoint(end);
    if (failed((this->*emit)()))
      return failure();
  }
  return success();
}

LogicalResult WsWgmmaSchedule::emit(KernelContext &context,
                                    PlanAttrInterface plan) const {
  return WsWgmmaEmitter(context, cast<WsWgmmaPlanAttr>(plan)).run();
}
