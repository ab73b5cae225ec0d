//===- Emit.cpp - The kernel of self_load in tile IR ----------------------===//
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
// block, or with QK ahead behind the softmax, as PV of the block before still
// reads vt under QK. All warps write what all of them read, so that
// attn-insert-fences puts a barrier in front and one behind.
//
//===----------------------------------------------------------------------===//

#include "../RingEmitter.h"
#include "../RingFacts.h"
#include "SelfLoad.h"

using namespace mlir;
using namespace mlir::attn;

/// The roles.
static constexpr llvm::StringLiteral kConsumer("consumer");
static constexpr llvm::StringLiteral kLoader("consumer.loader");
static constexpr llvm::StringLiteral kTransposer("consumer.transposer");

namespace {

class SelfLoadEmitter : RingEmitter {
public:
  SelfLoadEmitter(KernelContext &context, SelfLoadPlanAttr plan)
      : RingEmitter(context,
                    {kSelfLoadRows, plan.getBlockN(), plan.getQkAhead(),
                     plan.getSoftmax(), plan.getOrder(), plan.getGroupHeads(),
                     /*cluster=*/1, plan.getKeyQuads()}),
        plan(plan) {}
  LogicalResult run();

private:
  /// Who reads the slots of v.
  StringRef getValueRole() const {
    return needsTransposer(facts) ? kTransposer : kConsumer;
  }
  /// What the loop over tiles carries: cursors of both roles, the state of the
  /// softmax, and where its tile is.
  SmallVector<Value> emitInits();
  FailureOr<SmallVector<Value>> emitTileBody(ValueRange carried);
  /// Starts the tile's first loads; the next cursors of q, k and v.
  SmallVector<Value> startLoads(ValueRange cursors);
  Value startLoads(const Ring &ring, int64_t count, Value cursor);
  /// Loads the block `ahead` blocks behind `key`, if there is one; the next
  /// cursor.
  Value refill(const Ring &ring, Value key, int64_t ahead, Value cursor);
  void loadBlock(const Ring &ring, Value key, Value cursor) {
    elect([&]() { load(ring, cursor, kLoader, at.kvHead, key); });
  }
  /// Where the tile is, as it is carried to where its results are stored.
  SmallVector<Value> getPlace();
  /// Stores the results of the tile that is carried, if it is one.
  void emitCarriedResults(ValueRange state, ValueRange place);

  SelfLoadPlanAttr plan;
  Ring q, k, v;
  /// Transposed values of a block.
  Value vt;
  Value resultMap, resultMemory;
};

} // namespace

/// Carried cursors of each role, and values of the softmax.
static constexpr unsigned kRings = 3, kStateValues = 3;

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

Value SelfLoadEmitter::startLoads(const Ring &ring, int64_t count,
                                  Value cursor) {
  if (count == 0)
    return cursor;
  Value trips = arith::SubIOp::create(b, bounds.end, bounds.begin);
  Value lastBlock = arith::SubIOp::create(b, bounds.end, context.i32(1));
  Value loads = arith::MinSIOp::create(b, trips, context.i32(count));
  auto loop = scf::ForOp::create(b, context.i32(0), loads, context.i32(1),
                                 ValueRange{cursor});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value block = arith::SubIOp::create(b, lastBlock, loop.getInductionVar());
  Value next = loop.getRegionIterArg(0);
  loadBlock(ring,
            arith::MulIOp::create(b, block, context.i32(plan.getBlockN())),
            next);
  scf::YieldOp::create(b, advance(next, ring));
  return loop.getResult(0);
}

SmallVector<Value> SelfLoadEmitter::startLoads(ValueRange cursors) {
  elect([&]() { load(q, cursors[0], kLoader, at.head, row); });
  return {advance(cursors[0], q), startLoads(k, plan.getKStages(), cursors[1]),
          startLoads(v, getValuesAhead(facts, plan), cursors[2])};
}

Value SelfLoadEmitter::refill(const Ring &ring, Value key, int64_t ahead,
                              Value cursor) {
  int64_t blockN = plan.getBlockN();
  Value first = arith::MulIOp::create(b, bounds.begin, context.i32(blockN));
  Value next = arith::SubIOp::create(b, key, context.i32(ahead * blockN));
  Value exists =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, next, first);
  auto branch = scf::IfOp::create(b, cursor.getType(), exists,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  loadBlock(ring, next, cursor);
  scf::YieldOp::create(b, advance(cursor, ring));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, cursor);
  return branch.getResult(0);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

SmallVector<Value> SelfLoadEmitter::getPlace() {
  SmallVector<Value> place = {at.batch, at.head, row};
  if (facts.varlen)
    place.append({queries, queryStart});
  return place;
}

void SelfLoadEmitter::emitCarriedResults(ValueRange state, ValueRange place) {
  // The next tile's place is needed again.
  TileCoordinates nextAt = at;
  Value nextRow = row, nextQueries = queries, nextStart = queryStart;
  at.batch = place[0];
  at.head = place[1];
  row = place[2];
  queries = facts.varlen ? place[3] : context.getQueries();
  queryStart = facts.varlen ? place[4] : Value();
  Value exists =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, row, context.i32(0));
  auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    if (facts.vDescale) {
      at.kvHead = emitKVHead(at.head);
      emitValueDescale();
    }
    Value oView = emitView("o", at.head, queryStart, queries), lseView;
    if (facts.lse)
      lseView = emitView("lse", at.head, queryStart, queries);
    ResultMap map;
    if (resultMap)
      map = {resultMap, {at.batch, at.head, row, context.i32(0)}};
    emitResults(emitFinalState(state), oView, lseView, resultMemory,
                plan.getEpilogue(), map);
  }
  at = nextAt;
  row = nextRow;
  queries = nextQueries;
  queryStart = nextStart;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

SmallVector<Value> SelfLoadEmitter::emitInits() {
  SmallVector<Value> inits;
  for (const Ring *ring : {&q, &k, &v})
    inits.push_back(CursorStartOp::create(b, ring->channel, kLoader));
  for (auto [ring, role] :
       {std::pair(&q, StringRef(kConsumer)),
        std::pair(&k, StringRef(kConsumer)), std::pair(&v, getValueRole())})
    inits.push_back(CursorStartOp::create(b, ring->channel, role));
  llvm::append_range(inits, emitInitialState());
  // No tile has row -1.
  Value zero = context.i32(0);
  inits.append({zero, zero, context.i32(-1)});
  if (facts.varlen)
    inits.append({zero, context.i64(0)});
  return inits;
}

FailureOr<SmallVector<Value>>
SelfLoadEmitter::emitTileBody(ValueRange carried) {
  SmallVector<Value> loaders = startLoads(carried.take_front(kRings));
  ValueRange cursors = carried.slice(kRings, kRings);
  emitCarriedResults(carried.slice(2 * kRings, kStateValues),
                     carried.drop_front(2 * kRings + kStateValues));

  emitScoreDescale();
  Value scale = emitExponentScale();
  auto [queryTile, queryToken] = acquire(q, cursors[0], kConsumer);
  SmallVector<Value> inits = emitInitialState(
      /*bets=*/plan.getSoftmax() == SoftmaxPolicy::Optimistic);
  inits.append({cursors[1], cursors[2], loaders[1], loaders[2]});
  KVLoopOp loop =
      emitBlocks({kConsumer, k, v, queryTile, scale, /*probabilities=*/Value(),
                  vt, kTransposer},
                 inits, [&](Value key, ValueRange others) {
                   return SmallVector<Value>{
                       refill(k, key, plan.getKStages(), others[0]),
                       refill(v, key, getValuesAhead(facts, plan), others[1])};
                 });
  if (!loop)
    return failure();
  release(q, queryToken, kConsumer);
  ResultRange results = loop.getResults();
  SmallVector<Value> next = {loaders[0], results[5],
                             results[6], advance(cursors[0], q),
                             results[3], results[4]};
  llvm::append_range(next, results.take_front(kStateValues));
  llvm::append_range(next, getPlace());
  return next;
}

LogicalResult SelfLoadEmitter::run() {
  int64_t blockN = plan.getBlockN();
  q = makeRing("q", 1, blockM, getKeyColumns(facts), kLoader, kConsumer);
  k = makeRing(
      "k", plan.getKStages(), blockN, getKeyColumns(facts), kLoader, kConsumer,
      /*isLoaded=*/true,
      plan.getKeyQuads() ? TensorMapView::Quads : TensorMapView::Whole);
  v = makeValueRing(plan.getVStages(), kLoader, getValueRole());
  if (needsTransposer(facts))
    vt = alloc("vt", bufferType({getValueColumns(facts), blockN}));
  if (storesByTma(facts, plan))
    resultMap = makeResultMap();
  if (hasResultMemory(facts, plan))
    resultMemory = allocResults();
  emitExtents();
  auto op = WarpSpecializeOp::create(
      b, b.getStrArrayAttr({kConsumer}), b.getDenseI64ArrayAttr({blockM / 16}),
      b.getDenseI64ArrayAttr({getThreadRegisters(plan)}),
      /*partitionsCount=*/1);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&op.getPartitions().front());
  auto end = YieldOp::create(b, ValueRange());
  b.setInsertionPoint(end);
  elect([&]() { prefetchMaps({q.map, k.map, v.map, resultMap}); });
  TileLoopOp loop =
      emitTileLoop([&] { return emitInits(); },
                   [&](ValueRange carried) { return emitTileBody(carried); });
  if (!loop)
    return failure();
  ValueRange last = ValueRange(loop.getResults()).drop_front(2 * kRings);
  emitCarriedResults(last.take_front(kStateValues),
                     last.drop_front(kStateValues));
  return success();
}

LogicalResult SelfLoadSchedule::emit(KernelContext &context,
                                     PlanAttrInterface plan) const {
  return SelfLoadEmitter(context, cast<SelfLoadPlanAttr>(plan)).run();
}
