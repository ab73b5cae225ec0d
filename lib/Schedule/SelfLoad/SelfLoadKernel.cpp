//===- SelfLoadKernel.cpp - The kernel of self_load -----------------------===//
//
// One partition has both roles of the channels q, k and v: its elected thread
// loads what all of its warps read. A block's keys are overwritten by those of
// the block `k_stages` further on, and its values in the next block, when PV
// has been awaited with QK ahead as well:
//
//   for each tile: load Q, the first k_stages blocks of K and v_stages - 1 of V
//                  store the results of the tile before
//     for block t: S = Q K(t)^T; release K(t); softmax
//                  load K(t + k_stages) and V(t + v_stages - 1)
//                  O += P V(t); release V(t)
//
// The results of a tile are stored while the first loads of the next one are on
// their way.
//
// 8-bit values whose keys are not contiguous are transposed by the warpgroup
// itself, from their slot to the one buffer vt, which PV reads: under QK of the
// block, or with QK ahead after the softmax, as PV of the block before still
// reads vt under QK. All warps write what all of them read, so that
// attn-insert-fences puts a barrier before and one after.
//
//===----------------------------------------------------------------------===//

#include "../Core/NarrowKeys.h"
#include "../Kernel/Pipe.h"
#include "../Tma/Rings.h"
#include "../Wgmma/SlicedProducts.h"
#include "../Wgmma/WgmmaFacts.h"
#include "../Wgmma/WgmmaOperands.h"
#include "SelfLoad.h"
#include "attn/Schedule/Kernel/Scores.h"
#include "attn/Schedule/Kernel/StoreResults.h"
#include <optional>

using namespace mlir;
using namespace mlir::attn;

/// The roles.
static constexpr Role kConsumer{"consumer", "consumer"};
static constexpr Role kLoader{"loader", "consumer"};
static constexpr Role kTransposer{"transposer", "consumer"};

namespace {

/// The state of a tile's rows.
struct Rows {
  Var m, l, o;
};

/// Where a tile is whose results are to be stored; no tile has row -1.
struct Place {
  Var batch, head, row;
  /// The number of queries and the first one's row, for packed sequences only.
  std::optional<Var> queries, queryStart;
};

class SelfLoadKernel {
public:
  SelfLoadKernel(KernelContext &context, SelfLoadPlanAttr plan)
      : context(context), facts(context.facts), plan(plan), b(context.b),
        control(b), walk(context, getTilePlan(plan)), tile(walk.tile) {}
  LogicalResult run();

private:
  void makeRings();
  void computeTiles();

  /// Loads the next slot of `ring` with the rows of `head` from `first` on, in
  /// one thread.
  void load(const Ring &ring, Pipe &pipe, Value head, Value first);
  /// Loads the tile's first `count` blocks, or as many as there are.
  void loadFirst(const Ring &ring, Pipe &pipe, int64_t count);
  /// Loads the block `ahead` blocks after `key`, if there is one.
  void refill(const Ring &ring, Pipe &pipe, Value key, int64_t ahead);
  /// Copies the next slot of 8-bit values to where PV reads them.
  void transposeValues(Pipe &values);
  /// Calls `body` with the first key of each of the tile's blocks.
  void forBlocks(function_ref<void(Value)> body);
  Place makePlace();
  /// Makes `place` the place of the tile that was found.
  void setPlace(Place &place);
  /// Stores the results of the tile at `place`, if it is one.
  void storeResults(const Rows &rows, const Place &place);

  /// Returns the role that reads the slots of v.
  Role getValueRole() const {
    return needsTransposer(facts) ? kTransposer : kConsumer;
  }

  KernelContext &context;
  const ProblemFacts &facts;
  SelfLoadPlanAttr plan;
  ImplicitLocOpBuilder &b;
  Control control;
  TileWalk walk;
  AttentionTile &tile;
  Ring q, k, v;
  /// Transposed values of a block; null if PV reads their slots.
  Value vt;
  Value resultMap, resultMemory;
};

} // namespace

TilePlan attn::getTilePlan(SelfLoadPlanAttr plan) {
  return {kSelfLoadRows, plan.getBlockN(), plan.getOrder(),
          plan.getGroupHeads()};
}

void SelfLoadKernel::makeRings() {
  int64_t blockN = plan.getBlockN();
  q = makeRing(walk, {"q", RingRows::Queries, /*stages=*/1, kSelfLoadRows,
                      getKeyColumns(facts), kLoader, kConsumer});
  k = makeRing(
      walk, {"k", RingRows::Keys, plan.getKStages(), blockN,
             getKeyColumns(facts), kLoader, kConsumer, /*isLoaded=*/true,
             plan.getKeyQuads() ? TensorMapView::Quads : TensorMapView::Whole});
  v = makeValueRing(walk, plan.getVStages(), kLoader, getValueRole());
  if (needsTransposer(facts))
    vt = tile.alloc("vt", tile.bufferType({getValueColumns(facts), blockN}));
  if (storesByTma(facts, plan))
    resultMap = attn::makeResultMap(tile, /*rows=*/64, facts.valueDim);
  if (hasResultMemory(facts, plan))
    resultMemory = allocResults(tile);
}

void SelfLoadKernel::computeTiles() {
  control.elect([&] { prefetchMaps(b, {q.map, k.map, v.map, resultMap}); });
  Pipe queryLoads(control, q.channel, kLoader);
  Pipe keyLoads(control, k.channel, kLoader);
  Pipe valueLoads(control, v.channel, kLoader);
  Pipe queries(control, q.channel, kConsumer);
  Pipe keys(control, k.channel, kConsumer);
  Pipe values(control, v.channel, getValueRole());
  int64_t valuesAhead = getValuesAhead(facts, plan);
  RunningState none = emitInitialState(tile);
  Rows rows = {{control, none.m}, {control, none.l}, {control, none.o}};
  Place place = makePlace();
  walk.forTiles(control, [&] {
    load(q, queryLoads, tile.at.head, tile.row);
    loadFirst(k, keyLoads, plan.getKStages());
    loadFirst(v, valueLoads, valuesAhead);
    storeResults(rows, place);

    emitScoreDescale(tile);
    Value scale = emitExponentScale(tile);
    emitRowKeys(tile);
    Slot query = queries.acquire();
    Value queryTile = q.at(query);
    RunningState start = emitInitialState(tile, /*bets=*/plan.getSoftmax() ==
                                                    SoftmaxPolicy::Optimistic);
    rows.m = start.m, rows.l = start.l, rows.o = start.o;
    forBlocks([&](Value key) {
      Slot keySlot = keys.acquire();
      Value product = multiplyKeys(b, queryTile, k.at(keySlot),
                                   getKeyDepth(facts), /*sum=*/Value());
      // There is one place for all blocks. It is free while QK runs or, where
      // PV of the last block then runs too, after the softmax.
      if (vt && !plan.getQkAhead())
        transposeValues(values);
      Value s = awaitProducts(b, product, /*pending=*/0).front();
      keySlot.release();
      if (failed(emitScores(tile, key, s, plan.getKeyQuads())))
        return control.fail();
      auto softmax =
          OnlineSoftmaxOp::create(b, s, rows.m.get(), rows.l.get(),
                                  rows.o.get(), scale, plan.getSoftmax());
      if (facts.isNarrow())
        setNarrowRange(softmax);
      refill(k, keyLoads, key, plan.getKStages());
      refill(v, valueLoads, key, valuesAhead);
      if (vt && plan.getQkAhead())
        transposeValues(values);
      Value p =
          makeProbabilityOperand(tile, softmax.getP(), plan.getKeyQuads());
      Slot valueSlot;
      if (!vt)
        valueSlot = values.acquire();
      Value valueTile = vt ? vt : v.at(valueSlot);
      Value sum = multiplyValues(b, p, makeValueOperand(tile, valueTile),
                                 facts.valueDim, softmax.getNewO());
      rows.o = awaitProducts(b, sum, /*pending=*/0).front();
      if (valueSlot)
        valueSlot.release();
      rows.m = softmax.getNewM(), rows.l = softmax.getNewL();
      keys.advance(), values.advance();
    });
    query.release();
    queries.advance();
    setPlace(place);
  });
  if (control.isWhole())
    storeResults(rows, place);
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

void SelfLoadKernel::load(const Ring &ring, Pipe &pipe, Value head,
                          Value first) {
  control.elect([&] {
    // The table is read before the wait: its first entry brings the others
    // near.
    Value lead;
    if (ring.view == TensorMapView::Bounded)
      lead = tile.source->emitLead(first);
    Slot slot = pipe.acquire();
    startLoad(walk, ring, ring.at(slot), slot.getToken(), head, first,
              /*column=*/Value(), lead);
    slot.release();
  });
  pipe.advance();
}

void SelfLoadKernel::loadFirst(const Ring &ring, Pipe &pipe, int64_t count) {
  if (count == 0)
    return;
  const BlockBounds &bounds = tile.bounds;
  Value trips = arith::SubIOp::create(b, bounds.end, bounds.begin);
  Value last = arith::SubIOp::create(b, bounds.end, context.i32(1));
  Value loads = arith::MinSIOp::create(b, trips, context.i32(count));
  control.forRange(context.i32(0), loads, [&](Value index) {
    Value block = arith::SubIOp::create(b, last, index);
    Value key = arith::MulIOp::create(b, block, context.i32(plan.getBlockN()));
    load(ring, pipe, tile.at.kvHead, key);
  });
}

void SelfLoadKernel::refill(const Ring &ring, Pipe &pipe, Value key,
                            int64_t ahead) {
  int64_t blockN = plan.getBlockN();
  Value first =
      arith::MulIOp::create(b, tile.bounds.begin, context.i32(blockN));
  Value next = arith::SubIOp::create(b, key, context.i32(ahead * blockN));
  Value exists =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, next, first);
  control.ifThen(exists, [&] { load(ring, pipe, tile.at.kvHead, next); });
}

void SelfLoadKernel::transposeValues(Pipe &values) {
  Slot slot = values.acquire();
  LocalTransposeOp::create(b, v.at(slot), vt);
  slot.release();
}

void SelfLoadKernel::forBlocks(function_ref<void(Value)> body) {
  const BlockBounds &bounds = tile.bounds;
  control.loop(b.getI32Type(), body, [&](ValueRange inits, Control::Fill fill) {
    auto loop = KVLoopOp::create(b, bounds.begin, bounds.fullBegin,
                                 bounds.fullEnd, bounds.end, plan.getBlockN(),
                                 /*stages=*/1, inits, fill);
    loop.setQkAhead(plan.getQkAhead());
    return loop;
  });
}

Place SelfLoadKernel::makePlace() {
  Value zero = context.i32(0);
  Place place = {
      {control, zero}, {control, zero}, {control, context.i32(-1)}, {}, {}};
  if (facts.varlen) {
    place.queries.emplace(control, zero);
    place.queryStart.emplace(control, context.i64(0));
  }
  return place;
}

void SelfLoadKernel::setPlace(Place &place) {
  place.batch = tile.at.batch;
  place.head = tile.at.head;
  place.row = tile.row;
  if (!facts.varlen)
    return;
  *place.queries = tile.queries;
  *place.queryStart = tile.queryStart;
}

void SelfLoadKernel::storeResults(const Rows &rows, const Place &place) {
  // The next tile's place is needed again.
  TileCoordinates nextAt = tile.at;
  Value nextRow = tile.row, nextQueries = tile.queries,
        nextStart = tile.queryStart;
  tile.at.batch = place.batch;
  tile.at.head = place.head;
  tile.row = place.row;
  tile.queries = facts.varlen ? place.queries->get() : context.getQueries();
  tile.queryStart = facts.varlen ? place.queryStart->get() : Value();
  Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, tile.row,
                                       context.i32(0));
  control.ifThen(exists, [&] {
    if (facts.vDescale) {
      tile.at.kvHead = emitKVHead(context, tile.at.head);
      tile.valueDescale = emitValueDescale(tile);
    }
    Value oView = emitResultView(tile, "o");
    LogViews logViews = emitLogViews(tile);
    ResultMap map;
    if (resultMap)
      map = {resultMap,
             {tile.at.batch, tile.at.head, tile.row, context.i32(0)}};
    RunningState last(rows.m, rows.l, rows.o);
    emitResults(tile, emitFinalState(tile, last), oView, logViews, resultMemory,
                plan.getEpilogue(), map);
  });
  tile.at = nextAt;
  tile.row = nextRow;
  tile.queries = nextQueries;
  tile.queryStart = nextStart;
}

LogicalResult SelfLoadKernel::run() {
  makeRings();
  walk.emitExtents();
  constexpr int64_t kWarps = kSelfLoadRows / 16;
  control.partitions({{kConsumer.partition,
                       kWarps,
                       {kWarps, 1},
                       getThreadRegisters(plan),
                       [&] { computeTiles(); }}});
  return success(control.isWhole());
}

LogicalResult attn::emitSelfLoad(KernelContext &context,
                                 SelfLoadPlanAttr plan) {
  return SelfLoadKernel(context, plan).run();
}
