//===- CopiedTeams.h - What the teams of a CTA give together ----*- C++ -*-===//
//
// The states of all teams are merged pairwise: of 8 teams those of the first 4
// with those of the other 4, then 2 with 2 and 1 with 1; those of one head are
// as many apart as a CTA has heads. A tile ends with it, so what counts is how
// long it takes: where teams can divide the columns each merges and stores its
// own, and all meet once.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_COPIED_COPIEDTEAMS_H
#define ATTN_LIB_SCHEDULE_COPIED_COPIEDTEAMS_H

#include "CopiedExtents.h"
#include "attn/Schedule/Kernel/RowState.h"

namespace mlir::attn {

/// Narrows the bounds to the team's share of the keys of its head.
void takeTeamShare(AttentionTile &tile, const CopiedPlan &plan);

/// True if each team merges and stores columns of its own; else the first one
/// does so with all.
bool dividesResults(const ProblemFacts &facts, const CopiedPlan &plan,
                    const CopiedExtents &extents);
/// Returns the columns of such a team.
int64_t getTeamColumns(const CopiedPlan &plan, const CopiedExtents &extents);

/// Exchanges the states of all teams, with whole row sums. Returns what they
/// give together, in the first teams, one for each head, or in each team's
/// columns.
RunningState mergeTeams(const AttentionTile &tile, const CopiedPlan &plan,
                        const CopiedExtents &extents, RunningState state);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COPIED_COPIEDTEAMS_H
