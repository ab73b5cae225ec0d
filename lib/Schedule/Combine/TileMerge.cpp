//===- TileMerge.cpp - A tile's runs, merged by its last CTA --------------===//

#include "TileMerge.h"
#include "RowMerge.h"
#include "attn/Schedule/Core/CombineSchedule.h"
#include "attn/Schedule/Kernel/Control.h"

using namespace mlir;
using namespace mlir::attn;

/// The combine that the kernel computes beside its attention.
static CombineFacts getMergeFacts(const ProblemFacts &facts, int64_t runs) {
  CombineFacts merge;
  merge.splits = runs;
  merge.batch = facts.batch;
  merge.heads = facts.heads;
  merge.queries = facts.queries;
  merge.valueDim = facts.valueDim;
  if (facts.outScale != 0)
    merge.outScale = facts.outScale;
  merge.partialO = facts.o;
  merge.partialLse = facts.lse;
  merge.partialScales = facts.oScales;
  merge.o = facts.mergedO;
  merge.lse = facts.mergedLse;
  merge.oScales = facts.mergedScales;
  merge.amax = facts.mergedAmax;
  merge.groupColumns = facts.mergedGroup;
  merge.outMod = facts.mergedMod;
  return merge;
}

/// Threads take the tile's groups of columns in turns.
static void emitRows(KernelContext &context, const MergedTile &tile) {
  ImplicitLocOpBuilder &b = context.b;
  CombineFacts merge = getMergeFacts(context.facts, tile.runs);
  merge.areDealt = static_cast<bool>(tile.dealt);
  RowMergeWay way = {getCombineColumns(merge, kMaxCombineColumns),
                     kUnrolledSplits};

  Value groups = context.i32(merge.valueDim / way.columns);
  Value rows = arith::SubIOp::create(b, tile.end, tile.row);
  Value thread = arith::IndexCastUIOp::create(
      b, b.getI32Type(), gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  Control control(b);
  std::optional<Var> largest;
  if (merge.amax)
    largest.emplace(control, context.f32(0));
  auto mergeColumns = [&](Value number) {
    Value row = arith::AddIOp::create(
        b, tile.row, arith::DivUIOp::create(b, number, groups));
    Value head = tile.head;
    if (tile.group != 1) {
      Value group = context.i32(tile.group);
      head =
          arith::AddIOp::create(b, head, arith::RemUIOp::create(b, row, group));
      row = arith::DivUIOp::create(b, row, group);
    }
    Value column = arith::MulIOp::create(
        b, arith::RemUIOp::create(b, number, groups), context.i32(way.columns));
    Value own =
        emitRowMerge(context, merge, way, {tile.batch, head, row, column});
    if (largest)
      *largest = arith::MaximumFOp::create(b, largest->get(), own);
  };
  control.forRange(thread, arith::MulIOp::create(b, rows, groups),
                   context.i32(tile.threads), mergeColumns);
  if (largest)
    emitMergedAmax(context, *largest);
}

void attn::emitTileMerge(KernelContext &context, const MergedTile &tile) {
  ImplicitLocOpBuilder &b = context.b;
  constexpr int64_t kCounterBytes = 4;
  Value counters = context.addWorkspace(
      {tile.count * kCounterBytes, /*zeroed=*/true, /*restored=*/true});
  Value counter =
      LLVM::GEPOp::create(b, counters.getType(), b.getI32Type(), counters,
                          ValueRange{context.widen(tile.number)});
  Value runs = tile.dealt ? tile.dealt : context.i32(tile.runs);
  Value last = TileArriveOp::create(b, counter, runs);
  auto branch = scf::IfOp::create(b, last, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emitRows(context, tile);
}
