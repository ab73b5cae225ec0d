//===- WsTmemSoftmax.cpp - The softmaxes of ws_tmem -----------------------===//

#include "../Core/NarrowKeys.h"
#include "../Tma/RingFacts.h"
#include "WsTmemKernel.h"
#include "attn/Dialect/Attn/IR/BulkStores.h"
#include "attn/Schedule/Kernel/AbsentRuns.h"
#include "attn/Schedule/Kernel/Scores.h"
#include "attn/Schedule/Kernel/StoreResults.h"

using namespace mlir;
using namespace mlir::attn;

/// Columns of results that are rescaled at a time, so that they take few
/// registers beside a block's scores.
static constexpr int64_t kRescaledColumns = 32;
/// Columns whose probabilities the policy lagged computes before its vote, and
/// those that optimistic computes and stores at a time.
static constexpr int64_t kBetColumns = 32;
/// What a block's sum of probabilities stays below where optimistic bets. With
/// 2^4 ordinary scores lost many bets: a thread has a whole row.
static constexpr float kBetLimit = 0x1p8f;
/// Exponents of two by which maxima of the other policies may grow before they
/// change. With less the first block of a causal tile, whose rows have few
/// keys, lost more bets, which cost more where scores wait for probabilities;
/// with more keys that stand out are less accurate.
static constexpr float kMostGrowth = 7, kMostGrowthBeside = 6;

namespace {

/// The state of the rows between two blocks.
struct Rows {
  Var m, l;
  /// The largest exponents, where the policy or the division asks for them.
  std::optional<Var> largest;
};

/// The program of the warpgroup with the rows of a tile, one to each thread.
class Softmax {
public:
  Softmax(WsTmemKernel &shared, int64_t number);
  void compute();

private:
  bool betsOnSums() const {
    return plan.getSoftmax() == SoftmaxPolicy::Optimistic;
  }
  /// True if rows are divided by sums that have a row's largest probability as
  /// it is rounded. Powers of halves are added up as they are rounded anyway;
  /// under exact, and where maxima may grow by nothing, it is a power of two,
  /// which no type rounds.
  bool roundsLargest() const {
    return !facts.isNarrow() &&
           (plan.getSoftmax() == SoftmaxPolicy::Threshold ||
            plan.getSoftmax() == SoftmaxPolicy::Lagged);
  }
  /// True if a maximum changes where a key decides its row: rescaling for all
  /// that are new would come with almost every block.
  bool asksWhatDecides() const {
    return facts.isNarrow() && plan.getSoftmax() == SoftmaxPolicy::Threshold;
  }
  /// Returns the blocks that the tile walks: its own ones, or those of both
  /// with its own masks.
  ClusterTile getBlocks();
  /// Hands `count` slots of the tile on as they are, none if it is null.
  void skip(Value count);
  /// True if scores are handed back when they are in registers.
  bool isBeside() const { return plan.getPBeside(); }
  /// Returns what guards probabilities, and with several tiles results.
  Pipe &guard() { return isBeside() ? *resultPipe : scores; }
  /// Returns the parts in which a slot of guard() is handed on.
  SmallVector<Slot> split(Slot slot) const;
  /// Calls `body` if the tile has a block of its own among those of both.
  void ifOwnBlocks(function_ref<void()> body);
  Rows makeRows();
  /// Calls `body` with the first key of each of the tile's blocks.
  void forBlocks(function_ref<void(Value)> body);
  /// Changes products to scores and these to probabilities and the state of
  /// their rows. Returns the probabilities, null after a diagnostic, and the
  /// factor of the results so far.
  std::pair<Value, Value> softmax(Value scale, Value key, Value s, Rows &rows);
  /// Returns probabilities in the type of operands.
  Value narrow(Value p);
  /// Returns the columns of `keys` whose probabilities are computed and written
  /// one after the other.
  SmallVector<KeyPart> listColumns(const KeyPart &keys) const;
  Value cut(Value p, const KeyPart &columns);
  void storeProbabilities(Value p, const Slot &slot, const KeyPart &columns);
  /// Multiplies the results by the factor of a step, on a rare path. Given the
  /// maximum that stood before the step, takes it as the only sign of whether
  /// there are results.
  void rescale(Value factor, Value key, Value standing = {});
  /// Returns the first key of the block that the tile starts with.
  Value getFirstKey();
  /// Tells if the block of `key` is not that one.
  Value hasBlockBefore(Value key);

  /// Returns the rows after the last block, and stores their LSE.
  FinalRows finish(Rows &rows);
  /// Emits which thread of the partition this one is.
  StoringThreads emitThreads();
  /// Hands what the results of the tile are multiplied by to the warpgroup that
  /// stores them, and the slots of scores back.
  void handOver(const FinalRows &final);
  /// Stores the results of the tile as the plan says; through the queries'
  /// memory when it is the tile's turn with that.
  void store(RunningState state);
  /// Stores them through shared memory, in as many parts as the plan says;
  /// `oView` is null where these have views of their own.
  void storeStaged(RunningState state, Value oView);
  /// Returns the memory that they pass through.
  Value getStaging();

  WsTmemKernel &shared;
  ImplicitLocOpBuilder &b;
  Control &control;
  const ProblemFacts &facts;
  WsTmemPlanAttr plan;
  const TensorTile &tile;
  int64_t number;
  ClusterTile blocks;
  Pipe scores;
  /// The ends of channels that there need not be.
  std::optional<Pipe> resultPipe, queryPipe, factorPipe;
};

} // namespace

Softmax::Softmax(WsTmemKernel &shared, int64_t number)
    : shared(shared), b(shared.b), control(shared.control), facts(shared.facts),
      plan(shared.plan), tile(shared.memory.tiles[number]), number(number),
      scores(control, tile.channel, kSoftmaxes[number]) {
  if (tile.resultChannel)
    resultPipe.emplace(control, tile.resultChannel, kSoftmaxes[number]);
  if (tile.queryChannel)
    queryPipe.emplace(control, tile.queryChannel, kSoftmaxes[number]);
  if (hasOneTile(plan))
    factorPipe.emplace(control, shared.memory.factorChannel,
                       kSoftmaxes[number]);
}

void Softmax::compute() {
  shared.forTiles(number, [&] {
    blocks = getBlocks();
    skip(blocks.skippedBehind);
    emitScoreDescale(shared.tile);
    Value scale = emitExponentScale(shared.tile);
    Rows rows = makeRows();

    forBlocks([&](Value key) {
      Slot slot = scores.acquire();
      Value s =
          loadTensor(shared.tile, tile.getScores(b, slot), 0, plan.getBlockN());
      if (isBeside())
        slot.release();
      Value standing = rows.m;
      auto [p, factor] = softmax(scale, key, s, rows);
      if (!p)
        return;

      if (betsOnSums()) {
        // The policy votes on the sums of what it has stored.
        p = narrow(p);
        for (const KeyPart &columns :
             listColumns(shared.memory.parts.front())) {
          Value some = cut(p, columns);
          // The products of the block before are awaited after exponentials.
          if (isBeside() && columns.first == 0)
            slot = resultPipe->acquire();
          storeProbabilities(some, slot, columns);
        }
        rescale(factor, key, standing);
        slot.release();
      } else {
        Slot results = slot;
        if (resultPipe) {
          p = narrow(p);
          results = resultPipe->acquire();
        }
        rescale(factor, key);
        if (isBeside())
          slot = results;
        else if (resultPipe)
          results.release();
        else
          p = narrow(p);
        SmallVector<Slot> parts = split(slot);
        for (auto [part, keys] : llvm::zip_equal(parts, shared.memory.parts)) {
          for (const KeyPart &columns : listColumns(keys))
            storeProbabilities(cut(p, columns), slot, columns);
          part.release();
        }
      }
      scores.advance();
      if (resultPipe)
        resultPipe->advance();
    });
    if (!control.isWhole())
      return;

    skip(blocks.skippedInFront);
    // LSE leaves under the last product.
    FinalRows final = finish(rows);
    if (hasOneTile(plan))
      return handOver(final);
    Var results(
        control,
        shared.tile.splat(
            shared.tile.f32Tile({shared.tile.blockM, facts.valueDim}), 0));
    shared.ifBlocks([&] {
      Slot slot = guard().acquire();
      ifOwnBlocks([&] {
        results = loadTensor(shared.tile, tile.results, 0, facts.valueDim);
      });
      for (Slot part : split(slot))
        part.release();
      guard().advance();
    });
    store(emitState(shared.tile, final, results));
  });

  // A CTA must not end before its last commit has arrived, which nothing else
  // waits for.
  if (isBeside()) {
    for (Slot part : split(resultPipe->take()))
      part.release();
  } else if (resultPipe) {
    resultPipe->take().release();
  }
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

ClusterTile Softmax::getBlocks() {
  ClusterTile blocks = shared.walk.cluster;
  blocks.bounds = shared.tile.bounds;
  if (!plan.getPair() && (plan.getOwnBlocks() || hasOneTile(plan)))
    return blocks;
  // Others' rows are in the same products or behind the same waits.
  if (plan.getOwnBlocks()) {
    ClusterTile rows = shared.emitProductRows(number);
    blocks.begin = rows.bounds.begin;
    blocks.end = rows.bounds.end;
    blocks.skippedBehind = rows.skippedBehind;
    blocks.skippedInFront = rows.skippedInFront;
  } else {
    blocks.skippedBehind = blocks.skippedInFront = Value();
  }
  auto clamp = [&](Value x, Value least, Value most) -> Value {
    return arith::MinSIOp::create(b, arith::MaxSIOp::create(b, x, least), most);
  };
  BlockBounds &bounds = blocks.bounds;
  // Without a band all tiles have the same bounds. Those of a run are the
  // walk's: that they are the same would not follow from how they are cut.
  if (!plan.getOwnBlocks() && !bounds.lower && !bounds.upper &&
      !shared.facts.hasKeyRange()) {
    bounds =
        emitBlockBounds(shared.context, shared.tile.getBoundedTiles(),
                        shared.tile.row, shared.tile.blockM, plan.getBlockN());
    if (!shared.tile.at.split)
      return blocks;
  }
  bounds.begin = blocks.begin;
  bounds.end = blocks.end;
  bounds.fullEnd = clamp(bounds.fullEnd, bounds.begin, bounds.end);
  bounds.fullBegin = clamp(bounds.fullBegin, bounds.begin, bounds.fullEnd);
  return blocks;
}

void Softmax::skip(Value count) {
  if (!count)
    return;
  control.forRange(shared.context.i32(0), count, [&](Value) {
    if (isBeside())
      scores.take().release();
    for (Slot part : split(guard().take()))
      part.release();
  });
}

SmallVector<Slot> Softmax::split(Slot slot) const {
  if (shared.memory.parts.size() == 1)
    return {slot};
  auto [front, back] = slot.split<2>();
  return {front, back};
}

void Softmax::ifOwnBlocks(function_ref<void()> body) {
  if (!blocks.skippedBehind && !blocks.skippedInFront)
    return body();
  control.ifThen(arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                       blocks.bounds.begin, blocks.bounds.end),
                 body);
}

void Softmax::forBlocks(function_ref<void(Value)> body) {
  const BlockBounds &bounds = blocks.bounds;
  Value fullEnd = bounds.fullEnd, fullBegin = bounds.fullBegin;
  if (betsOnSums()) {
    // The first block has no maximum to bet on.
    Value second = arith::MaxSIOp::create(
        b, arith::SubIOp::create(b, bounds.end, shared.context.i32(1)),
        bounds.begin);
    fullEnd = arith::MinSIOp::create(b, fullEnd, second);
    if (fullBegin != bounds.begin)
      fullBegin = arith::MinSIOp::create(b, fullBegin, fullEnd);
  }
  control.loop(bounds.end.getType(), body,
               [&](ValueRange inits, Control::Fill fill) {
                 return KVLoopOp::create(b, bounds.begin, fullBegin, fullEnd,
                                         bounds.end, plan.getBlockN(),
                                         /*stages=*/1, inits, fill);
               });
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Rows Softmax::makeRows() {
  Value m = emitInitialState(shared.tile, /*bets=*/betsOnSums()).m;
  // A thread adds up its row, or its half of it, by itself.
  MLIRContext *mlir = b.getContext();
  auto sums = RankedTensorType::get(
      {shared.tile.blockM, hasHalfTiles(facts, plan) ? 2 : 1}, b.getF32Type(),
      PartialLayoutAttr::get(mlir, AutoLayoutAttr::get(mlir)));
  Rows rows = {
      {control, m}, {control, shared.tile.splat(sums, 0)}, std::nullopt};
  if (roundsLargest() || asksWhatDecides())
    rows.largest.emplace(control, m);
  return rows;
}

std::pair<Value, Value> Softmax::softmax(Value scale, Value key, Value s,
                                         Rows &rows) {
  if (failed(emitScores(shared.tile, key, s))) {
    control.fail();
    return {};
  }
  // A first block that stands apart for its maximum alone has no mask.
  if (auto mask = s.getDefiningOp<ApplyMaskOp>();
      mask && hasFullBlocks(facts, plan.getBlockN())) {
    s = mask.getSource();
    mask.erase();
  }
  // Blocks come from the last one down.
  Value keys;
  if (asksWhatDecides())
    keys = arith::SIToFPOp::create(
        b, b.getF32Type(), arith::SubIOp::create(b, getFirstKey(), key));
  auto op = OnlineSoftmaxOp::create(
      b, s, rows.m.get(), rows.l.get(), /*o=*/Value(), scale, plan.getSoftmax(),
      rows.largest ? rows.largest->get() : Value(), keys);
  op.setLimit(APFloat(kBetLimit));
  op.setGrowth(APFloat(resultPipe ? kMostGrowthBeside : kMostGrowth));
  if (asksWhatDecides())
    setDecidedRange(op, cast<FloatType>(facts.elementType));
  else if (facts.isNarrow())
    setNarrowRange(op);
  op.setPolynomial(plan.getPolynomial());
  rows.m = op.getNewM();
  rows.l = op.getNewL();
  if (rows.largest)
    *rows.largest = op.getNewLargest();
  return {op.getP(), op.getFactor()};
}

Value Softmax::narrow(Value p) {
  return arith::TruncFOp::create(
      b,
      shared.tile.tileType({shared.tile.blockM, plan.getBlockN()},
                           facts.elementType),
      p);
}

Value Softmax::getFirstKey() {
  return arith::MulIOp::create(
      b, arith::SubIOp::create(b, blocks.bounds.end, shared.context.i32(1)),
      shared.context.i32(plan.getBlockN()));
}

Value Softmax::hasBlockBefore(Value key) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, key, getFirstKey());
}

void Softmax::rescale(Value factor, Value key, Value standing) {
  RankedTensorType rows = shared.tile.f32Tile({shared.tile.blockM});
  Value changed = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, factor,
                                        shared.tile.splat(rows, 1));
  auto multiply = [&] {
    int64_t columns = getOwnResultColumns(facts, plan);
    auto multiplyColumns = [&](int64_t first, int64_t count) {
      Value part = loadTensor(shared.tile, tile.results, first, count);
      Value spread = BroadcastOp::create(b, part.getType(), factor);
      TmemStoreOp::create(b, arith::MulFOp::create(b, part, spread),
                          sliceTensor(b, tile.results, first, count));
    };
    // A thread has half of the columns of half tiles, those of its half.
    if (hasHalfTiles(facts, plan)) {
      for (int64_t whole = 0; whole < columns; whole += kHalvedColumns)
        for (int64_t i = 0; i < kHalvedColumns / 2; i += kRescaledColumns)
          multiplyColumns(whole + i, 2 * kRescaledColumns);
      return;
    }
    for (int64_t first = 0; first < columns; first += kRescaledColumns)
      multiplyColumns(first, std::min(kRescaledColumns, columns - first));
  };
  // Nothing is there before the first block, or what another warpgroup stores.
  // A path with a vote of its own takes that into it; the softmax's takes the
  // path in. No condition that the check of barriers follows keeps the former
  // from the first block, unless the path has one.
  if (standing)
    changed = arith::AndIOp::create(
        b, changed,
        arith::CmpFOp::create(
            b, arith::CmpFPredicate::UNE, standing,
            shared.tile.splat(rows, -std::numeric_limits<double>::infinity())));
  else if (resultPipe)
    changed = arith::AndIOp::create(
        b, changed,
        tensor::SplatOp::create(b, hasBlockBefore(key), changed.getType()));
  control.rarely(changed, [&] {
    if (standing || isBeside())
      return multiply();
    control.ifThen(hasBlockBefore(key), multiply);
  });
}

//===----------------------------------------------------------------------===//
// Tensor memory
//===----------------------------------------------------------------------===//

SmallVector<KeyPart> Softmax::listColumns(const KeyPart &keys) const {
  SmallVector<int64_t> starts = {keys.first};
  if (betsOnSums())
    for (int64_t first = kBetColumns; first < keys.count; first += kBetColumns)
      starts.push_back(first);
  else if (plan.getSoftmax() == SoftmaxPolicy::Lagged && keys.first == 0 &&
           keys.count > kBetColumns && keys.count != plan.getBlockN())
    starts.push_back(kBetColumns);
  SmallVector<KeyPart> columns;
  for (auto [i, first] : llvm::enumerate(starts)) {
    int64_t end =
        i + 1 < starts.size() ? starts[i + 1] : keys.first + keys.count;
    columns.push_back({"", first, end - first});
  }
  return columns;
}

Value Softmax::cut(Value p, const KeyPart &columns) {
  if (columns.count == plan.getBlockN())
    return p;
  return SliceOp::create(
      b, shared.tile.tileType({kTmemRows, columns.count}, facts.elementType), p,
      columns.first);
}

void Softmax::storeProbabilities(Value p, const Slot &slot,
                                 const KeyPart &columns) {
  if (tile.probabilityParts) {
    LocalStoreOp::create(b, p, tile.getProbabilities(b, slot));
    return;
  }
  TmemStoreOp::create(b, p,
                      sliceTensor(b, tile.getProbabilities(b, slot),
                                  columns.first, columns.count));
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

StoringThreads Softmax::emitThreads() {
  // A partition is a warpgroup, which has as many threads as tensor memory has
  // lanes.
  Value thread = arith::IndexCastUIOp::create(
      b, b.getI32Type(), gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  return {arith::RemUIOp::create(b, thread, shared.context.i32(kTmemRows)),
          kTmemRows};
}

FinalRows Softmax::finish(Rows &rows) {
  shared.tile.valueDescale = emitValueDescale(shared.tile);
  LogViews views = emitLogViews(shared.tile);
  FinalRows final =
      emitFinalRows(shared.tile, rows.m, rows.l,
                    roundsLargest() ? rows.largest->get() : Value());
  auto storeLSE = [&] {
    emitLSE(shared.tile, final.m, final.l, views);
    if (shared.tile.at.runs)
      storeAbsentRuns(shared.tile, [&] { return emitThreads(); });
  };
  // One of the CTAs that have the same rows does for all.
  if (views && shared.dividesResults())
    control.ifThen(arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                         shared.rank, shared.context.i32(0)),
                   storeLSE);
  else if (views)
    storeLSE();
  return final;
}

void Softmax::handOver(const FinalRows &final) {
  Slot slot = factorPipe->take();
  LocalStoreOp::create(b, emitRowFactor(shared.tile, final),
                       shared.memory.factors);
  if (Value weight =
          emitInitWeight(shared.tile, final.getDivisor(), final.initShare))
    LocalStoreOp::create(b, weight, shared.memory.initWeights);
  slot.release();
  // After the last scores each slot comes once more, without any.
  shared.ifBlocks([&] { skip(shared.context.i32(countScoreSlots(plan))); });
}

void Softmax::store(RunningState state) {
  Value oView = plan.getOHalves() ? Value() : emitResultView(shared.tile, "o");
  ResultBuffer buffer = shared.memory.resultBuffer;
  if (buffer == ResultBuffer::None) {
    // A thread has a row of tensor memory.
    emitResults(shared.tile, state, oView, /*logViews=*/{},
                /*scratch=*/Value(), plan.getEpilogue(), /*map=*/{},
                /*columns=*/{}, /*owners=*/1);
    return;
  }
  if (buffer == ResultBuffer::Own)
    return storeStaged(state, oView);
  Slot slot = queryPipe->acquire();
  storeStaged(state, oView);
  // The thread that started the copy knows when the slot has been read.
  auto elect = ElectOp::create(b, /*each_warpgroup=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&elect.getBody());
    awaitBulkStores(b, b.getLoc());
    slot.release();
    YieldOp::create(b, ValueRange());
  }
  queryPipe->advance();
}

Value Softmax::getStaging() {
  const Ring &q = shared.memory.q;
  if (shared.memory.resultBuffer == ResultBuffer::Queries)
    return SlotOp::create(b, q.slotType, q.buffer, shared.context.i32(number),
                          /*distance=*/IntegerAttr());
  auto type = BufferType::get(
      b.getContext(), {kTmemRows, getStagedColumns(facts, plan)}, facts.outType,
      AutoLayoutAttr::get(b.getContext()), MemorySpace::Shared);
  return shared.tile.alloc(("o" + llvm::Twine(number)).str(), type);
}

void Softmax::storeStaged(RunningState state, Value oView) {
  Value divisor = state.getDivisor();
  Value weight = emitInitWeight(shared.tile, divisor, state.initShare);
  Value o =
      emitQuotient(shared.tile, state.o, emitInverse(shared.tile, divisor),
                   /*columns=*/{}, weight);
  int64_t columns = getStagedColumns(facts, plan);
  Value staging = getStaging(), map = shared.memory.resultMap;
  for (int64_t first = 0; first < facts.valueDim; first += columns) {
    Value part = o;
    if (columns != facts.valueDim)
      part = SliceOp::create(
          b, shared.tile.tileType({kTmemRows, columns}, facts.outType), o,
          first);
    SmallVector<Value> coordinates;
    if (map)
      coordinates = getResultStart(shared.tile, first);
    Value view =
        oView ? oView : emitResultView(shared.tile, "o", {first, columns});
    StoreResultOp::create(b, part, view, shared.tile.row, staging, map,
                          coordinates, plan.getEpilogue());
  }
}

void attn::computeSoftmax(WsTmemKernel &shared, int64_t number) {
  Softmax(shared, number).compute();
}
