//===- WsWgmmaKernel.cpp - The kernel of ws_wgmma -------------------------===//
//
// The programs of the producers and of the consumers; WsWgmmaWidener.cpp has
// that of the partition that widens 8-bit keys and values.
//
//===----------------------------------------------------------------------===//

#include "WsWgmmaKernel.h"
#include "../Core/NarrowKeys.h"
#include "FirstBlockKeys.h"
#include "attn/Dialect/Attn/IR/BulkStores.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

/// The first of the named barriers by which warpgroups take turns.
static constexpr int64_t kTurnBarrier = 1;

TilePlan attn::getTilePlan(const ProblemFacts &facts, WsWgmmaPlanAttr plan) {
  TilePlan tiles = {plan.getBlockM(),     plan.getBlockN(),  plan.getOrder(),
                    plan.getGroupHeads(), plan.getCluster(), plan.getDynamic()};
  tiles.setRuns(facts, plan.getPackHeads());
  tiles.listed = plan.getCutDocuments();
  tiles.align = getDocumentAlign(plan);
  return tiles;
}

WsWgmmaKernel::WsWgmmaKernel(KernelContext &context, WsWgmmaPlanAttr plan)
    : context(context), facts(context.facts), plan(plan), b(context.b),
      control(b), walk(context, getTilePlan(context.facts, plan)),
      tile(walk.tile),
      resultBuffer(getResultBuffer(context.facts, plan, context.target)) {}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void WsWgmmaKernel::makeWidenedRings(StringRef name, StringRef made,
                                     int64_t columns, int64_t stages,
                                     Ring &source, Ring &dest) {
  RingSpec spec = {name,    RingRows::Keys, kRawSlots, plan.getBlockN(),
                   columns, kProducer,      kWidener};
  if (name == "v" && hasValueProducer())
    spec.from = kValueProducer;
  spec.elementType = facts.keyType;
  source = makeRing(walk, spec);
  RingSpec madeSpec = {made,    RingRows::Keys, stages,   plan.getBlockN(),
                       columns, kWidener,       kConsumer};
  madeSpec.isLoaded = false;
  madeSpec.elementType = tile.getOperandType();
  dest = makeRing(walk, madeSpec);
}

void WsWgmmaKernel::makeRings() {
  int64_t blockN = plan.getBlockN();
  rings.q = makeRing(walk, {"q", RingRows::Queries, plan.getQStages(),
                            plan.getBlockM(), getKeyColumns(facts), kProducer,
                            kConsumer});
  if (facts.hasNarrowKeys()) {
    makeWidenedRings("k", "kw", getKeyColumns(facts), plan.getKStages(),
                     rings.k, rings.kw);
    makeWidenedRings("v", "vw", getValueColumns(facts), plan.getVStages(),
                     rings.v, rings.vw);
    if (facts.kScales)
      rings.keyScales =
          allocRowNumbers(b, "k_scales", plan.getKStages(), blockN);
    return;
  }
  bool transposes = needsTransposer(facts);
  rings.k = makeRing(
      walk, {"k", RingRows::Keys, plan.getKStages(), blockN,
             getKeyColumns(facts), kProducer, kConsumer,
             /*isLoaded=*/true,
             plan.getKeyQuads() ? TensorMapView::Quads : TensorMapView::Whole});
  rings.v = makeValueRing(walk, transposes ? kRawSlots : plan.getVStages(),
                          hasValueProducer() ? kValueProducer : kProducer,
                          transposes ? kTransposer : kConsumer);
  if (transposes)
    rings.vt =
        makeRing(walk, {"vt", RingRows::Keys, plan.getVStages(),
                        getValueColumns(facts), blockN, kTransposer, kConsumer,
                        /*isLoaded=*/false});
}

void WsWgmmaKernel::makeDealer() {
  if (!plan.getDynamic())
    return;
  SmallVector<std::pair<Role, SignalKind>> roles = {
      {kProducer, SignalKind::Arrive}};
  if (producerReadsTiles(facts, plan)) {
    // Indices that one CTA sends to all of a cluster are counted in bytes.
    if (plan.getCluster() > 1)
      roles.front().second = SignalKind::Tx;
    roles.push_back({kTileReader, SignalKind::Arrive});
  } else if (hasValueProducer()) {
    roles.push_back({kValueProducer, SignalKind::Arrive});
  }
  if (facts.hasNarrowKeys())
    roles.push_back({kWidener, SignalKind::Arrive});
  roles.push_back({kConsumer, SignalKind::Arrive});
  dealer = makeTileDealer(context, roles);
}

void WsWgmmaKernel::makeResults() {
  if (resultBuffer == ResultBuffer::None)
    return;
  resultMap.map = attn::makeResultMap(tile, /*rows=*/64, facts.valueDim);
  if (resultBuffer == ResultBuffer::Own)
    resultMemory = allocResults(tile);
}

//===----------------------------------------------------------------------===//
// Producers
//===----------------------------------------------------------------------===//

void WsWgmmaKernel::load() {
  Ring &q = rings.q, &k = rings.k, &v = rings.v;
  bool alsoValues = !hasValueProducer();
  prefetchMaps(b, {q.map, k.map, alsoValues ? v.map : Value(), resultMap.map});
  prefetchMaps(b, {k.whole, alsoValues ? v.whole : Value()});
  Pipe query(control, q.channel, kProducer), key(control, k.channel, kProducer);
  std::optional<Pipe> value;
  if (alsoValues)
    value.emplace(control, v.channel, kProducer);
  Value last;
  auto loadKeys = [&](Value trip) {
    fill(k, key, tile.at.kvHead, getFirstKey(getBlock(last, trip)));
    key.advance();
  };
  auto loadValues = [&](Value trip) {
    fill(v, *value, tile.at.kvHead, getFirstKey(getBlock(last, trip)));
    value->advance();
  };

  forTiles([&] {
    fill(q, query, tile.at.head, tile.row);
    Value zero = context.i32(0), trips = countTrips();
    last = getLastBlock();
    if (!alsoValues) {
      control.forRange(zero, trips, loadKeys);
    } else if (!facts.isPaged()) {
      control.forRange(zero, trips, [&](Value trip) {
        Value first = getFirstKey(getBlock(last, trip));
        fill(k, key, tile.at.kvHead, first);
        fill(v, *value, tile.at.kvHead, first);
        key.advance(), value->advance();
      });
    } else {
      // Several copies of a page's rows take a while to start: keys are asked
      // for while the loading thread would wait for the slot of the values
      // before them.
      Value first = b.createOrFold<arith::MinSIOp>(trips, context.i32(1));
      Value both = b.createOrFold<arith::SubIOp>(trips, first);
      control.forRange(zero, first, loadKeys);
      control.forRange(zero, both, [&](Value trip) {
        loadKeys(arith::AddIOp::create(b, trip, first));
        loadValues(trip);
      });
      control.forRange(both, trips, loadValues);
    }
    query.advance();
  });
}

void WsWgmmaKernel::loadTogether() {
  Ring &q = rings.q, &k = rings.k, &v = rings.v;
  control.elect([&] { prefetchMaps(b, {q.map, k.map, v.map, resultMap.map}); });
  Pipe query(control, q.channel, kProducer), key(control, k.channel, kProducer),
      value(control, v.channel, kProducer);
  forTiles([&] {
    control.elect([&] { fill(q, query, tile.at.head, tile.row); });
    Value trips = countTrips(), last = getLastBlock();
    control.forRange(context.i32(0), trips, [&](Value trip) {
      Value first = getFirstKey(getBlock(last, trip));
      control.elect([&] {
        fill(k, key, tile.at.kvHead, first);
        fill(v, value, tile.at.kvHead, first);
      });
      key.advance(), value.advance();
    });
    query.advance();
  });
}

void WsWgmmaKernel::loadValues() {
  const Ring &v = rings.v;
  prefetchMaps(b, {v.map, v.whole});
  Pipe value(control, v.channel, kValueProducer);
  forTiles([&] {
    Value trips = countTrips(), last = getLastBlock();
    control.forRange(context.i32(0), trips, [&](Value trip) {
      fill(v, value, tile.at.kvHead, getFirstKey(getBlock(last, trip)));
      value.advance();
    });
  });
}

void WsWgmmaKernel::loadAndTranspose() {
  Ring &q = rings.q, &k = rings.k, &v = rings.v, &vt = rings.vt;
  control.elect([&] { prefetchMaps(b, {q.map, k.map, v.map, resultMap.map}); });
  Pipe query(control, q.channel, kProducer), key(control, k.channel, kProducer),
      value(control, v.channel, kProducer),
      loaded(control, v.channel, kTransposer),
      transposed(control, vt.channel, kTransposer);
  Value last;
  auto load = [&](Value trip) {
    Value block = getBlock(last, trip);
    control.elect([&] {
      Value first = getFirstKey(block);
      fill(k, key, tile.at.kvHead, first);
      fill(v, value, tile.at.kvHead, first);
    });
    key.advance(), value.advance();
  };
  auto transpose = [&](Value) {
    Slot source = loaded.acquire();
    Value from = v.at(source);
    Slot dest = transposed.acquire();
    LocalTransposeOp::create(b, from, vt.at(dest));
    source.release(), dest.release();
    loaded.advance(), transposed.advance();
  };

  // The transposition runs ahead of the consumers as far as the ring vt lets
  // it, and loads run one block ahead of that. They come after it, since the
  // thread that loads waits for a slot, and its warp would be the last one; but
  // the second block of a tile is loaded while the first one is on its way.
  forTiles([&] {
    control.elect([&] { fill(q, query, tile.at.head, tile.row); });
    Value zero = context.i32(0), one = context.i32(1), two = context.i32(2);
    Value trips = countTrips();
    last = getLastBlock();
    Value some = b.createOrFold<arith::MinSIOp>(trips, one);
    Value first = b.createOrFold<arith::MinSIOp>(trips, two);
    control.forRange(zero, first, load);
    control.forRange(zero, some, transpose);
    control.forRange(two, trips, [&](Value trip) {
      transpose(trip);
      load(trip);
    });
    control.forRange(one, first, transpose);
    query.advance();
  });
}

void WsWgmmaKernel::fill(const Ring &ring, Pipe &pipe, Value head,
                         Value first) {
  // The table is read before the wait: its first entry brings the others near.
  // All of them would take registers that nobody has.
  LoadPlace place = findLoadPlace(walk, ring, first);
  Slot slot = pipe.acquire();
  startLoad(walk, ring, ring.at(slot), slot.getToken(), head, place.first,
            /*column=*/Value(), place.lead);
  slot.release();
}

Value WsWgmmaKernel::countTrips() {
  return b.createOrFold<arith::SubIOp>(walk.cluster.end, walk.cluster.begin);
}

Value WsWgmmaKernel::getLastBlock() {
  return arith::SubIOp::create(b, walk.cluster.end, context.i32(1));
}

Value WsWgmmaKernel::getBlock(Value last, Value trip) {
  return arith::SubIOp::create(b, last, trip);
}

Value WsWgmmaKernel::getFirstKey(Value block) {
  return arith::MulIOp::create(b, block, context.i32(plan.getBlockN()));
}

//===----------------------------------------------------------------------===//
// Consumers
//===----------------------------------------------------------------------===//

void WsWgmmaKernel::compute() {
  const Ring &q = rings.q, &k = getKeyOperands(), &v = getValueOperands();
  if (plan.getTurns())
    TurnStartOp::create(b, kTurnBarrier);
  Pipe query(control, q.channel, kConsumer), key(control, k.channel, kConsumer),
      value(control, v.channel, kConsumer);
  forTiles([&] {
    emitScoreDescale(tile);
    tile.valueDescale = emitValueDescale(tile);
    Value scale = emitExponentScale(tile);
    emitRowKeys(tile);
    Slot queries = query.acquire();
    Value queryTile = q.at(queries);
    RunningState init = emitInitialState(tile, /*bets=*/plan.getSoftmax() ==
                                                   SoftmaxPolicy::Optimistic);
    Var m(control, init.m), l(control, init.l), o(control, init.o);
    skip(walk.cluster.skippedBehind, key, value);
    BlockBounds blocks = getBlocks();
    Value skipped = walk.cluster.skippedInFront;
    if (narrowsToWarpgroup())
      skipped = arith::SubIOp::create(b, blocks.begin, walk.cluster.begin);
    Value operand = facts.elementType == tile.getOperandType()
                        ? queryTile
                        : emitConverted(tile, queryTile);

    // attn-expand-pipeline rotates the loop as the flags of attn.kv_loop say.
    forBlocks(blocks, [&](Value firstKey) {
      Slot keys = key.acquire();
      Value keyTile = k.at(keys), scales;
      Value product = multiplyKeys(b, operand, keyTile, getKeyDepth(facts),
                                   /*sum=*/Value());
      Value s = awaitProducts(b, product, /*pending=*/0).front();
      if (rings.keyScales)
        scales =
            LocalLoadOp::create(b, tile.f32Tile({plan.getBlockN()}),
                                getRowNumbers(b, keyTile, rings.keyScales));
      keys.release();

      Value p = softmax(scale, firstKey, multiplyScales(s, scales), m, l, o);
      if (!p)
        return;

      Slot values = value.acquire();
      Value valueTile = makeValueOperand(tile, v.at(values));
      Value sum = multiplyValues(b, p, valueTile, facts.valueDim, o);
      o = awaitProducts(b, sum, /*pending=*/0).front();
      values.release();
      key.advance(), value.advance();
    });
    if (!control.isWhole())
      return;

    if (resultBuffer != ResultBuffer::Queries)
      queries.release();
    skip(skipped, key, value);
    store({m, l, o}, queries, queryTile);
    query.advance();
  });
}

void WsWgmmaKernel::skip(Value count, Pipe &keys, Pipe &values) {
  if (!count)
    return;
  control.forRange(context.i32(0), count, [&](Value) {
    for (Pipe *pipe : {&keys, &values}) {
      pipe->acquire().release();
      pipe->advance();
    }
  });
}

bool WsWgmmaKernel::narrowsToWarpgroup() const {
  // Warpgroups that take turns meet in every block.
  return facts.mask.hasLeft() && !plan.getTurns() &&
         plan.getFirstBlock() != FirstBlock::Whole &&
         plan.getBlockM() != kGroupRows;
}

void WsWgmmaKernel::reportNarrowing() {
  remark::passed(
      b.getLoc(),
      remark::RemarkOpts::name("last-block").category("attn.ws-wgmma"))
      << remark::add("warpgroups end at the first block of their own rows' "
                     "window")
      << remark::metric("rows", kGroupRows)
      << remark::metric("block", plan.getBlockN());
}

BlockBounds WsWgmmaKernel::getBlocks() {
  BlockBounds blocks = tile.bounds;
  if (!narrowsToWarpgroup())
    return blocks;
  auto min = [&](Value x, Value y) -> Value {
    return arith::MinSIOp::create(b, x, y);
  };
  auto max = [&](Value x, Value y) -> Value {
    return arith::MaxSIOp::create(b, x, y);
  };
  Value offset = arith::MulIOp::create(b, WarpgroupIndexOp::create(b),
                                       context.i32(kGroupRows));
  BlockBounds own = emitBlockBounds(context, tile.getBoundedTiles(),
                                    arith::AddIOp::create(b, tile.row, offset),
                                    kGroupRows, plan.getBlockN());
  blocks.begin = min(max(blocks.begin, own.begin), blocks.end);
  blocks.fullEnd = max(blocks.fullEnd, blocks.begin);
  blocks.fullBegin = min(max(own.fullBegin, blocks.begin), blocks.fullEnd);
  return blocks;
}

void WsWgmmaKernel::forBlocks(const BlockBounds &blocks,
                              function_ref<void(Value)> body) {
  control.loop(
      blocks.end.getType(), body, [&](ValueRange inits, Control::Fill fill) {
        auto loop = KVLoopOp::create(
            b, blocks.begin, blocks.fullBegin, blocks.fullEnd, blocks.end,
            plan.getBlockN(), /*stages=*/1, inits, fill);
        loop.setQkAhead(plan.getQkAhead());
        loop.setPvBehind(plan.getPvBehind());
        loop.setRescore(rescores(facts, plan));
        if (plan.getTurns())
          loop.setTurns(kTurnBarrier);
        if (plan.getFirstBlock() == FirstBlock::Auto && control.isWhole())
          setFirstBlock(loop);
        return loop;
      });
}

void WsWgmmaKernel::setFirstBlock(KVLoopOp loop) {
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

Value WsWgmmaKernel::multiplyScales(Value s, Value scales) {
  if (!scales)
    return s;
  return arith::MulFOp::create(
      b, s, BroadcastOp::create(b, s.getType(), scales, /*columns=*/true));
}

Value WsWgmmaKernel::softmax(Value scale, Value key, Value s, Var &m, Var &l,
                             Var &o) {
  if (failed(emitScores(tile, key, s, plan.getKeyQuads()))) {
    control.fail();
    return {};
  }
  auto op = OnlineSoftmaxOp::create(b, s, m.get(), l.get(), o.get(), scale,
                                    plan.getSoftmax());
  if (facts.isNarrow())
    setNarrowRange(op);
  m = op.getNewM();
  l = op.getNewL();
  o = op.getNewO();
  return makeProbabilityOperand(tile, op.getP(), plan.getKeyQuads());
}

void WsWgmmaKernel::store(RunningState running, Slot queries, Value queryTile) {
  Value oView = emitResultView(tile, "o");
  LogViews logViews = emitLogViews(tile);
  bool inQueries = resultBuffer == ResultBuffer::Queries;
  ResultMap map = resultMap;
  if (map.map)
    map.coordinates = getResultStart(tile, /*firstColumn=*/0);
  emitResults(tile, emitFinalState(tile, running), oView, logViews,
              inQueries ? queryTile : resultMemory, plan.getEpilogue(), map);
  if (!inQueries)
    return;
  // The thread that started the copy knows when the slot has been read.
  auto elect = ElectOp::create(b, /*each_warpgroup=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&elect.getBody());
  awaitBulkStores(b, b.getLoc());
  queries.release();
  YieldOp::create(b, ValueRange());
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void WsWgmmaKernel::forTiles(function_ref<void()> body) {
  walk.forTiles(control, body,
                [&](TileLoopOp loop) { setTileDealer(loop, dealer); });
}

SmallVector<Partition> WsWgmmaKernel::listPartitions() {
  RegisterBudget budget = getRegisterBudget(facts, plan);
  int64_t computing = plan.getBlockM() / 16;
  int64_t loading = kWarpgroupWarps / plan.getLoaders();
  SmallVector<Partition> list = {
      {kConsumer.partition, computing, {computing, 1}, budget.consumer, [&] {
         compute();
       }}};
  if (needsTransposer(facts))
    list.push_back({kProducer.partition, loading, {0, 0}, budget.producer, [&] {
                      loadAndTranspose();
                    }});
  else if (producerLooksForKeys(facts, plan))
    list.push_back({kProducer.partition, loading, {0, 0}, budget.producer, [&] {
                      loadTogether();
                    }});
  else
    list.push_back({kProducer.partition, loading, {0, 0}, budget.producer, [&] {
                      control.elect([&] { load(); });
                    }});
  if (hasValueProducer())
    list.push_back(
        {kValueProducer.partition, loading, {0, 0}, budget.producer, [&] {
           control.elect([&] { loadValues(); });
         }});
  if (facts.hasNarrowKeys())
    list.push_back({kWidener.partition,
                    kWarpgroupWarps,
                    {kWarpgroupWarps, 1},
                    budget.widener,
                    [&] {
                      widenKeys(walk, control, rings, [&](TileLoopOp loop) {
                        setTileDealer(loop, dealer);
                      });
                    }});
  return list;
}

LogicalResult WsWgmmaKernel::run() {
  makeRings();
  makeResults();
  makeDealer();
  walk.emitExtents();
  if (narrowsToWarpgroup())
    reportNarrowing();
  control.partitions(listPartitions());
  return success(control.isWhole());
}

LogicalResult attn::emitWsWgmma(KernelContext &context, WsWgmmaPlanAttr plan) {
  return WsWgmmaKernel(context, plan).run();
}
