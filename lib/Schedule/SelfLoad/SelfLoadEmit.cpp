//===- SelfLoadEmit.cpp - The kernel of self_load in tile IR --------------===//
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

#include "../Wgmma/WgmmaEmitter.h"
#include "../Wgmma/WgmmaFacts.h"
#include "SelfLoad.h"

using namespace mlir;
using namespace mlir::attn;

/// The roles.
static constexpr Role kConsumer{"consumer", "consumer"};
static constexpr Role kLoader{"loader", "consumer"};
static constexpr Role kTransposer{"transposer", "consumer"};

namespace {

/// Cursors of one role in each ring.
struct RingCursors {
  Value q, k, v;
};

/// Where a tile is, as it is carried to where its results are stored.
struct TilePlace {
  Value batch, head, row;
  /// Of packed sequences only.
  Value queries = Value(), queryStart = Value();
};

/// What the loop over tiles carries: the cursors of both roles, and the state
/// and the place of a tile whose results are to be stored.
struct TileState {
  RingCursors loads, reads;
  RunningState running;
  TilePlace place;

  TileState() = default;
  /// The state as the loop has it, in the order of list().
  explicit TileState(ValueRange carried)
      : loads{carried[0], carried[1], carried[2]},
        reads{carried[3], carried[4], carried[5]}, running(carried.slice(6, 3)),
        place{carried[9], carried[10], carried[11]} {
    if (carried.size() == 12)
      return;
    place.queries = carried[12];
    place.queryStart = carried[13];
  }
  SmallVector<Value> list() const {
    SmallVector<Value> all = {loads.q, loads.k, loads.v,
                              reads.q, reads.k, reads.v};
    llvm::append_range(all, running.list());
    all.append({place.batch, place.head, place.row});
    if (place.queries)
      all.append({place.queries, place.queryStart});
    return all;
  }
};

class SelfLoadEmitter : WgmmaEmitter {
public:
  SelfLoadEmitter(KernelContext &context, SelfLoadPlanAttr plan)
      : WgmmaEmitter(
            context,
            {kSelfLoadRows, plan.getBlockN(), plan.getOrder(),
             plan.getGroupHeads()},
            {plan.getQkAhead(), plan.getSoftmax(), plan.getKeyQuads()}),
        plan(plan) {}
  LogicalResult run();

private:
  /// Who reads the slots of v.
  Role getValueRole() const {
    return needsTransposer(facts) ? kTransposer : kConsumer;
  }
  TileState emitInits();
  FailureOr<TileState> emitTileBody(const TileState &state);
  /// Starts the tile's first loads; the next cursors.
  RingCursors startLoads(const RingCursors &cursors);
  Value startLoads(const Ring &ring, int64_t count, Value cursor);
  /// Loads the block `ahead` blocks behind `key`, if there is one; the next
  /// cursor.
  Value refill(const Ring &ring, Value key, int64_t ahead, Value cursor);
  void loadBlock(const Ring &ring, Value key, Value cursor) {
    elect([&]() { load(ring, cursor, kLoader, at.kvHead, key); });
  }
  TilePlace getPlace();
  /// Stores the results of the tile that is carried, if it is one.
  void emitCarriedResults(const RunningState &running, const TilePlace &place);

  SelfLoadPlanAttr plan;
  Ring q, k, v;
  /// Transposed values of a block.
  Value vt;
  Value resultMap, resultMemory;
};

} // namespace

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

RingCursors SelfLoadEmitter::startLoads(const RingCursors &cursors) {
  elect([&]() { load(q, cursors.q, kLoader, at.head, row); });
  return {advance(cursors.q, q), startLoads(k, plan.getKStages(), cursors.k),
          startLoads(v, getValuesAhead(facts, plan), cursors.v)};
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

TilePlace SelfLoadEmitter::getPlace() {
  TilePlace place = {at.batch, at.head, row};
  if (facts.varlen) {
    place.queries = queries;
    place.queryStart = queryStart;
  }
  return place;
}

void SelfLoadEmitter::emitCarriedResults(const RunningState &running,
                                         const TilePlace &place) {
  // The next tile's place is needed again.
  TileCoordinates nextAt = at;
  Value nextRow = row, nextQueries = queries, nextStart = queryStart;
  at.batch = place.batch;
  at.head = place.head;
  row = place.row;
  queries = facts.varlen ? place.queries : context.getQueries();
  queryStart = place.queryStart;
  Value exists =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, row, context.i32(0));
  auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    if (facts.vDescale) {
      at.kvHead = emitKVHead(context, at.head);
      emitValueDescale();
    }
    Value oView = emitResultView("o"), lseView;
    if (facts.lse)
      lseView = emitResultView("lse");
    ResultMap map;
    if (resultMap)
      map = {resultMap, {at.batch, at.head, row, context.i32(0)}};
    emitResults(emitFinalState(running), oView, lseView, resultMemory,
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

TileState SelfLoadEmitter::emitInits() {
  auto start = [&](const Ring &ring, StringRef role) -> Value {
    return CursorStartOp::create(b, ring.channel, role);
  };
  TileState state;
  state.loads = {start(q, kLoader), start(k, kLoader), start(v, kLoader)};
  state.reads = {start(q, kConsumer), start(k, kConsumer),
                 start(v, getValueRole())};
  state.running = emitInitialState();
  // No tile has row -1.
  Value zero = context.i32(0);
  state.place = {zero, zero, context.i32(-1)};
  if (facts.varlen) {
    state.place.queries = zero;
    state.place.queryStart = context.i64(0);
  }
  return state;
}

FailureOr<TileState> SelfLoadEmitter::emitTileBody(const TileState &state) {
  RingCursors loads = startLoads(state.loads);
  emitCarriedResults(state.running, state.place);

  emitScoreDescale();
  Value scale = emitExponentScale();
  auto [queryTile, queryToken] = acquire(q, state.reads.q, kConsumer);
  BlockState init(emitInitialState(
                      /*bets=*/plan.getSoftmax() == SoftmaxPolicy::Optimistic),
                  state.reads.k, state.reads.v);
  init.keyLoads = loads.k;
  init.valueLoads = loads.v;
  KVLoopOp loop = emitBlocks(
      {kConsumer, k, v, queryTile, scale, vt, kTransposer}, init,
      [&](Value key, BlockState &block) {
        block.keyLoads = refill(k, key, plan.getKStages(), block.keyLoads);
        block.valueLoads =
            refill(v, key, getValuesAhead(facts, plan), block.valueLoads);
      });
  if (!loop)
    return failure();
  release(q, queryToken, kConsumer);
  BlockState last(loop.getResults());
  TileState next;
  next.loads = {loads.q, last.keyLoads, last.valueLoads};
  next.reads = {advance(state.reads.q, q), last.keys, last.values};
  next.running = last.running;
  next.place = getPlace();
  return next;
}

LogicalResult SelfLoadEmitter::run() {
  int64_t blockN = plan.getBlockN();
  q = makeRing({"q", RingRows::Queries, /*stages=*/1, blockM,
                getKeyColumns(facts), kLoader, kConsumer});
  k = makeRing(
      {"k", RingRows::Keys, plan.getKStages(), blockN, getKeyColumns(facts),
       kLoader, kConsumer, /*isLoaded=*/true,
       plan.getKeyQuads() ? TensorMapView::Quads : TensorMapView::Whole});
  v = makeValueRing(plan.getVStages(), kLoader, getValueRole());
  if (needsTransposer(facts))
    vt = alloc("vt", bufferType({getValueColumns(facts), blockN}));
  if (storesByTma(facts, plan))
    resultMap = makeResultMap(/*rows=*/64, facts.valueDim);
  if (hasResultMemory(facts, plan))
    resultMemory = allocResults();
  emitExtents();
  auto op = WarpSpecializeOp::create(
      b, b.getStrArrayAttr({kConsumer}), b.getDenseI64ArrayAttr({blockM / 16}),
      b.getDenseI64ArrayAttr({blockM / 16, 1}),
      b.getDenseI64ArrayAttr({getThreadRegisters(plan)}),
      /*partitionsCount=*/1);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&op.getPartitions().front());
  auto end = YieldOp::create(b, ValueRange());
  b.setInsertionPoint(end);
  elect([&]() { prefetchMaps({q.map, k.map, v.map, resultMap}); });
  TileLoopOp loop =
      emitTileLoop([&] { return emitInits().list(); },
                   [&](ValueRange carried) -> FailureOr<SmallVector<Value>> {
                     FailureOr<TileState> next =
                         emitTileBody(TileState(carried));
                     if (failed(next))
                       return failure();
                     return next->list();
                   });
  if (!loop)
    return failure();
  TileState last(loop.getResults());
  emitCarriedResults(last.running, last.place);
  return success();
}

LogicalResult SelfLoadSchedule::emit(KernelContext &context,
                                     PlanAttrInterface plan) const {
  return SelfLoadEmitter(context, cast<SelfLoadPlanAttr>(plan)).run();
}
