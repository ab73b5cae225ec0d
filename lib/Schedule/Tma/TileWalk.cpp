//===- TileWalk.cpp - CTAs that walk tiles --------------------------------===//

#include "TileWalk.h"
#include "../Copied/GridTiles.h"
#include "../Core/WorkPlan.h"
#include "RingFacts.h"
#include "mlir/IR/Matchers.h"
#include <utility>

using namespace mlir;
using namespace mlir::attn;

void TilePlan::setRuns(const ProblemFacts &facts, bool packHeads) {
  runs = countRuns(facts);
  if (!packHeads)
    return;
  packedHeads = facts.getGroup();
  queryRows = countQueryRows(facts, packHeads);
}

/// Returns the rows of a query that a tile has: heads that share a key head,
/// and those behind them that do not exist.
static int64_t countRowsOfQuery(const TilePlan &plan) {
  return plan.queryRows ? plan.queryRows : plan.packedHeads;
}

SizeExpr attn::countDealtTiles(const ProblemFacts &facts,
                               const TilePlan &plan) {
  if (plan.listed)
    return SizeExpr::getDim("q", 1) *
           PlanTilesOp::getCapacity(facts.batch, facts.queries, plan.blockM);
  SizeExpr rows =
      facts.varlen ? SizeExpr(facts.queries) : SizeExpr::getDim("q", 2);
  SizeExpr batch = facts.varlen ? SizeExpr::getDim("cu_seqlens_q", 0) - 1
                                : SizeExpr::getDim("q", 0);
  if (plan.dealtRuns)
    batch = plan.dealtRuns;
  // A run may have a piece of each sequence, and its loop ends behind the last.
  if (plan.equalRuns)
    batch = batch + 1;
  int64_t ofQuery = countRowsOfQuery(plan);
  SizeExpr heads = SizeExpr::getDim(ofQuery == 1 ? "q" : "k", 1);
  if (ofQuery != 1)
    rows = rows * ofQuery;
  SizeExpr tiles =
      SizeExpr::ceilDiv(rows, plan.blockM * plan.getTogether()) * heads * batch;
  int64_t runs = plan.equalRuns ? plan.equalRuns : plan.runs;
  return plan.dealtRuns || runs == 1 ? tiles : tiles * runs;
}

TileWalk::TileWalk(KernelContext &context, const TilePlan &plan)
    : context(context), plan(plan),
      tile(context, plan.blockM, countRowsOfQuery(plan), plan.packedHeads) {
  tile.rowsTogether = plan.blockM * plan.getTogether();
}

static bool isLongestFirst(const TilePlan &plan) {
  return plan.order == TileOrder::LongestFirst;
}

/// Returns how tiles are dealt to CTAs.
static TileScheduler getScheduler(const TilePlan &plan) {
  if (plan.dynamic)
    return TileScheduler::Dynamic;
  if (plan.clc)
    return TileScheduler::Clc;
  // In turns of alternating direction the CTA with the longest tile of one turn
  // gets the shortest of the next.
  return isLongestFirst(plan) ? TileScheduler::Snake : TileScheduler::Strided;
}

/// Returns the batches times the runs of a tile, i32.
static Value getBatchRuns(KernelContext &context, const TilePlan &plan) {
  if (plan.dealtRuns)
    return context.i32(plan.dealtRuns);
  int64_t batch = context.facts.batch;
  if (!ShapedType::isDynamic(batch))
    return context.i32(batch * plan.runs);
  return context.b.createOrFold<arith::MulIOp>(context.getBatch(),
                                               context.i32(plan.runs));
}

void TileWalk::emitExtents() {
  ImplicitLocOpBuilder &b = context.b;
  const ProblemFacts &facts = context.facts;
  if (plan.listed) {
    tilesPerHead = loadTileCount(context);
    tileHeads = allHeads = context.getHeads();
    allTiles = b.createOrFold<arith::MulIOp>(allHeads, tilesPerHead);
    return;
  }
  context.emitOrders();
  Value length =
      facts.varlen ? context.i32(facts.queries) : context.getQueries();
  if (tile.group != 1)
    length = b.createOrFold<arith::MulIOp>(length, context.i32(tile.group));
  tilesPerHead = b.createOrFold<arith::CeilDivUIOp>(
      length, context.i32(tile.rowsTogether));
  tileHeads = tile.group == 1 ? context.getHeads() : context.getKVHeads();
  allHeads =
      b.createOrFold<arith::MulIOp>(tileHeads, getBatchRuns(context, plan));
  allTiles = b.createOrFold<arith::MulIOp>(allHeads, tilesPerHead);
  if (plan.cluster > 1)
    rank = arith::IndexCastOp::create(
        b, b.getI32Type(), gpu::ClusterBlockIdOp::create(b, gpu::Dimension::x));
}

/// Returns which of the tiles that the cluster's CTAs have at turn `index` is
/// this CTA's; null if it is alone.
static Value getPlace(const TileWalk &walk, Value index) {
  const TilePlan &plan = walk.plan;
  if (!walk.rank || !isLongestFirst(plan) || plan.tilesPerCTA > 1)
    return walk.rank;
  // Turns alternate between even and odd tiles: whoever has the longest tile of
  // one turn has the shortest of the next.
  ImplicitLocOpBuilder &b = walk.context.b;
  Value isOdd = arith::TruncIOp::create(b, b.getI1Type(), index);
  Value last = walk.context.i32(plan.cluster - 1);
  return arith::SelectOp::create(
      b, isOdd, arith::SubIOp::create(b, last, walk.rank), walk.rank);
}

/// Returns the blocks of these that are in the run of `tile`.
static BlockBounds emitRunOf(AttentionTile &tile, const BlockBounds &all,
                             int64_t blockN) {
  BlockBounds kept = std::exchange(tile.bounds, all);
  emitRun(tile, blockN);
  return std::exchange(tile.bounds, kept);
}

/// Narrows `part` to the blocks of the run of `tile`: those that all tiles walk
/// are cut, and each has its own ones of them.
static void cutToRun(AttentionTile &tile, ClusterTile &part, int64_t blockN) {
  ImplicitLocOpBuilder &b = tile.b;
  BlockBounds own = part.bounds, all = own;
  all.begin = all.fullBegin = part.begin;
  all.end = all.fullEnd = part.end;
  all = emitRunOf(tile, all, blockN);
  part.begin = all.begin;
  part.end = all.end;
  for (Value *bound : {&own.begin, &own.fullBegin, &own.fullEnd, &own.end})
    *bound = arith::MinSIOp::create(
        b, arith::MaxSIOp::create(b, *bound, part.begin), part.end);
  part.bounds = own;
  if (part.skippedBehind)
    part.skippedBehind = arith::SubIOp::create(b, part.end, own.end);
  if (part.skippedInFront)
    part.skippedInFront = arith::SubIOp::create(b, own.begin, part.begin);
}

/// Widens the blocks of `part` so that it and the other tile, which has the
/// blocks `other`, have all that both walk: their rows together may need more
/// blocks of a key_range than one after the other.
static void takeOthersGaps(ImplicitLocOpBuilder &b, ClusterTile &part,
                           const BlockBounds &other) {
  auto select = [&](Value condition, Value yes, Value no) -> Value {
    return arith::SelectOp::create(b, condition, yes, no);
  };
  BlockBounds &own = part.bounds;
  Value hasLeft = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                        other.begin, part.begin);
  Value hasRight =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, other.end, part.end);
  Value near = arith::MinSIOp::create(b, own.begin, other.end);
  Value far = arith::MaxSIOp::create(b, own.end, other.begin);
  Value begin = select(hasLeft, part.begin, select(hasRight, near, own.begin));
  own.end = select(hasRight, part.end, select(hasLeft, far, own.end));
  own.begin = begin;
  part.skippedBehind = arith::SubIOp::create(b, part.end, own.end);
  part.skippedInFront = arith::SubIOp::create(b, own.begin, part.begin);
}

ClusterTile TileWalk::emitPart(Value firstRow, Value place,
                               int64_t neighbours) {
  auto emit = [&](Value place) {
    return emitClusterTile(context, tile.getBoundedTiles(), firstRow, place,
                           plan.getTogether() / neighbours,
                           plan.blockM * neighbours, plan.blockN);
  };
  ClusterTile part = emit(place);
  if (plan.hasOwnProducts && context.facts.hasKeyRange() && place &&
      matchPattern(place, m_Zero()))
    takeOthersGaps(context.b, part, emit(context.i32(1)).bounds);
  if (!tile.at.split)
    return part;
  if (plan.tilesPerCTA > 1 || plan.isPair) {
    cutToRun(tile, part, plan.blockN);
    return part;
  }
  part.bounds = emitRunOf(tile, part.bounds, plan.blockN);
  // Tiles that nobody shares are loaded in the run's blocks alone.
  if (plan.getTogether() == 1) {
    part.begin = part.bounds.begin;
    part.end = part.bounds.end;
  }
  return part;
}

/// Finds the rows, the lengths and the blocks of keys of the tile whose batch
/// and run are known, and whose cluster's first row is `row`.
static void findBlocks(TileWalk &walk, Value row, Value place) {
  AttentionTile &tile = walk.tile;
  emitLengths(tile, row);
  walk.cluster = walk.emitPart(row, place);
  tile.row = walk.cluster.row;
  tile.bounds = walk.cluster.bounds;
}

/// Finds tile `index`, its lengths and its blocks of keys.
static void findTile(TileWalk &walk, Value index) {
  KernelContext &context = walk.context;
  const TilePlan &plan = walk.plan;
  AttentionTile &tile = walk.tile;
  Value place = getPlace(walk, index);
  // A counter deals evenly whatever the direction is.
  auto found = TilePlaceOp::create(
      context.b, index, walk.tilesPerHead, walk.tileHeads, walk.allHeads,
      tile.rowsTogether, plan.order, isLongestFirst(plan) ? plan.groupHeads : 0,
      isLongestFirst(plan) && plan.groupHeads != 0 && !plan.dynamic &&
          !plan.clc,
      plan.dealtRuns ? 1 : plan.runs);
  tile.at.batch = found.getBatch();
  tile.at.head = found.getHead();
  tile.at.split = found.getRun();
  if (plan.dealtRuns) {
    WorkRecord record = loadWorkRecord(context, found.getBatch());
    tile.at.batch = record.sequence;
    tile.at.split = record.run;
    tile.at.runs = record.runs;
    tile.at.keys = record.keys;
  }
  if (tile.group == 1) {
    tile.at.kvHead = emitKVHead(context, tile.at.head);
  } else {
    tile.at.kvHead = tile.at.head;
    tile.at.head = arith::MulIOp::create(context.b, tile.at.head,
                                         context.i32(tile.members));
  }
  findBlocks(walk, found.getRow(), place);
}

void TileWalk::findListed(Value index) {
  ImplicitLocOpBuilder &b = context.b;
  // The list is one head's tiles of all batches.
  auto found = TilePlaceOp::create(b, index, tilesPerHead, tileHeads, allHeads,
                                   /*rows=*/1, plan.order, plan.groupHeads,
                                   /*alternating=*/false, /*runs=*/1);
  TileRecord record = loadTile(context, found.getRow());
  tile.at.batch = record.batch;
  tile.at.head = found.getHead();
  tile.at.kvHead = emitKVHead(context, tile.at.head);
  tile.origin = record.origin;
  tile.isOneDocument = record.isOne;
  tile.queries = tile.keys = tile.source->length = record.queries;
  // Where blocks begin with the document so do its keys.
  Value begin = plan.align == 1 ? context.i32(0) : record.begin;
  Value whole = arith::SelectOp::create(b, record.isOne, record.end, begin);
  tile.range = {begin, record.end, begin, whole};
  cluster = emitPart(record.query, /*place=*/Value());
  tile.row = cluster.row;
  tile.bounds = cluster.bounds;
}

void TileWalk::forPieces(Control &control, function_ref<void()> body) {
  ImplicitLocOpBuilder &b = context.b;
  Value cluster = context.i32(plan.cluster);
  Value own = b.createOrFold<arith::DivUIOp>(
      context.getBlockId(gpu::Dimension::x), cluster);
  Value all = b.createOrFold<arith::DivUIOp>(
      context.getGridDim(gpu::Dimension::x), cluster);
  // Tiles of the same keys are neighbours, so that L2 has what the second one
  // loads.
  Value number = b.createOrFold<arith::DivUIOp>(own, tilesPerHead);
  Value place = b.createOrFold<arith::RemUIOp>(own, tilesPerHead);
  RunOfPieces run = loadRunOfPieces(context, number);
  Value count = arith::SubIOp::create(b, run.end, run.first);
  // The loop goes on as one over strided tiles does, by which the check of
  // synchronisation knows it, and all that differs follows from the tile.
  Value last =
      arith::AddIOp::create(b, own, arith::MulIOp::create(b, count, all));
  control.forRange(own, last, all, [&](Value turn) {
    Value before =
        arith::DivUIOp::create(b, arith::SubIOp::create(b, turn, own), all);
    Value index = arith::AddIOp::create(b, run.first, before);
    Value number = b.createOrFold<arith::AddIOp>(
        b.createOrFold<arith::MulIOp>(index, tilesPerHead), place);
    findPiece(number, run.end);
    body();
  });
}

void TileWalk::findPiece(Value number, Value end) {
  ImplicitLocOpBuilder &b = context.b;
  Value index = b.createOrFold<arith::DivUIOp>(number, tilesPerHead);
  Value row = b.createOrFold<arith::MulIOp>(
      b.createOrFold<arith::RemUIOp>(number, tilesPerHead),
      context.i32(tile.rowsTogether));
  PieceRecord piece = loadPiece(context, plan.equalRuns, index);
  Value next = arith::AddIOp::create(b, index, context.i32(1));
  isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, next, end);
  Value zero = context.i32(0);
  tile.at.batch = piece.sequence;
  tile.at.head = tile.at.kvHead = zero;
  tile.at.keys = piece.keys;
  tile.at.piece = index;
  // Extra logits are those of the first piece.
  tile.at.split = tile.at.firstBlock = piece.first;
  tile.at.blocks = piece.blocks;
  findBlocks(*this, row, rank);
}

Value TileWalk::isWhole() {
  ImplicitLocOpBuilder &b = context.b;
  Value zero = context.i32(0);
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                        tile.at.firstBlock, zero);
  return arith::AndIOp::create(b, isFirst, tile.at.isRest);
}

void TileWalk::forTiles(Control &control, function_ref<void()> body,
                        function_ref<void(TileLoopOp)> complete) {
  if (plan.equalRuns)
    return forPieces(control, body);
  ImplicitLocOpBuilder &b = context.b;
  control.loop(
      allTiles.getType(),
      [&](Value index) {
        if (plan.listed)
          findListed(index);
        else
          findTile(*this, index);
        // Fewer runs may be dealt than the bound says.
        if (plan.dealtRuns)
          return control.ifThen(
              arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, tile.at.runs,
                                    context.i32(0)),
              body);
        if (!context.facts.varlen)
          return body();
        // The tiles of the longest sequence are dealt for all.
        control.ifThen(arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                             cluster.firstRow, tile.getRows()),
                       body);
      },
      [&](ValueRange inits, Control::Fill fill) {
        auto loop =
            TileLoopOp::create(b, allTiles, getScheduler(plan), inits, fill);
        if (complete)
          complete(loop);
        return loop;
      });
}
