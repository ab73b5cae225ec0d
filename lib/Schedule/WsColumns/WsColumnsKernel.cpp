//===- WsColumnsKernel.cpp - The kernel of ws_columns ---------------------===//
//
// All partitions walk the same tiles and, in each, the same blocks of keys from
// the last to the first: the warpgroups softmax and columns, and a warp for
// each ring of keys and values, so that none waits for slots of another one.
// Rows of Q, K and V come in slices, a slot each, so that the columns of a
// block need not lie in shared memory all at once. The channel q hands over all
// slices of a tile's queries, k those of the keys to the softmax, v and w those
// of the values: v the first columns to the softmax, w the others to the second
// warpgroup.
//
// The channel p hands over the probabilities of a block with the factor by
// which the accumulator is rescaled first. It has one slot: the second
// warpgroup reads it into registers and hands it back before it multiplies, so
// that it may be a block late. The channel scale hands over what results are
// multiplied by.
//
// Two CTAs may divide the depth of a tile and the columns of its results. By
// the channel s each sends its part of the scores to the other one.
//
//===----------------------------------------------------------------------===//

#include "../Kernel/Pipe.h"
#include "../Tma/Rings.h"
#include "../Wgmma/SlicedProducts.h"
#include "../Wgmma/WgmmaFacts.h"
#include "WsColumns.h"
#include "attn/Schedule/Kernel/Scores.h"
#include "attn/Schedule/Kernel/StoreResults.h"
#include <optional>

using namespace mlir;
using namespace mlir::attn;

static constexpr Role kSoftmax{"softmax", "softmax"};
/// Further roles of the softmax: it sends scores to the other CTA, and adds
/// those that came from there.
static constexpr Role kSender{"sender", "softmax"};
static constexpr Role kAdder{"adder", "softmax"};
static constexpr Role kColumns{"columns", "columns"};
/// The roles that load Q and K, and the two parts of the values.
static constexpr Role kKeyLoader{"load_k", "load_k"};
static constexpr Role kValueLoader{"load_v", "load_v"};
static constexpr Role kOtherLoader{"load_w", "load_w"};

namespace {

/// Columns of the results, as slices.
struct SliceRange {
  int64_t first, count;
};

/// The memory and the channels by which roles hand things on.
struct ColumnsMemory {
  Ring q, k, v, w;
  Value pChannel, scaleChannel;
  /// The channel of the scores that the other CTA sends, and where they come;
  /// null without one.
  Value sChannel, scores;
  /// Probabilities, the factors of their rows, and those of results.
  Value probabilities, factors, scales;
};

class WsColumnsKernel {
public:
  WsColumnsKernel(KernelContext &context, WsColumnsPlanAttr plan)
      : context(context), facts(context.facts), plan(plan), b(context.b),
        control(b), walk(context, getTilePlan(context.facts, plan)),
        tile(walk.tile) {}
  LogicalResult run();

private:
  void makeRings();
  void makeHandOvers();

  /// The partition of `role`, which fills `ring` with `slices` of each block;
  /// `perCTA` is where the columns of the next CTA begin. It loads the queries
  /// too if `withQueries` is true.
  void load(const Ring &ring, Role role, SliceRange slices, int64_t perCTA,
            bool withQueries = false);
  void computeSoftmax();
  void computeColumns();

  /// Returns slice `i` of the queries.
  Value getQuery(int64_t i);
  /// Returns the first column of slice `i`.
  Value getFirstColumn(int64_t i, int64_t perCTA);
  /// Returns accumulators of zeros, one for each slice.
  Vars makeResults(SliceRange slices);
  /// Calls `body` with the first key of each of the tile's blocks.
  void forBlocks(function_ref<void(Value)> body);
  /// Hands `blocks` blocks of `slices` slots each back unread; `blocks` is null
  /// where there cannot be any.
  void skip(Value blocks, ArrayRef<std::pair<Pipe *, int64_t>> slices);
  /// Makes probabilities of the scores `s` of the block at `key`; changes `m`
  /// and `l`. Returns the probabilities, and the factor of results; null after
  /// a diagnostic.
  std::pair<Value, Value> softmax(Value scale, Value key, Value s, Var &m,
                                  Var &l);
  /// Stores the LSE, which the first CTA of a tile does for all.
  void storeLSE(const FinalRows &rows);
  /// Multiplies the accumulators by `factor` and stores them.
  void storeResults(SliceRange slices, ValueRange results, Value factor);

  /// Returns true if two CTAs divide the depth of a tile and the columns of its
  /// results.
  bool isDepthDivided() const { return plan.getDepthCtas() > 1; }
  /// Columns of slice `i` of the queries that are multiplied. Zeros after the
  /// last column are after the same one in all CTAs only where these do not
  /// divide the depth.
  int64_t getDepth(int64_t i) const {
    return isDepthDivided() ? kColumnsSlice
                            : std::min(kColumnsSlice,
                                       getKeyDepth(facts) - i * kColumnsSlice);
  }
  int64_t getResultColumns(int64_t slice) const {
    return std::min(kColumnsSlice,
                    getOwnColumns(facts, plan) - slice * kColumnsSlice);
  }
  RankedTensorType getScoreType(Type elementType) {
    return tile.tileType({kColumnsRows, plan.getBlockN()}, elementType);
  }

  KernelContext &context;
  const ProblemFacts &facts;
  WsColumnsPlanAttr plan;
  ImplicitLocOpBuilder &b;
  Control control;
  TileWalk walk;
  AttentionTile &tile;
  ColumnsMemory memory;
  /// Slices of Q and K, and of the results of each warpgroup.
  int64_t keySlices = 0;
  SliceRange own = {}, others = {};
};

} // namespace

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TilePlan attn::getTilePlan(const ProblemFacts &facts, WsColumnsPlanAttr plan) {
  TilePlan tilePlan = {kColumnsRows, plan.getBlockN(), plan.getOrder(),
                       plan.getGroupHeads(), plan.getCluster()};
  tilePlan.ctasPerTile = plan.getDepthCtas();
  tilePlan.setRuns(facts, plan.getPackHeads());
  return tilePlan;
}

void WsColumnsKernel::makeRings() {
  keySlices = countKeySlices(facts, plan);
  own = {0, plan.getSoftmaxColumns() / kColumnsSlice};
  others = {own.count, countSlices(getOwnColumns(facts, plan)) - own.count};
  RingSpec queries = {"q",           RingRows::Queries, 1,       kColumnsRows,
                      kColumnsSlice, kKeyLoader,        kSoftmax};
  queries.together = keySlices;
  memory.q = makeRing(walk, queries);
  auto keys = [&](StringRef name, int64_t stages, Role from, Role to) {
    return RingSpec{name,          RingRows::Keys, stages, plan.getBlockN(),
                    kColumnsSlice, from,           to};
  };
  memory.k = makeRing(walk, keys("k", plan.getKStages(), kKeyLoader, kSoftmax));
  // An odd number of slices leaves the second CTA one without a column.
  if (memory.q.view == TensorMapView::Packed && isDepthDivided() &&
      keySlices * plan.getDepthCtas() > countSlices(facts.headDim)) {
    addSpare(context, memory.q);
    addSpare(context, memory.k);
  }
  memory.v =
      makeRing(walk, keys("v", plan.getVStages(), kValueLoader, kSoftmax));
  RingSpec otherValues = keys("w", plan.getWStages(), kOtherLoader, kColumns);
  otherValues.tensor = "v";
  memory.w = makeRing(walk, otherValues);
}

void WsColumnsKernel::makeHandOvers() {
  auto handOver = [&](StringRef name) {
    return makeChannel(
        b, name, /*stages=*/1,
        {{kSoftmax, SignalKind::Arrive}, {kColumns, SignalKind::Arrive}});
  };
  auto rows = [&](StringRef name) {
    return tile.alloc(name, tile.bufferType({kColumnsRows}, b.getF32Type()));
  };
  memory.pChannel = handOver("p");
  memory.probabilities =
      tile.alloc("p", tile.bufferType({kColumnsRows, plan.getBlockN()}));
  memory.factors = rows("factor");
  memory.scaleChannel = handOver("scale");
  memory.scales = rows("scale");
  if (!isDepthDivided())
    return;
  memory.sChannel =
      makeChannel(b, "s", /*stages=*/1,
                  {{kSender, SignalKind::Tx}, {kAdder, SignalKind::Arrive}});
  // A store of a warp, 8 columns of 8 rows, is a run of bytes.
  memory.scores = tile.alloc(
      "s", BufferType::get(b.getContext(), {kColumnsRows, plan.getBlockN()},
                           b.getF32Type(),
                           SwizzledLayoutAttr::get(b.getContext(), /*span=*/32),
                           MemorySpace::Shared));
}

//===----------------------------------------------------------------------===//
// The partitions
//===----------------------------------------------------------------------===//

void WsColumnsKernel::load(const Ring &ring, Role role, SliceRange slices,
                           int64_t perCTA, bool withQueries) {
  prefetchMaps(b, {withQueries ? memory.q.map : Value(), ring.map});
  Pipe pipe(control, ring.channel, role);
  std::optional<Pipe> query;
  if (withQueries)
    query.emplace(control, memory.q.channel, role);
  walk.forTiles(control, [&] {
    if (withQueries) {
      Slot all = query->acquire();
      for (int64_t i = 0; i < keySlices; ++i) {
        Value slice = getQuery(i), column = getFirstColumn(i, perCTA);
        startLoad(walk, memory.q, slice, all.getToken(), tile.at.head, tile.row,
                  column);
      }
      all.release();
    }
    const ClusterTile &blocks = walk.cluster;
    Value trips = b.createOrFold<arith::SubIOp>(blocks.end, blocks.begin);
    Value last = arith::SubIOp::create(b, blocks.end, context.i32(1));
    control.forRange(context.i32(0), trips, [&](Value index) {
      Value block = arith::SubIOp::create(b, last, index);
      Value key =
          arith::MulIOp::create(b, block, context.i32(plan.getBlockN()));
      for (int64_t i = 0; i < slices.count; ++i) {
        Slot slot = pipe.acquire();
        Value slice = ring.at(slot);
        startLoad(walk, ring, slice, slot.getToken(), tile.at.kvHead, key,
                  getFirstColumn(slices.first + i, perCTA));
        slot.release();
        pipe.advance();
      }
    });
    if (withQueries)
      query->advance();
  });
}

void WsColumnsKernel::computeSoftmax() {
  Pipe query(control, memory.q.channel, kSoftmax),
      keys(control, memory.k.channel, kSoftmax);
  Pipe values(control, memory.v.channel, kSoftmax),
      toColumns(control, memory.pChannel, kSoftmax);
  Pipe toScale(control, memory.scaleChannel, kSoftmax);
  std::optional<Pipe> sent, came;
  if (isDepthDivided()) {
    sent.emplace(control, memory.sChannel, kSender);
    came.emplace(control, memory.sChannel, kAdder);
  }
  walk.forTiles(control, [&] {
    Value scale = emitExponentScale(tile);
    emitRowKeys(tile);
    Slot queries = query.acquire();
    SmallVector<Value> slices;
    for (int64_t i = 0; i < keySlices; ++i)
      slices.push_back(getQuery(i));
    SmallVector<std::pair<Pipe *, int64_t>> skipped = {{&keys, keySlices},
                                                       {&values, own.count}};
    skip(walk.cluster.skippedBehind, skipped);
    RunningState state = emitInitialState(tile, /*bets=*/plan.getSoftmax() ==
                                                    SoftmaxPolicy::Optimistic);
    Var m(control, state.m), l(control, state.l);
    Vars o = makeResults(own);
    forBlocks([&](Value key) {
      // A slot is handed back when the product after its own has started and
      // its own is complete.
      Slot held, theirs;
      Value s;
      for (int64_t i = 0; i < keySlices; ++i) {
        Slot slot = keys.acquire();
        s = multiplyKeys(b, slices[i], memory.k.at(slot), getDepth(i), s);
        if (i > 0) {
          awaitProducts(b, {}, /*pending=*/1);
          held.release();
        }
        held = slot;
        keys.advance();
      }
      s = awaitProducts(b, s, /*pending=*/0).front();
      held.release();
      if (isDepthDivided()) {
        Slot to = sent->acquire();
        LocalSendOp::create(b, s, memory.scores, to.getToken(),
                            /*barriers=*/Value(),
                            /*which=*/Value());
        to.release();
        theirs = came->acquire();
        Value other = LocalLoadOp::create(b, s.getType(), memory.scores);
        sent->advance(), came->advance();
        // Two parts have the same sum in either order.
        s = arith::AddFOp::create(b, s, other);
      }
      auto [p, factor] = softmax(scale, key, s, m, l);
      if (!p)
        return;
      Slot to = toColumns.acquire();
      LocalStoreOp::create(b, p, memory.probabilities);
      LocalStoreOp::create(b, factor, memory.factors);
      to.release();
      toColumns.advance();
      // All that was loaded is used: probabilities are stored
      // (docs/Rationale/Clusters.md).
      if (theirs)
        theirs.release();
      o = emitRareRescale(b, factor, o.get());
      for (int64_t i = 0; i < own.count; ++i) {
        Slot slot = values.acquire();
        o[i] = multiplyValues(b, p, memory.v.at(slot),
                              getResultColumns(own.first + i), o[i]);
        if (i > 0) {
          awaitProducts(b, {}, /*pending=*/1);
          held.release();
        }
        held = slot;
        values.advance();
      }
      o = awaitProducts(b, o.get(), /*pending=*/0);
      held.release();
    });
    if (!control.isWhole())
      return;
    queries.release();
    skip(walk.cluster.skippedInFront, skipped);

    FinalRows rows = emitFinalRows(tile, m, l);
    Value factor = emitRowFactor(tile, rows);
    Slot to = toScale.acquire();
    LocalStoreOp::create(b, factor, memory.scales);
    to.release();
    if (facts.lse)
      storeLSE(rows);
    storeResults(own, o.get(), factor);
    query.advance(), toScale.advance();
  });
}

void WsColumnsKernel::computeColumns() {
  Pipe values(control, memory.w.channel, kColumns),
      fromSoftmax(control, memory.pChannel, kColumns);
  Pipe fromScale(control, memory.scaleChannel, kColumns);
  walk.forTiles(control, [&] {
    std::pair<Pipe *, int64_t> skipped = {&values, others.count};
    skip(walk.cluster.skippedBehind, skipped);
    Vars o = makeResults(others);
    const BlockBounds &bounds = tile.bounds;
    Value trips = b.createOrFold<arith::SubIOp>(bounds.end, bounds.begin);
    control.forRange(context.i32(0), trips, [&](Value) {
      Slot from = fromSoftmax.acquire();
      Value factor =
          LocalLoadOp::create(b, tile.f32Tile({kColumnsRows}), memory.factors);
      Value p = LocalLoadOp::create(b, getScoreType(facts.elementType),
                                    memory.probabilities);
      from.release();
      o = emitRareRescale(b, factor, o.get());
      Slot held;
      for (int64_t i = 0; i < others.count; ++i) {
        Slot slot = values.acquire();
        o[i] = multiplyValues(b, p, memory.w.at(slot),
                              getResultColumns(others.first + i), o[i]);
        if (i > 0) {
          awaitProducts(b, {}, /*pending=*/1);
          held.release();
        }
        held = slot;
        values.advance();
      }
      o = awaitProducts(b, o.get(), /*pending=*/0);
      held.release();
      fromSoftmax.advance();
    });
    skip(walk.cluster.skippedInFront, skipped);
    Slot from = fromScale.acquire();
    Value factor =
        LocalLoadOp::create(b, tile.f32Tile({kColumnsRows}), memory.scales);
    from.release();
    storeResults(others, o.get(), factor);
    fromScale.advance();
  });
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

Value WsColumnsKernel::getQuery(int64_t i) {
  return SlotOp::create(b, memory.q.slotType, memory.q.buffer, context.i32(i),
                        /*distance=*/IntegerAttr());
}

Value WsColumnsKernel::getFirstColumn(int64_t i, int64_t perCTA) {
  Value column = context.i32(i * kColumnsSlice);
  if (!isDepthDivided())
    return column;
  return arith::AddIOp::create(
      b, column, arith::MulIOp::create(b, walk.rank, context.i32(perCTA)));
}

Vars WsColumnsKernel::makeResults(SliceRange slices) {
  SmallVector<Value> zeros;
  for (int64_t i = 0; i < slices.count; ++i)
    zeros.push_back(tile.splat(
        tile.f32Tile({kColumnsRows, getResultColumns(slices.first + i)}), 0));
  return {control, zeros};
}

void WsColumnsKernel::forBlocks(function_ref<void(Value)> body) {
  const BlockBounds &bounds = tile.bounds;
  control.loop(b.getI32Type(), body, [&](ValueRange inits, Control::Fill fill) {
    return KVLoopOp::create(b, bounds.begin, bounds.fullBegin, bounds.fullEnd,
                            bounds.end, plan.getBlockN(), /*stages=*/1, inits,
                            fill);
  });
}

void WsColumnsKernel::skip(Value blocks,
                           ArrayRef<std::pair<Pipe *, int64_t>> slices) {
  if (!blocks)
    return;
  control.forRange(context.i32(0), blocks, [&](Value) {
    for (auto [pipe, count] : slices)
      control.forRange(context.i32(0), context.i32(count), [pipe](Value) {
        pipe->acquire().release();
        pipe->advance();
      });
  });
}

std::pair<Value, Value> WsColumnsKernel::softmax(Value scale, Value key,
                                                 Value s, Var &m, Var &l) {
  if (failed(emitScores(tile, key, s))) {
    control.fail();
    return {};
  }
  auto op = OnlineSoftmaxOp::create(b, s, m.get(), l.get(), /*o=*/Value(),
                                    scale, plan.getSoftmax());
  m = op.getNewM();
  l = op.getNewL();
  Value p =
      arith::TruncFOp::create(b, getScoreType(facts.elementType), op.getP());
  return {p, op.getFactor()};
}

void WsColumnsKernel::storeLSE(const FinalRows &rows) {
  auto store = [&] { emitLSE(tile, rows.m, rows.l, emitLogViews(tile)); };
  if (!isDepthDivided())
    return store();
  control.ifThen(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, walk.rank,
                                       context.i32(0)),
                 store);
}

void WsColumnsKernel::storeResults(SliceRange slices, ValueRange results,
                                   Value factor) {
  for (auto [i, result] : llvm::enumerate(results)) {
    int64_t slice = slices.first + i;
    ResultColumns columns = {slice * kColumnsSlice, getResultColumns(slice),
                             isDepthDivided() ? walk.rank : Value(),
                             isDepthDivided() ? getOwnColumns(facts, plan) : 0};
    Value view = emitResultView(tile, "o", columns);
    StoreResultOp::create(b, emitQuotient(tile, result, factor, columns), view,
                          tile.row,
                          /*scratch=*/Value(), /*map=*/Value(),
                          /*coordinates=*/ValueRange(), plan.getEpilogue());
  }
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

LogicalResult WsColumnsKernel::run() {
  makeRings();
  makeHandOvers();
  walk.emitExtents();
  auto loader = [&](Role role, int64_t warps, function_ref<void()> body) {
    return Partition{
        role.partition, warps, {0, 0}, kLoaderRegisters, [this, body] {
          control.elect(body);
        }};
  };
  auto loadKeys = [&] {
    load(memory.k, kKeyLoader, {0, keySlices}, keySlices * kColumnsSlice,
         /*withQueries=*/true);
  };
  auto loadValues = [&] {
    load(memory.v, kValueLoader, own, getOwnColumns(facts, plan));
  };
  auto loadOthers = [&] {
    load(memory.w, kOtherLoader, others, getOwnColumns(facts, plan));
  };
  control.partitions({{kSoftmax.partition,
                       4,
                       {4, 1},
                       getColumnsRegisters(plan),
                       [&] { computeSoftmax(); }},
                      {kColumns.partition,
                       4,
                       {4, 1},
                       getColumnsRegisters(plan),
                       [&] { computeColumns(); }},
                      loader(kKeyLoader, 1, loadKeys),
                      loader(kValueLoader, 1, loadValues),
                      loader(kOtherLoader, 2, loadOthers)});
  return success(control.isWhole());
}

LogicalResult attn::emitWsColumns(KernelContext &context,
                                  WsColumnsPlanAttr plan) {
  return WsColumnsKernel(context, plan).run();
}
