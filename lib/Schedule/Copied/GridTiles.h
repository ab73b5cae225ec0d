//===- GridTiles.h - A tile for each CTA of a grid --------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COPIED_GRIDTILES_H
#define ATTN_LIB_SCHEDULE_COPIED_GRIDTILES_H

#include "CopiedPlan.h"
#include "attn/Schedule/Kernel/AbsentRuns.h"
#include "llvm/Support/Error.h"

namespace mlir::attn {

/// Heads that are rows of their query under a plan: those of a group, or 1.
int64_t getPackedHeads(const ProblemFacts &facts, const CopiedPlan &plan);

/// Runs of keys that tiles of a launch have, at least 1.
int64_t countRuns(const ProblemFacts &facts);

/// True if results are those of runs of keys, which something merges.
bool areResultsPartial(const ProblemFacts &facts);
/// Returns the runs of keys of a sequence's tiles, at least 1. Where `dealt` is
/// not 0 or the plan deals runs, all sequences count as of one length.
int64_t countRuns(const ProblemFacts &facts, int64_t dealt);
int64_t countRuns(const ProblemFacts &facts, const CopiedPlan &plan);

/// For `group_heads`: the most heads whose keys and values take the share of L2
/// that is theirs (each of its halves may hold a copy of what its SMs read); 0
/// if all do.
int64_t chooseHeadsInL2(const ProblemFacts &facts, const TargetRow &target);

/// The grid of a plan: tiles of rows, heads (or groups of them), batches, and
/// runs of keys as the fastest part of z.
std::array<SizeExpr, 3> getTileGrid(const ProblemFacts &facts,
                                    const CopiedPlan &plan);

/// Tiles of that grid, whose runs count as one.
SizeExpr countTiles(const ProblemFacts &facts, const CopiedPlan &plan);

/// Whether the kernel of a plan merges the runs of its tiles.
bool mergesRuns(const ProblemFacts &facts, const CopiedPlan &plan);

/// The tile that the CTA's place in the grid says.
class GridTiles {
public:
  /// With `leavesRowsOpen` it is not known of a lone tile either which of its
  /// rows there are.
  GridTiles(KernelContext &context, const CopiedPlan &plan, bool leavesRowsOpen)
      : context(context), facts(context.facts), plan(plan),
        leavesRowsOpen(leavesRowsOpen), b(context.b) {}
  /// Emits where the tile of this CTA is.
  TileCoordinates emitTile();
  /// Emits which of the threads that have the tile this one is.
  StoringThreads emitTeamThreads();
  /// Behind the stores of a run of the tile `at`, whose first row is `row` of
  /// `rows`: lets the last CTA of the tile merge its runs.
  void emitMerge(const TileCoordinates &at, Value row, Value rows);

private:
  /// The tile of the rows of a query, i32.
  Value emitRowTile();
  /// The tile's number among all, i32, the same for all of its runs; `batch` is
  /// the last part of it.
  Value emitNumber(Value batch);
  /// Emits the batch, and the run of keys in `at`.
  Value emitBatch(TileCoordinates &at);

  KernelContext &context;
  const ProblemFacts &facts;
  const CopiedPlan plan;
  const bool leavesRowsOpen;
  ImplicitLocOpBuilder &b;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COPIED_GRIDTILES_H
