//===- WsMlaKernel.cpp - The kernel of ws_mla -----------------------------===//
//
// Four partitions walk the same tiles and, in each, the same blocks of keys
// from the last to the first. Of block t
//
//   load:     K(t) to a slot, by cp.async, whose end signals the channel k
//   scores:   S(t) = Q K(t)^T to shared memory
//   softmax:  S(t), masks, maxima and sums of rows; P(t) in the type of
//             operands, and by how much results shrink, to shared memory
//   results:  O = factor O + P(t) V(t), of which each warp has its own columns
//
// V(t) is the first columns of K(t), whose slot goes from the loads to the
// scores, from there to the results and back. Nothing else has more than two
// slots, so that the roles work on neighbouring blocks.
//
//===----------------------------------------------------------------------===//

#include "../Kernel/Pipe.h"
#include "../Tma/Rings.h"
#include "WsMla.h"
#include "attn/Schedule/Kernel/Scores.h"
#include "attn/Schedule/Kernel/StoreResults.h"

using namespace mlir;
using namespace mlir::attn;

/// The roles, each of the partition of its name.
static constexpr Role kLoad{"load", "load"}, kScores{"scores", "scores"},
    kSoftmax{"softmax", "softmax"}, kResults{"results", "results"};

namespace {

/// Columns of queries and keys that lie together: all of them, or those that
/// are values and the rotated ones, which have tensors of their own.
struct RoleColumns {
  /// Memory of the queries and of the ring of keys, and the keys' tensor.
  Value queries, keys;
  StringRef tensor;
  /// The first column, and how many there are.
  int64_t first, columns;
};

class WsMlaKernel {
public:
  WsMlaKernel(KernelContext &context, WsMlaPlanAttr plan);
  LogicalResult run();

private:
  /// Makes the memory and the channels.
  void makeRings();
  /// Makes the memory of columns of queries and keys.
  RoleColumns makeColumns(StringRef suffix, int64_t first, int64_t columns);
  /// The programs of the partitions.
  void load();
  void computeScores();
  void computeSoftmax();
  void computeResults();

  /// Makes memory for `stages` slots of a shape and a type, which `from` hands
  /// to `to`.
  Ring makeHandOver(StringRef name, int64_t stages, ArrayRef<int64_t> shape,
                    Type type, Role from, Role to);
  /// Starts to copy the tile's queries.
  void copyQueries();
  /// Starts to copy the block of keys at `firstKey` to `slot`.
  void copyKeys(Value firstKey, Slot slot);
  /// Returns the columns `each` of the keys in `slot`.
  Value getKeys(const RoleColumns &each, Slot slot) const;
  /// Calls `body` with the first key of each block of the tile.
  void forBlocks(function_ref<void(Value)> body);
  /// Returns the type of scores in the softmax's warps.
  RankedTensorType getSoftmaxScores() const;
  /// Stores the sums `o` of a tile times `scale` of its rows.
  void storeResults(Value o, Value scale);
  /// Returns the columns of the keys in `slot` that are their values.
  Value getValues(Slot slot) const;

  KernelContext &context;
  const ProblemFacts &facts;
  WsMlaPlanAttr plan;
  ImplicitLocOpBuilder &b;
  Control control;
  TileWalk tiles;
  AttentionTile &tile;
  /// Columns of queries and keys, of which the first ones have the values, and
  /// their channels.
  SmallVector<RoleColumns, 2> columns;
  Value queried, keyed;
  /// Scores and probabilities; the factors by which a block rescales results,
  /// and those of a tile's last results with their channel.
  Ring s, p, scales;
  Value factors;
  /// How the warps of the results have rows, of which each has columns.
  DividedRows divided;
};

} // namespace

TilePlan attn::getTilePlan(const ProblemFacts &facts, WsMlaPlanAttr plan) {
  TilePlan tiles = {plan.getBlockM(), plan.getBlockN(), TileOrder::RowMajor,
                    /*groupHeads=*/0};
  tiles.setRuns(facts, /*packHeads=*/facts.heads != 1);
  return tiles;
}

WsMlaKernel::WsMlaKernel(KernelContext &context, WsMlaPlanAttr plan)
    : context(context), facts(context.facts), plan(plan), b(context.b),
      control(b), tiles(context, getTilePlan(context.facts, plan)),
      tile(tiles.tile),
      divided({plan.getBlockM(),
               MmaLayoutAttr::get(plan.getContext(), {1, kRoleResultWarps}),
               MmaLayoutAttr::get(plan.getContext(), {1, 1},
                                  /*copies=*/kRoleResultWarps)}) {
  tile.hasWholeMaxima = facts.hasWholeMaxima();
}

Ring WsMlaKernel::makeHandOver(StringRef name, int64_t stages,
                               ArrayRef<int64_t> shape, Type type, Role from,
                               Role to) {
  SmallVector<int64_t> slots = {stages};
  llvm::append_range(slots, shape);
  Ring ring;
  ring.name = name;
  ring.buffer = tile.alloc(name, tile.bufferType(slots, type));
  ring.slotType = tile.bufferType(shape, type);
  ring.channel = makeChannel(
      b, name, stages, {{from, SignalKind::Arrive}, {to, SignalKind::Arrive}});
  return ring;
}

RoleColumns WsMlaKernel::makeColumns(StringRef suffix, int64_t first,
                                     int64_t count) {
  RoleColumns made;
  made.first = first;
  made.columns = count;
  made.tensor = suffix.empty() ? "k" : "k_rope";
  made.queries = tile.alloc(("q" + suffix).str(),
                            tile.bufferType({plan.getBlockM(), count}));
  made.keys =
      tile.alloc(("k" + suffix).str(),
                 tile.bufferType({plan.getStages(), plan.getBlockN(), count}));
  return made;
}

void WsMlaKernel::makeRings() {
  int64_t rows = plan.getBlockM(), keys = plan.getBlockN();
  int64_t all = getRoleKeyColumns(facts);
  Type operand = facts.elementType, f32 = b.getF32Type();
  columns.push_back(makeColumns("", 0, facts.kRope ? facts.valueDim : all));
  if (facts.kRope)
    columns.push_back(
        makeColumns("_rope", facts.valueDim, all - facts.valueDim));
  queried =
      makeChannel(b, "q", /*stages=*/1,
                  {{kLoad, SignalKind::Copies}, {kScores, SignalKind::Arrive}});
  keyed = makeChannel(b, "k", plan.getStages(),
                      {{kLoad, SignalKind::Copies},
                       {kScores, SignalKind::Arrive},
                       {kResults, SignalKind::Arrive}});
  s = makeHandOver("s", plan.getSStages(), {rows, keys}, f32, kScores,
                   kSoftmax);
  p = makeHandOver("p", plan.getPStages(), {rows, keys}, operand, kSoftmax,
                   kResults);
  factors = allocRowNumbers(b, "factor", plan.getPStages(), rows);
  scales.buffer = tile.alloc("scale", tile.bufferType({rows}, f32));
  scales.channel = makeChannel(
      b, "scale", /*stages=*/1,
      {{kSoftmax, SignalKind::Arrive}, {kResults, SignalKind::Arrive}});
  if (facts.hasPartialScales())
    divided.allocExchange(b, "units");
}

//===----------------------------------------------------------------------===//
// The warps that load
//===----------------------------------------------------------------------===//

void WsMlaKernel::load() {
  Pipe queries(control, queried, kLoad), keys(control, keyed, kLoad);
  tiles.forTiles(control, [&] {
    Slot slot = queries.acquire();
    copyQueries();
    slot.release();
    queries.advance();

    // Nothing here waits for copies: their slots follow when they have come.
    forBlocks([&](Value firstKey) {
      Slot slot = keys.acquire();
      copyKeys(firstKey, slot);
      slot.release();
      keys.advance();
    });
  });
}

void WsMlaKernel::copyQueries() {
  for (const RoleColumns &each : columns)
    CpAsyncOp::create(b, emitQueryView(tile, each.first, each.columns),
                      tile.row, each.queries, /*in_bounds=*/UnitAttr());
}

void WsMlaKernel::copyKeys(Value firstKey, Slot slot) {
  for (const RoleColumns &each : columns)
    CpAsyncOp::create(b, tile.source->emitView(each.tensor, tile.at), firstKey,
                      getKeys(each, slot), /*in_bounds=*/UnitAttr());
}

Value WsMlaKernel::getKeys(const RoleColumns &each, Slot slot) const {
  return slot.in(each.keys, tile.bufferType({plan.getBlockN(), each.columns}));
}

//===----------------------------------------------------------------------===//
// The warps that compute
//===----------------------------------------------------------------------===//

void WsMlaKernel::computeScores() {
  Pipe queries(control, queried, kScores), keys(control, keyed, kScores),
      scores(control, s.channel, kScores);
  MLIRContext *mlir = plan.getContext();
  auto type = RankedTensorType::get(
      {plan.getBlockM(), plan.getBlockN()}, b.getF32Type(),
      MmaLayoutAttr::get(mlir, getScoreGrid(plan)));
  tiles.forTiles(control, [&] {
    Slot query = queries.acquire();
    forBlocks([&](Value) {
      Slot key = keys.acquire();
      Value product = tile.splat(type, 0);
      for (const RoleColumns &each : columns) {
        Value transposed = TransposeOp::create(
            b, tile.bufferType({each.columns, plan.getBlockN()}),
            getKeys(each, key));
        product = MmaOp::create(b, type, each.queries, transposed, product);
      }
      key.release();
      keys.advance();

      Slot slot = scores.acquire();
      LocalStoreOp::create(b, product, s.at(slot));
      slot.release();
      scores.advance();
    });
    query.release();
    queries.advance();
  });
}

RankedTensorType WsMlaKernel::getSoftmaxScores() const {
  auto [rows, columns] = getSoftmaxGrid(plan);
  // Warps that share rows compute them all, since maxima are of whole rows.
  return RankedTensorType::get(
      {plan.getBlockM(), plan.getBlockN()}, b.getF32Type(),
      MmaLayoutAttr::get(plan.getContext(), {rows, 1}, /*copies=*/columns));
}

void WsMlaKernel::computeSoftmax() {
  Pipe scores(control, s.channel, kSoftmax),
      handed(control, p.channel, kSoftmax),
      last(control, scales.channel, kSoftmax);
  tiles.forTiles(control, [&] {
    emitScoreDescale(tile);
    tile.valueDescale = emitValueDescale(tile);
    Value scale = emitExponentScale(tile);
    RunningState none = emitInitialState(tile, /*bets=*/plan.getSoftmax() ==
                                                   SoftmaxPolicy::Optimistic);
    Value least =
        tile.splat(cast<RankedTensorType>(
                       (tile.hasWholeMaxima ? none.l : none.m).getType()),
                   -std::numeric_limits<double>::infinity());
    Var m(control, none.m), l(control, none.l), largest(control, least);
    forBlocks([&](Value firstKey) {
      Slot read = scores.acquire();
      Value block = LocalLoadOp::create(b, getSoftmaxScores(), s.at(read));
      read.release();
      scores.advance();
      if (failed(emitScores(tile, firstKey, block)))
        return control.fail();
      auto softmax = OnlineSoftmaxOp::create(b, block, m.get(), l.get(),
                                             /*o=*/Value(), scale,
                                             plan.getSoftmax(), largest.get());
      softmax.setWhole(tile.hasWholeMaxima);
      m = softmax.getNewM(), l = softmax.getNewL();
      largest = softmax.getNewLargest();
      Value narrow = arith::TruncFOp::create(
          b, getSoftmaxScores().clone(facts.elementType), softmax.getP());

      Slot slot = handed.acquire();
      Value place = p.at(slot);
      LocalStoreOp::create(b, softmax.getFactor(),
                           getRowNumbers(b, place, factors));
      LocalStoreOp::create(b, narrow, place);
      slot.release();
      handed.advance();
    });
    if (!control.isWhole())
      return;
    FinalRows rows = emitFinalRows(tile, m, l, largest);
    Value factor = emitRowFactor(tile, rows);
    Slot slot = last.acquire();
    LocalStoreOp::create(b, factor, scales.buffer);
    slot.release();
    last.advance();
    if (facts.lse)
      emitLSE(tile, rows.m, rows.l, emitLogViews(tile));
  });
}

Value WsMlaKernel::getValues(Slot slot) const {
  Value keys = getKeys(columns.front(), slot);
  // Where rotated columns lie apart, all others are values.
  if (facts.kRope)
    return keys;
  auto type = cast<BufferType>(keys.getType());
  return ReinterpretOp::create(
      b,
      BufferType::get(b.getContext(), {type.getShape()[0], facts.valueDim},
                      type.getElementType(), type.getLayout(), type.getSpace()),
      keys);
}

void WsMlaKernel::computeResults() {
  Pipe keys(control, keyed, kResults), handed(control, p.channel, kResults),
      last(control, scales.channel, kResults);
  int64_t rows = plan.getBlockM();
  auto type = RankedTensorType::get({rows, facts.valueDim}, b.getF32Type(),
                                    divided.divided);
  auto loadRows = [&](Value buffer) -> Value {
    return LocalLoadOp::create(b, tile.f32Tile({rows}), buffer);
  };
  tiles.forTiles(control, [&] {
    Var o(control, tile.splat(type, 0));
    forBlocks([&](Value) {
      Slot block = handed.acquire();
      o = emitRareRescale(b, loadRows(getRowNumbers(b, p.at(block), factors)),
                          o.get())
              .front();
      Slot key = keys.acquire();
      o = MmaOp::create(b, type, p.at(block), getValues(key), o.get());
      key.release();
      keys.advance();
      block.release();
      handed.advance();
    });
    Slot slot = last.acquire();
    Value scale = loadRows(scales.buffer);
    slot.release();
    last.advance();
    storeResults(o, scale);
  });
}

void WsMlaKernel::storeResults(Value o, Value scale) {
  Value result =
      facts.hasPartialScales()
          ? emitScaledRows(tile, o, scale, /*initWeight=*/Value(), &divided)
                .front()
          : emitQuotient(tile, o, scale, ResultColumns());
  StoreResultOp::create(b, result, emitResultView(tile, "o"), tile.row,
                        /*scratch=*/Value(), /*map=*/Value(),
                        /*coordinates=*/ValueRange(), plan.getEpilogue());
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void WsMlaKernel::forBlocks(function_ref<void(Value)> body) {
  const BlockBounds &bounds = tile.bounds;
  control.loop(
      bounds.end.getType(), body, [&](ValueRange inits, Control::Fill fill) {
        return KVLoopOp::create(b, bounds.begin, bounds.fullBegin,
                                bounds.fullEnd, bounds.end, plan.getBlockN(),
                                /*stages=*/1, inits, fill);
      });
}

LogicalResult WsMlaKernel::run() {
  makeRings();
  tiles.emitExtents();
  int64_t registers = getRoleRegisters(plan);
  control.partitions(
      {{kResults.partition,
        kRoleResultWarps,
        {1, kRoleResultWarps},
        registers,
        [&] { computeResults(); }},
       {kScores.partition, kRoleScoreWarps, getScoreGrid(plan), registers,
        [&] { computeScores(); }},
       {kLoad.partition, kRoleLoadWarps, {0, 0}, registers, [&] { load(); }},
       {kSoftmax.partition, kRoleSoftmaxWarps, getSoftmaxGrid(plan), registers,
        [&] { computeSoftmax(); }}});
  return success(control.isWhole());
}

LogicalResult attn::emitWsMla(KernelContext &context, WsMlaPlanAttr plan) {
  return WsMlaKernel(context, plan).run();
}
