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
#include "../Tma/RingEmitter.h"
#include "../Wgmma/SlicedProducts.h"
#include "../Wgmma/WgmmaFacts.h"
#include "WsColumns.h"
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

class WsColumnsKernel {
public:
  WsColumnsKernel(KernelContext &context, WsColumnsPlanAttr plan)
      : context(context), facts(context.facts), plan(plan), b(context.b),
        control(b), kernel(context, getTilePlan(plan)) {}
  LogicalResult run();

private:
  static TilePlan getTilePlan(WsColumnsPlanAttr plan);
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
    int64_t slice = plan.getSlice();
    return isDepthDivided()
               ? slice
               : std::min<int64_t>(slice, getKeyDepth(facts) - i * slice);
  }
  int64_t getResultColumns(int64_t slice) const {
    return std::min(plan.getSlice(),
                    getOwnColumns(facts, plan) - slice * plan.getSlice());
  }
  RankedTensorType getScoreType(Type elementType) {
    return kernel.tileType({kColumnsRows, plan.getBlockN()}, elementType);
  }

  KernelContext &context;
  const ProblemFacts &facts;
  WsColumnsPlanAttr plan;
  ImplicitLocOpBuilder &b;
  Control control;
  RingEmitter kernel;
  Ring q, k, v, w;
  Value pChannel, scaleChannel;
  /// The channel of the scores that the other CTA sends, and where they come;
  /// null without one.
  Value sChannel, scores;
  /// Probabilities, the factors of their rows, and those of results.
  Value probabilities, factors, scales;
  /// Slices of Q and K, and of the results of each warpgroup.
  int64_t keySlices = 0;
  SliceRange own = {}, others = {};
};

} // namespace

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TilePlan WsColumnsKernel::getTilePlan(WsColumnsPlanAttr plan) {
  TilePlan tilePlan = {kColumnsRows, plan.getBlockN(), plan.getOrder(),
                       plan.getGroupHeads(), plan.getCluster()};
  tilePlan.ctasPerTile = plan.getDepthCtas();
  return tilePlan;
}

void WsColumnsKernel::makeRings() {
  int64_t slice = plan.getSlice(), blockN = plan.getBlockN();
  keySlices = countKeySlices(facts, plan);
  own = {0, plan.getSoftmaxColumns() / slice};
  others = {own.count,
            countSlices(getOwnColumns(facts, plan), plan) - own.count};
  RingSpec queries = {"q",   RingRows::Queries, 1,       kColumnsRows,
                      slice, kKeyLoader,        kSoftmax};
  queries.together = keySlices;
  q = kernel.makeRing(queries);
  auto keys = [&](StringRef name, int64_t stages, Role from, Role to) {
    return RingSpec{name, RingRows::Keys, stages, blockN, slice, from, to};
  };
  k = kernel.makeRing(keys("k", plan.getKStages(), kKeyLoader, kSoftmax));
  // An odd number of slices leaves the second CTA one without a column.
  if (q.view == TensorMapView::Packed && isDepthDivided() &&
      keySlices * plan.getDepthCtas() > countSlices(facts.headDim, plan)) {
    kernel.addSpare(q);
    kernel.addSpare(k);
  }
  v = kernel.makeRing(keys("v", plan.getVStages(), kValueLoader, kSoftmax));
  RingSpec otherValues = keys("w", plan.getWStages(), kOtherLoader, kColumns);
  otherValues.tensor = "v";
  w = kernel.makeRing(otherValues);
}

void WsColumnsKernel::makeHandOvers() {
  auto handOver = [&](StringRef name) {
    return kernel.makeChannel(
        name, /*stages=*/1,
        {{kSoftmax, SignalKind::Arrive}, {kColumns, SignalKind::Arrive}});
  };
  auto rows = [&](StringRef name) {
    return kernel.alloc(name,
                        kernel.bufferType({kColumnsRows}, b.getF32Type()));
  };
  pChannel = handOver("p");
  probabilities =
      kernel.alloc("p", kernel.bufferType({kColumnsRows, plan.getBlockN()}));
  factors = rows("factor");
  scaleChannel = handOver("scale");
  scales = rows("scale");
  if (!isDepthDivided())
    return;
  sChannel = kernel.makeChannel(
      "s", /*stages=*/1,
      {{kSender, SignalKind::Tx}, {kAdder, SignalKind::Arrive}});
  // A store of a warp, 8 columns of 8 rows, is a run of bytes.
  scores = kernel.alloc(
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
  kernel.prefetchMaps({withQueries ? q.map : Value(), ring.map});
  Pipe pipe(control, ring.channel, role);
  std::optional<Pipe> query;
  if (withQueries)
    query.emplace(control, q.channel, role);
  kernel.forTiles(control, [&] {
    if (withQueries) {
      Slot all = query->acquire();
      for (int64_t i = 0; i < keySlices; ++i) {
        Value slice = getQuery(i), column = getFirstColumn(i, perCTA);
        kernel.fill(q, slice, all.getToken(), kernel.at.head, kernel.row,
                    column);
      }
      all.release();
    }
    const ClusterTile &walk = kernel.walk;
    Value trips = b.createOrFold<arith::SubIOp>(walk.end, walk.begin);
    Value last = arith::SubIOp::create(b, walk.end, context.i32(1));
    control.forRange(context.i32(0), trips, [&](Value index) {
      Value block = arith::SubIOp::create(b, last, index);
      Value key =
          arith::MulIOp::create(b, block, context.i32(plan.getBlockN()));
      for (int64_t i = 0; i < slices.count; ++i) {
        Slot slot = pipe.acquire();
        Value slice = slot.in(ring.buffer, ring.slotType);
        kernel.fill(ring, slice, slot.getToken(), kernel.at.kvHead, key,
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
  Pipe query(control, q.channel, kSoftmax), keys(control, k.channel, kSoftmax);
  Pipe values(control, v.channel, kSoftmax),
      toColumns(control, pChannel, kSoftmax);
  Pipe toScale(control, scaleChannel, kSoftmax);
  std::optional<Pipe> sent, came;
  if (isDepthDivided()) {
    sent.emplace(control, sChannel, kSender);
    came.emplace(control, sChannel, kAdder);
  }
  kernel.forTiles(control, [&] {
    Value scale = kernel.emitExponentScale();
    Slot queries = query.acquire();
    SmallVector<Value> slices;
    for (int64_t i = 0; i < keySlices; ++i)
      slices.push_back(getQuery(i));
    SmallVector<std::pair<Pipe *, int64_t>> skipped = {{&keys, keySlices},
                                                       {&values, own.count}};
    skip(kernel.walk.skippedBehind, skipped);
    RunningState state = kernel.emitInitialState(
        /*bets=*/plan.getSoftmax() == SoftmaxPolicy::Optimistic);
    Var m(control, state.m), l(control, state.l);
    Vars o = makeResults(own);
    forBlocks([&](Value key) {
      // A slot is handed back when the product after its own has started and
      // its own is complete.
      Slot held, theirs;
      Value s;
      for (int64_t i = 0; i < keySlices; ++i) {
        Slot slot = keys.acquire();
        s = multiplyKeys(b, slices[i], slot.in(k.buffer, k.slotType),
                         getDepth(i), s);
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
        LocalSendOp::create(b, s, scores, to.getToken(), /*barriers=*/Value(),
                            /*which=*/Value());
        to.release();
        theirs = came->acquire();
        Value other = LocalLoadOp::create(b, s.getType(), scores);
        sent->advance(), came->advance();
        // Of two parts the sum is the same in either order.
        s = arith::AddFOp::create(b, s, other);
      }
      auto [p, factor] = softmax(scale, key, s, m, l);
      if (!p)
        return;
      Slot to = toColumns.acquire();
      LocalStoreOp::create(b, p, probabilities);
      LocalStoreOp::create(b, factor, factors);
      to.release();
      toColumns.advance();
      // What was loaded is used: probabilities are stored
      // (docs/Rationale/Clusters.md).
      if (theirs)
        theirs.release();
      o = kernel.emitRareRescale(b, factor, o.get());
      for (int64_t i = 0; i < own.count; ++i) {
        Slot slot = values.acquire();
        o[i] = multiplyValues(b, p, slot.in(v.buffer, v.slotType),
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
    skip(kernel.walk.skippedInFront, skipped);

    FinalRows rows = kernel.emitFinalRows(m, l);
    Value factor = kernel.emitRowFactor(rows);
    Slot to = toScale.acquire();
    LocalStoreOp::create(b, factor, scales);
    to.release();
    if (facts.lse)
      storeLSE(rows);
    storeResults(own, o.get(), factor);
    query.advance(), toScale.advance();
  });
}

void WsColumnsKernel::computeColumns() {
  Pipe values(control, w.channel, kColumns),
      fromSoftmax(control, pChannel, kColumns);
  Pipe fromScale(control, scaleChannel, kColumns);
  kernel.forTiles(control, [&] {
    std::pair<Pipe *, int64_t> skipped = {&values, others.count};
    skip(kernel.walk.skippedBehind, skipped);
    Vars o = makeResults(others);
    const BlockBounds &bounds = kernel.bounds;
    Value trips = b.createOrFold<arith::SubIOp>(bounds.end, bounds.begin);
    control.forRange(context.i32(0), trips, [&](Value) {
      Slot from = fromSoftmax.acquire();
      Value factor =
          LocalLoadOp::create(b, kernel.f32Tile({kColumnsRows}), factors);
      Value p = LocalLoadOp::create(b, getScoreType(facts.elementType),
                                    probabilities);
      from.release();
      o = kernel.emitRareRescale(b, factor, o.get());
      Slot held;
      for (int64_t i = 0; i < others.count; ++i) {
        Slot slot = values.acquire();
        o[i] = multiplyValues(b, p, slot.in(w.buffer, w.slotType),
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
    skip(kernel.walk.skippedInFront, skipped);
    Slot from = fromScale.acquire();
    Value factor =
        LocalLoadOp::create(b, kernel.f32Tile({kColumnsRows}), scales);
    from.release();
    storeResults(others, o.get(), factor);
    fromScale.advance();
  });
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

Value WsColumnsKernel::getQuery(int64_t i) {
  return SlotOp::create(b, q.slotType, q.buffer, context.i32(i),
                        /*distance=*/IntegerAttr());
}

Value WsColumnsKernel::getFirstColumn(int64_t i, int64_t perCTA) {
  Value column = context.i32(i * plan.getSlice());
  if (!isDepthDivided())
    return column;
  return arith::AddIOp::create(
      b, column, arith::MulIOp::create(b, kernel.rank, context.i32(perCTA)));
}

Vars WsColumnsKernel::makeResults(SliceRange slices) {
  SmallVector<Value> zeros;
  for (int64_t i = 0; i < slices.count; ++i)
    zeros.push_back(kernel.splat(
        kernel.f32Tile({kColumnsRows, getResultColumns(slices.first + i)}), 0));
  return {control, zeros};
}

void WsColumnsKernel::forBlocks(function_ref<void(Value)> body) {
  const BlockBounds &bounds = kernel.bounds;
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
  if (failed(kernel.emitScores(b, key, s))) {
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
  auto store = [&] {
    kernel.emitLSE(rows.m, rows.l, kernel.emitResultView("lse"));
  };
  if (!isDepthDivided())
    return store();
  control.ifThen(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, kernel.rank,
                                       context.i32(0)),
                 store);
}

void WsColumnsKernel::storeResults(SliceRange slices, ValueRange results,
                                   Value factor) {
  for (auto [i, result] : llvm::enumerate(results)) {
    int64_t slice = slices.first + i;
    Value view = kernel.emitResultView(
        "o", slice * plan.getSlice(), getResultColumns(slice),
        isDepthDivided() ? kernel.rank : Value(),
        isDepthDivided() ? getOwnColumns(facts, plan) : 0);
    StoreResultOp::create(b, kernel.emitQuotient(result, factor), view,
                          kernel.row, /*scratch=*/Value(), /*map=*/Value(),
                          /*coordinates=*/ValueRange(), plan.getEpilogue());
  }
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

LogicalResult WsColumnsKernel::run() {
  makeRings();
  makeHandOvers();
  kernel.emitExtents();
  auto loader = [&](Role role, int64_t warps, function_ref<void()> body) {
    return Partition{
        role.partition, warps, {0, 0}, kLoaderRegisters, [this, body] {
          control.elect(body);
        }};
  };
  auto loadKeys = [&] {
    load(k, kKeyLoader, {0, keySlices}, keySlices * plan.getSlice(),
         /*withQueries=*/true);
  };
  auto loadValues = [&] {
    load(v, kValueLoader, own, getOwnColumns(facts, plan));
  };
  auto loadOthers = [&] {
    load(w, kOtherLoader, others, getOwnColumns(facts, plan));
  };
  control.partitions({{kSoftmax.partition,
                       4,
                       {4, 1},
                       kColumnsRegisters,
                       [&] { computeSoftmax(); }},
                      {kColumns.partition,
                       4,
                       {4, 1},
                       kColumnsRegisters,
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
