//===- CopiedResults.h - Results of a kernel on cp.async --------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COPIED_COPIEDRESULTS_H
#define ATTN_LIB_SCHEDULE_COPIED_COPIEDRESULTS_H

#include "CopiedExtents.h"
#include "CopiedLayouts.h"
#include "attn/Schedule/Kernel/StoreResults.h"

namespace mlir::attn {

/// Where a tile's results go, and how they get there.
class CopiedResults {
public:
  CopiedResults(const AttentionTile &tile, const CopiedPlan &plan,
                const CopiedExtents &extents, const CopiedLayouts &layouts)
      : tile(tile), plan(plan), extents(extents), layouts(layouts), b(tile.b) {}

  /// Makes the views of the tile's rows.
  void makeViews();
  /// Stores a state with whole row sums and all logits, of teams what they give
  /// together.
  void store(const RunningState &state);
  /// Finishes and stores a tile whose columns the warps divide, given the state
  /// after the loop.
  void storeDivided(RunningState state);

private:
  /// Stores the state of one team, and its LSE if `lse` is not empty.
  void storeRows(const RunningState &state, const LogViews &lse);
  /// Allocates shared memory through which results may pass; null for none.
  Value allocateScratch();

  const AttentionTile &tile;
  CopiedPlan plan;
  const CopiedExtents &extents;
  const CopiedLayouts &layouts;
  ImplicitLocOpBuilder &b;
  Value oView;
  LogViews logViews;
  /// The columns of o that a team has.
  ResultColumns columns;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COPIED_COPIEDRESULTS_H
