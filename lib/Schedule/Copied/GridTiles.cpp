//===- GridTiles.cpp - A tile for each CTA of a grid ----------------------===//

#include "GridTiles.h"
#include "../Combine/TileMerge.h"
#include "../Core/CommonChecks.h"
#include "../Core/WorkPlan.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"
#include "attn/Planner/Facts/Factor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

int64_t attn::countRuns(const ProblemFacts &facts) {
  return std::max<int64_t>(1, facts.kvSplits);
}

bool attn::areResultsPartial(const ProblemFacts &facts) {
  return facts.kvSplits != 0;
}

int64_t attn::countRuns(const ProblemFacts &facts, int64_t dealt) {
  if (dealt && !ShapedType::isDynamic(facts.batch))
    return std::min<int64_t>(
        countRuns(facts), llvm::divideCeil(dealt - facts.batch, facts.batch));
  return countRuns(facts);
}

int64_t attn::countRuns(const ProblemFacts &facts, const CopiedPlan &plan) {
  return countRuns(facts, plan.getDealtRuns());
}

int64_t attn::chooseHeadsInL2(const ProblemFacts &facts,
                              const TargetRow &target) {
  int64_t sharers = facts.getGroup();
  if (ShapedType::isDynamic(sharers))
    return 0;
  int64_t batch =
      std::max<int64_t>(1, getAssumedExtent(facts.batch, kAssumedBatch));
  int64_t keys = getAssumedExtent(facts.keys, kAssumedLength);
  if (facts.varlen)
    keys = llvm::divideCeil(keys, batch);
  double bytes = double(keys) * (facts.headDim + facts.valueDim) *
                 facts.elementType.getIntOrFloatBitWidth() / 8 / sharers;
  static constexpr Factor kShare{"rows.l2_share"};
  double limit = kShare * target.l2Bytes;
  if (!ShapedType::isDynamic(facts.batch) &&
      bytes * facts.heads * batch <= limit)
    return 0;
  int64_t group = std::clamp(limit / std::max(bytes, 1.0), 1.0,
                             std::max(1.0, double(facts.heads)));
  while (facts.heads % group != 0)
    --group;
  // Beyond that the grid would be folded.
  constexpr int64_t kMostGroups = 65535;
  int64_t groups = facts.heads / group * batch * countRuns(facts);
  return groups <= kMostGroups ? group : 0;
}

/// The grid without runs.
static std::array<SizeExpr, 3> getWholeGrid(const ProblemFacts &facts,
                                            const CopiedPlan &plan) {
  int64_t packed = getPackedHeads(facts, plan);
  SizeExpr heads = SizeExpr::getDim(packed == 1 ? "q" : "k", 1);
  bool isPacked = static_cast<bool>(facts.cuSeqlensQ);
  SizeExpr batch = isPacked ? SizeExpr::getDim("cu_seqlens_q", 0) - 1
                            : SizeExpr::getDim("q", 0);
  SizeExpr rows = isPacked ? SizeExpr(facts.queries) : SizeExpr::getDim("q", 2);
  if (packed != 1)
    rows = isPacked ? SizeExpr(facts.queries * packed) : rows * packed;
  if (plan.getHeadTeams() > 1)
    heads = SizeExpr::ceilDiv(heads, plan.getHeadTeams());
  SizeExpr tiles = SizeExpr::ceilDiv(rows, plan.getBlockM());
  std::array<SizeExpr, 3> grid;
  if (plan.getGroupHeads())
    grid = {plan.getGroupHeads(), tiles,
            SizeExpr::ceilDiv(heads * batch, plan.getGroupHeads())};
  else if (plan.getOrder() == TileOrder::LongestFirst)
    grid = {heads * batch, tiles, 1};
  else
    grid = {tiles, heads, batch};
  return grid;
}

std::array<SizeExpr, 3> attn::getTileGrid(const ProblemFacts &facts,
                                          const CopiedPlan &plan) {
  std::array<SizeExpr, 3> grid = getWholeGrid(facts, plan);
  if (plan.getDealtRuns())
    grid[2] = plan.getDealtRuns();
  else if (facts.kvSplits > 1)
    grid[2] = grid[2] * facts.kvSplits;
  return grid;
}

SizeExpr attn::countTiles(const ProblemFacts &facts, const CopiedPlan &plan) {
  std::array<SizeExpr, 3> grid = getWholeGrid(facts, plan);
  return grid[0] * grid[1] * grid[2];
}

bool attn::mergesRuns(const ProblemFacts &facts, const CopiedPlan &plan) {
  return areResultsPartial(facts) && plan.getCombine() == CombineWay::Launch;
}

Value GridTiles::emitBatch(TileCoordinates &at) {
  Value z = context.getBlockId(gpu::Dimension::z);
  if (plan.plansWork()) {
    WorkRecord record = loadWorkRecord(context, z);
    at.split = record.run;
    at.runs = record.runs;
    at.keys = record.keys;
    return record.sequence;
  }
  if (plan.getDealtRuns()) {
    auto deal = DealRunOp::create(
        b, z, context.getLengths(), context.i32(getSeenKeys(facts)),
        plan.getDealtRuns(), facts.batch, facts.kvSplits);
    at.split = deal.getRun();
    at.runs = deal.getRuns();
    return deal.getSequence();
  }
  if (facts.kvSplits <= 1)
    return z;
  Value splits = context.i32(facts.kvSplits);
  at.split = arith::RemUIOp::create(b, z, splits);
  return arith::DivUIOp::create(b, z, splits);
}

Value GridTiles::emitNumber(Value batch) {
  auto join = [&](Value outer, gpu::Dimension dim) -> Value {
    return arith::AddIOp::create(
        b, arith::MulIOp::create(b, outer, context.getGridDim(dim)),
        context.getBlockId(dim));
  };
  return join(join(batch, gpu::Dimension::y), gpu::Dimension::x);
}

Value GridTiles::emitRowTile() {
  // A tile that has all rows is known without asking, and so is which of its
  // rows there are.
  bool isKnown = !ShapedType::isDynamic(facts.queries) &&
                 !ShapedType::isDynamic(facts.getGroup());
  int64_t rows = isKnown ? facts.queries * getPackedHeads(facts, plan)
                         : ShapedType::kDynamic;
  bool isOne = isKnown && rows <= plan.getBlockM() &&
               (rows == plan.getBlockM() || !leavesRowsOpen);
  return isOne ? context.i32(0) : context.getBlockId(gpu::Dimension::x);
}

TileCoordinates GridTiles::emitTile() {
  TileCoordinates result;
  int64_t packed = getPackedHeads(facts, plan);
  if (plan.getOrder() == TileOrder::LongestFirst) {
    // Under a causal mask the last tile has the most keys.
    Value x = context.getBlockId(gpu::Dimension::x);
    Value y = context.getBlockId(gpu::Dimension::y);
    Value heads = packed == 1 ? context.getHeads() : context.getKVHeads();
    if (plan.getGroupHeads())
      x = arith::AddIOp::create(
          b, x,
          arith::MulIOp::create(b, emitBatch(result),
                                context.i32(plan.getGroupHeads())));
    else if (facts.kvSplits > 1)
      emitBatch(result);
    result.head = arith::RemUIOp::create(b, x, heads);
    result.batch = arith::DivUIOp::create(b, x, heads);
    Value tiles = context.getGridDim(gpu::Dimension::y);
    result.tile = arith::SubIOp::create(
        b, arith::SubIOp::create(b, tiles, context.i32(1)), y);
  } else {
    result.tile = emitRowTile();
    result.head = context.getBlockId(gpu::Dimension::y);
    if (int64_t heads = plan.getHeadTeams(); heads > 1) {
      Value own =
          arith::RemUIOp::create(b, TeamIndexOp::create(b), context.i32(heads));
      result.head = arith::AddIOp::create(
          b, arith::MulIOp::create(b, result.head, context.i32(heads)), own);
    }
    result.batch = emitBatch(result);
  }
  if (packed == 1) {
    result.kvHead = emitKVHead(context, result.head);
  } else {
    result.kvHead = result.head;
    result.head = arith::MulIOp::create(b, result.head, context.i32(packed));
  }
  return result;
}

StoringThreads GridTiles::emitTeamThreads() {
  Value thread = arith::IndexCastUIOp::create(
      b, b.getI32Type(), gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  int64_t heads = plan.getHeadTeams();
  if (heads > 1) {
    // Every so many warps have the tile's head.
    constexpr int64_t kLanes = 32;
    Value warp = arith::DivUIOp::create(b, thread, context.i32(kLanes * heads));
    thread = arith::AddIOp::create(
        b, arith::MulIOp::create(b, warp, context.i32(kLanes)),
        arith::RemUIOp::create(b, thread, context.i32(kLanes)));
  }
  return {thread, plan.getThreads() / heads};
}

void GridTiles::emitMerge(const TileCoordinates &at, Value row, Value rows) {
  MergedTile tile;
  TileCoordinates run;
  tile.number = emitNumber(at.runs ? at.batch : emitBatch(run));
  tile.count = countTiles(facts, plan);
  tile.runs = facts.kvSplits;
  tile.dealt = at.runs;
  tile.batch = at.batch;
  tile.head = at.head;
  tile.group = getPackedHeads(facts, plan);
  tile.row = row;
  Value end = arith::AddIOp::create(b, row, context.i32(plan.getBlockM()));
  tile.end = arith::MinSIOp::create(b, end, rows);
  tile.threads = plan.getThreads();
  emitTileMerge(context, tile);
}
