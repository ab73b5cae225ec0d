//===- WsPairKernel.cpp - The kernel of ws_pair ---------------------------===//
//
// Both partitions walk the same tiles and, in each, the same blocks of keys
// from the last to the first: two warpgroups with 64 rows each, which run one
// program, and a warp that loads. Rows come in slices of columns, a slot each.
//
// The channel q hands over all slices of the queries. The channel kv hands over
// the slices of the CTA's own keys of the first block; then, in turns, those of
// the keys of the next block and those of the values of the block before: of
// the CTA's own keys first, then of the other CTA's; at the end the values of
// the last block.
//
// The channel p brings what the other CTA sends, each warpgroup its part to the
// warpgroup of the same rows: probabilities of its keys, and the maxima that it
// computed them with. Both CTAs go on with the larger maximum, and results are
// rescaled where that differs. At the end of a tile the channel l brings the
// other CTA's row sums.
//
//===----------------------------------------------------------------------===//

#include "../Kernel/Pipe.h"
#include "../Tma/Rings.h"
#include "../Wgmma/SlicedProducts.h"
#include "../Wgmma/WgmmaFacts.h"
#include "WsPair.h"
#include "attn/Schedule/Kernel/Scores.h"
#include "attn/Schedule/Kernel/StoreResults.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;

/// The partition with rows, and its further roles: the one that sends to the
/// other CTA, and the one that reads what the other CTA sent.
static constexpr Role kRows{"rows", "rows"};
static constexpr Role kSender{"sender", "rows"};
static constexpr Role kReader{"reader", "rows"};
static constexpr Role kLoader{"load", "load"};

namespace {

/// The state of a warpgroup's rows.
struct Rows {
  /// Maxima and sums, and the probabilities of the CTA's own keys of the last
  /// block, which no value is multiplied with yet.
  Var m, l, p;
  /// The results, by slices of columns.
  Vars o;
};

/// The memory and the channels by which roles and CTAs hand things on.
struct PairMemory {
  /// The queries, and the ring of keys and values as either loads it.
  Ring q, k, v;
  /// The channels between the CTAs, and where their bytes come: of
  /// probabilities and maxima, and of row sums.
  Value pChannel, lChannel;
  Value probabilities, maxima, sums;
};

class WsPairKernel {
public:
  WsPairKernel(KernelContext &context, WsPairPlanAttr plan)
      : context(context), facts(context.facts), plan(plan), b(context.b),
        control(b), walk(context, getTilePlan(plan)), tile(walk.tile) {}
  LogicalResult run();

private:
  void makeRings();
  void makeExchanges();
  void load();
  void computeRows();
  void computeTile(Value scale, Pipe &kv, Pipe &sent, Pipe &came, Slot query,
                   Rows &rows);

  /// Calls `keys` and `values` with the slices of a block's keys and of another
  /// one's values, in turns.
  void interleave(function_ref<void(int64_t)> keys,
                  function_ref<void(int64_t)> values) const;
  /// Calls `body` if the tile has a block.
  void ifAny(function_ref<void()> body);
  /// Calls `body` with the first key of each block but the first one walked.
  void forOtherBlocks(function_ref<void(Value)> body);
  Rows makeRows();
  /// Returns slice `i` of the queries.
  Value getQuery(int64_t i);
  /// Makes probabilities of the scores `s` of the block at `key`. Returns the
  /// factor of results; null after a diagnostic.
  Value softmax(Value scale, Value key, Value s, SoftmaxPolicy policy,
                Rows &rows);
  void sendTo(Slot slot, Value tile, Value memory);
  /// Reads the other CTA's probabilities and maxima.
  std::pair<Value, Value> readTheirs();
  /// Changes rows, and the other CTA's probabilities, to the larger of both
  /// maxima, where some row's differ; returns these probabilities.
  Value agree(Value theirs, Value theirMaxima, Rows &rows);
  void storeTile(Value m, Value l, ValueRange results);

  int64_t countValueSlots() const { return kPairCTAs * valueSlices; }
  /// Columns of slice `i` of the queries. After the last one there are zeros,
  /// which need no products.
  int64_t getDepth(int64_t i) const {
    return std::min<int64_t>(plan.getSlice(),
                             getKeyDepth(facts) - i * plan.getSlice());
  }
  int64_t getResultColumns(int64_t index) const {
    return std::min(plan.getSlice(),
                    getOwnColumns(facts) - index * plan.getSlice());
  }
  RankedTensorType getScoreType(Type elementType) {
    return tile.tileType({kPairRows, getOwnKeys(plan)}, elementType);
  }

  KernelContext &context;
  const ProblemFacts &facts;
  WsPairPlanAttr plan;
  ImplicitLocOpBuilder &b;
  Control control;
  TileWalk walk;
  AttentionTile &tile;
  PairMemory memory;
  /// The first of a block's keys whose scores the CTA has and has not.
  Value ownKey, otherKey;
  /// Slices of keys and, of those that have results, of the CTA's columns.
  int64_t keySlices = 0, valueSlices = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TilePlan attn::getTilePlan(WsPairPlanAttr plan) {
  TilePlan tilePlan = {kPairRows, plan.getBlockN(), plan.getOrder(),
                       plan.getGroupHeads(), kPairCTAs};
  tilePlan.ctasPerTile = kPairCTAs;
  return tilePlan;
}

void WsPairKernel::makeExchanges() {
  auto exchange = [&](StringRef name) {
    static constexpr StringRef parts[] = {"upper", "lower"};
    return makeChannel(
        b, name, /*stages=*/1,
        {{kSender, SignalKind::Tx}, {kReader, SignalKind::Arrive}}, parts,
        parts);
  };
  MLIRContext *mlir = b.getContext();
  memory.pChannel = exchange("p");
  // The rows that one store of a warp writes lie as close as they can.
  memory.probabilities = tile.alloc(
      "p",
      BufferType::get(mlir, {kPairRows, getOwnKeys(plan)}, facts.elementType,
                      SwizzledLayoutAttr::get(mlir, /*span=*/32),
                      MemorySpace::Shared));
  memory.maxima = tile.alloc("m", tile.bufferType({kPairRows}, b.getF32Type()));
  memory.lChannel = exchange("l");
  memory.sums = tile.alloc(
      "l", tile.bufferType(getPartialSumsType(mlir, kPairRows).getShape(),
                           b.getF32Type()));
}

void WsPairKernel::makeRings() {
  keySlices = countKeySlices(facts, plan);
  valueSlices = countValueSlices(facts, plan);
  int64_t slice = plan.getSlice();
  RingSpec queries = {"q",   RingRows::Queries, 1,    kPairRows,
                      slice, kLoader,           kRows};
  queries.together = keySlices;
  memory.q = makeRing(walk, queries);
  makeExchanges();
  RingSpec keys = {
      "kv",    RingRows::Keys, plan.getStages(), getOwnKeys(plan), slice,
      kLoader, kRows};
  keys.tensor = "k";
  memory.k = makeRing(walk, keys);
  memory.v = memory.k;
  memory.v.name = "v";
  memory.v.view = TensorMapView::Whole;
  addMap(walk, memory.v);
}

//===----------------------------------------------------------------------===//
// The partition that loads
//===----------------------------------------------------------------------===//

void WsPairKernel::load() {
  prefetchMaps(b, {memory.q.map, memory.k.map, memory.v.map});
  Pipe query(control, memory.q.channel, kLoader),
      kv(control, memory.k.channel, kLoader);
  auto fill = [&](const Ring &ring, Value block, Value ownOrOther, Value column,
                  int64_t columns) {
    Slot slot = kv.acquire();
    startLoad(walk, ring, narrowSlot(walk, ring.at(slot), columns),
              slot.getToken(), tile.at.kvHead,
              arith::AddIOp::create(b, block, ownOrOther), column);
    slot.release();
    kv.advance();
  };
  auto firstKey = [&](Value block) -> Value {
    return arith::MulIOp::create(b, block, context.i32(plan.getBlockN()));
  };
  auto keys = [&](Value block, int64_t i) {
    fill(memory.k, firstKey(block), ownKey, context.i32(i * plan.getSlice()),
         getDepth(i));
  };
  auto values = [&](Value block, int64_t i) {
    Value own =
        arith::MulIOp::create(b, walk.rank, context.i32(getOwnColumns(facts)));
    Value column = context.i32(i % valueSlices * plan.getSlice());
    fill(memory.v, firstKey(block), i < valueSlices ? ownKey : otherKey,
         arith::AddIOp::create(b, own, column),
         getResultColumns(i % valueSlices));
  };

  walk.forTiles(control, [&] {
    Slot all = query.acquire();
    for (int64_t i = 0; i < keySlices; ++i) {
      startLoad(walk, memory.q, narrowSlot(walk, getQuery(i), getDepth(i)),
                all.getToken(), tile.at.head, tile.row,
                context.i32(i * plan.getSlice()));
    }
    all.release();

    const ClusterTile &blocks = walk.cluster;
    Value zero = context.i32(0), one = context.i32(1);
    Value trips = b.createOrFold<arith::SubIOp>(blocks.end, blocks.begin);
    Value some = b.createOrFold<arith::MinSIOp>(trips, one);
    Value last = arith::SubIOp::create(b, blocks.end, one);
    control.forRange(zero, some, [&](Value) {
      for (int64_t i = 0; i < keySlices; ++i)
        keys(last, i);
    });
    control.forRange(one, trips, [&](Value index) {
      Value block = arith::SubIOp::create(b, last, index);
      Value before = arith::AddIOp::create(b, block, one);
      interleave([&](int64_t i) { keys(block, i); },
                 [&](int64_t i) { values(before, i); });
    });
    control.forRange(zero, some, [&](Value) {
      for (int64_t i = 0; i < countValueSlots(); ++i)
        values(blocks.begin, i);
    });
    query.advance();
  });
}

//===----------------------------------------------------------------------===//
// The partition with rows
//===----------------------------------------------------------------------===//

void WsPairKernel::computeRows() {
  Pipe query(control, memory.q.channel, kRows),
      kv(control, memory.k.channel, kRows);
  Pipe sent(control, memory.pChannel, kSender),
      came(control, memory.pChannel, kReader);
  Pipe sumSent(control, memory.lChannel, kSender),
      sumCame(control, memory.lChannel, kReader);
  walk.forTiles(control, [&] {
    Value scale = emitExponentScale(tile);
    Slot queries = query.acquire();
    Rows rows = makeRows();
    computeTile(scale, kv, sent, came, queries, rows);
    if (!control.isWhole())
      return;

    Slot to = sumSent.acquireParts();
    sendTo(to, rows.l, memory.sums);
    to.release();
    Slot from = sumCame.acquireParts();
    Value theirs = LocalLoadOp::create(b, rows.l.get().getType(), memory.sums);
    sumSent.advance(), sumCame.advance();
    // Two parts have the same sum in either order.
    Value sum = arith::AddFOp::create(b, rows.l.get(), theirs);
    storeTile(rows.m, sum, rows.o.get());
    from.release();
    query.advance();
  });
}

void WsPairKernel::computeTile(Value scale, Pipe &kv, Pipe &sent, Pipe &came,
                               Slot query, Rows &rows) {
  // The slot of the product that was started last. It is handed back when the
  // product after it has started and its own is complete.
  Slot held;
  auto releaseHeld = [&](Slot next) {
    if (held) {
      awaitProducts(b, {}, /*pending=*/1);
      held.release();
    }
    held = next;
  };
  auto qk = [&](int64_t i, Value &s) {
    Slot key = kv.acquire();
    Value query = getQuery(i), tile = memory.k.at(key);
    s = multiplyKeys(b, query, tile, getDepth(i), s);
    releaseHeld(key);
    kv.advance();
  };
  auto pv = [&](int64_t i, Value p) {
    Slot value = kv.acquire();
    Var &o = rows.o[i % valueSlices];
    o = multiplyValues(b, p, memory.v.at(value),
                       getResultColumns(i % valueSlices), o);
    releaseHeld(value);
    kv.advance();
  };
  auto awaitAll = [&](ValueRange products) {
    SmallVector<Value> ready = awaitProducts(b, products, /*pending=*/0);
    held.release();
    held = Slot();
    return ready;
  };
  auto send = [&] {
    Slot to = sent.acquireParts();
    sendTo(to, rows.p, memory.probabilities);
    sendTo(to, rows.m, memory.maxima);
    to.release();
    sent.advance();
  };
  auto receive = [&](Slot &from) {
    from = came.acquireParts();
    auto [p, m] = readTheirs();
    came.advance();
    return agree(p, m, rows);
  };

  ifAny([&] {
    Value s;
    for (int64_t i = 0; i < keySlices; ++i)
      qk(i, s);
    s = awaitAll(s).front();
    Value last = arith::SubIOp::create(b, tile.bounds.end, context.i32(1));
    Value key = arith::MulIOp::create(b, last, context.i32(plan.getBlockN()));
    // There is no maximum to speculate on.
    if (softmax(scale, key, s, SoftmaxPolicy::Exact, rows))
      send();
  });
  forOtherBlocks([&](Value key) {
    Value s, theirs;
    Slot from;
    interleave([&](int64_t i) { qk(i, s); },
               [&](int64_t i) {
                 if (i == valueSlices) {
                   // The own values' products are complete; the product of
                   // keys that follows them need not be.
                   rows.o =
                       awaitProducts(b, rows.o.get(), i < keySlices ? 1 : 0);
                   theirs = receive(from);
                 }
                 pv(i, i < valueSlices ? rows.p : theirs);
                 // Loads are complete where their registers are used: an
                 // arrival in the other CTA does not wait for them
                 // (docs/Rationale/Clusters.md).
                 if (i == valueSlices)
                   from.release();
               });
    s = awaitProducts(b, s, keySlices > countValueSlots() ? 0 : 1).front();
    Value factor = softmax(scale, key, s, plan.getSoftmax(), rows);
    if (!factor)
      return;
    send();
    SmallVector<Value> results = awaitAll(rows.o.get());
    rows.o = emitRareRescale(b, factor, results);
  });
  query.release();
  ifAny([&] {
    for (int64_t i = 0; i < valueSlices; ++i)
      pv(i, rows.p);
    rows.o = awaitAll(rows.o.get());
    Slot from;
    Value theirs = receive(from);
    for (int64_t i = 0; i < valueSlices; ++i) {
      pv(i, theirs);
      if (i == 0)
        from.release();
    }
    rows.o = awaitAll(rows.o.get());
  });
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

void WsPairKernel::interleave(function_ref<void(int64_t)> keys,
                              function_ref<void(int64_t)> values) const {
  int64_t steps = std::max(keySlices, countValueSlots());
  for (int64_t i = 0; i < steps; ++i) {
    if (i < keySlices)
      keys(i);
    if (i < countValueSlots())
      values(i);
  }
}

void WsPairKernel::ifAny(function_ref<void()> body) {
  const BlockBounds &bounds = tile.bounds;
  Value trips = b.createOrFold<arith::SubIOp>(bounds.end, bounds.begin);
  Value any = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sgt, trips,
                                            context.i32(0));
  if (matchPattern(any, m_One()))
    return body();
  control.ifThen(any, body);
}

void WsPairKernel::forOtherBlocks(function_ref<void(Value)> body) {
  const BlockBounds &bounds = tile.bounds;
  auto min = [&](Value x, Value y) {
    return b.createOrFold<arith::MinSIOp>(x, y);
  };
  auto max = [&](Value x, Value y) {
    return b.createOrFold<arith::MaxSIOp>(x, y);
  };
  Value end = max(b.createOrFold<arith::SubIOp>(bounds.end, context.i32(1)),
                  bounds.begin);
  Value fullEnd = max(min(bounds.fullEnd, end), bounds.begin);
  Value fullBegin = min(bounds.fullBegin, fullEnd);
  control.loop(end.getType(), body, [&](ValueRange inits, Control::Fill fill) {
    return KVLoopOp::create(b, bounds.begin, fullBegin, fullEnd, end,
                            plan.getBlockN(), /*stages=*/1, inits, fill);
  });
}

Rows WsPairKernel::makeRows() {
  RunningState running = emitInitialState(tile, /*bets=*/plan.getSoftmax() ==
                                                    SoftmaxPolicy::Optimistic);
  Value none = arith::ConstantOp::create(
      b, DenseElementsAttr::get(getScoreType(facts.elementType),
                                b.getFloatAttr(facts.elementType, 0)));
  SmallVector<Value> results;
  for (int64_t i = 0; i < valueSlices; ++i)
    results.push_back(
        tile.splat(tile.f32Tile({kPairRows, getResultColumns(i)}), 0));
  return {{control, running.m},
          {control, running.l},
          {control, none},
          {control, results}};
}

Value WsPairKernel::getQuery(int64_t i) {
  return SlotOp::create(b, memory.q.slotType, memory.q.buffer, context.i32(i),
                        /*distance=*/IntegerAttr());
}

Value WsPairKernel::softmax(Value scale, Value key, Value s,
                            SoftmaxPolicy policy, Rows &rows) {
  if (failed(emitScores(tile, arith::AddIOp::create(b, key, ownKey), s))) {
    control.fail();
    return {};
  }
  auto op = OnlineSoftmaxOp::create(b, s, rows.m.get(), rows.l.get(),
                                    /*o=*/Value(), scale, policy);
  rows.m = op.getNewM();
  rows.l = op.getNewL();
  rows.p =
      arith::TruncFOp::create(b, getScoreType(facts.elementType), op.getP());
  return op.getFactor();
}

void WsPairKernel::sendTo(Slot slot, Value tile, Value memory) {
  LocalSendOp::create(b, tile, memory, slot.getToken(), /*barriers=*/Value(),
                      /*which=*/Value());
}

std::pair<Value, Value> WsPairKernel::readTheirs() {
  Value p = LocalLoadOp::create(b, getScoreType(facts.elementType),
                                memory.probabilities);
  Value m = LocalLoadOp::create(b, tile.f32Tile({kPairRows}), memory.maxima);
  return {p, m};
}

Value WsPairKernel::agree(Value theirs, Value theirMaxima, Rows &rows) {
  Var p(control, theirs);
  Value differ = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE,
                                       rows.m.get(), theirMaxima);
  control.rarely(differ, [&] {
    Value larger = arith::MaximumFOp::create(b, rows.m.get(), theirMaxima);
    auto factorOf = [&](Value from) -> Value {
      return Exp2Op::create(b, larger.getType(),
                            arith::SubFOp::create(b, from, larger));
    };
    auto rescale = [&](Value tile, Value factor) -> Value {
      auto type = cast<RankedTensorType>(tile.getType());
      Value spread = BroadcastOp::create(b, type.clone(b.getF32Type()), factor);
      if (!type.getElementType().isF32())
        spread = arith::TruncFOp::create(b, type, spread);
      return arith::MulFOp::create(b, tile, spread);
    };
    Value own = factorOf(rows.m);
    rows.m = larger;
    rows.l = rescale(rows.l, own);
    p = rescale(p, factorOf(theirMaxima));
    rows.o = llvm::map_to_vector(
        rows.o.get(), [&](Value result) { return rescale(result, own); });
  });
  return p;
}

void WsPairKernel::storeTile(Value m, Value l, ValueRange results) {
  FinalRows final = emitFinalRows(tile, m, l);
  Value factor = emitRowFactor(tile, final);
  // One CTA stores the LSE for both.
  if (facts.lse)
    control.ifThen(
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, walk.rank,
                              context.i32(0)),
        [&] { emitLSE(tile, final.m, final.l, emitLogViews(tile)); });
  int64_t all = getOwnColumns(facts);
  for (auto [i, result] : llvm::enumerate(results)) {
    ResultColumns columns = {int64_t(i) * plan.getSlice(), getResultColumns(i),
                             walk.rank, all};
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

LogicalResult WsPairKernel::run() {
  makeRings();
  walk.emitExtents();
  ownKey = arith::MulIOp::create(b, walk.rank, context.i32(getOwnKeys(plan)));
  otherKey = arith::SubIOp::create(b, context.i32(getOwnKeys(plan)), ownKey);
  control.partitions({{kRows.partition,
                       8,
                       {8, 1},
                       getPairRegisters(plan),
                       [&] { computeRows(); }},
                      {kLoader.partition, 4, {0, 0}, kPairLoaderRegisters, [&] {
                         control.elect([&] { load(); });
                       }}});
  return success(control.isWhole());
}

LogicalResult attn::emitWsPair(KernelContext &context, WsPairPlanAttr plan) {
  return WsPairKernel(context, plan).run();
}
