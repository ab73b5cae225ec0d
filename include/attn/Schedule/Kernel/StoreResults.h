//===- StoreResults.h - How a tile is finished and stored -------*- C++ -*-===//

#ifndef ATTN_SCHEDULE_KERNEL_STORERESULTS_H
#define ATTN_SCHEDULE_KERNEL_STORERESULTS_H

#include "attn/Schedule/Kernel/DividedRows.h"
#include "attn/Schedule/Kernel/RowState.h"

namespace mlir::attn {

/// Where TMA may store results: a map of their tensor, which ends where their
/// rows do, and the first element of the tile. Empty if it may not.
struct ResultMap {
  Value map;
  SmallVector<Value, 4> coordinates;
};

/// Returns f32 results as `outMod` makes them; `columns` are those of o.
Value emitOutMod(const AttentionTile &tile, Value o, Region &outMod,
                 const ResultColumns &columns);

/// Lets the largest size of `o`, f32 results, join the number of amax; `rows`
/// is the view that they go to.
void emitAmax(const AttentionTile &tile, Value o, Value rows);

/// Returns the accumulator times `inverse`, as out_mod makes it, in the type of
/// the results, without `rounds` f32; `columns` are those of o. With
/// `initWeight`, of emitInitWeight in the layout of the rows of o, the results
/// that rows go on from join.
Value emitQuotient(const AttentionTile &tile, Value o, Value inverse,
                   const ResultColumns &columns, Value initWeight = {},
                   bool rounds = true);

/// Returns `columns`, f32 columns of the accumulators, times `factor`, and with
/// `initWeight` as emitQuotient has it, in f16: in units of the scales of the
/// rows, or of their columns' group, which are stored in the column `group` of
/// scales. `divided` tells how warps divide columns, if they do; then
/// `initWeight` has their layout and `factor` that of all columns. With
/// `initWeight` the columns are those that `stored` says.
SmallVector<Value> emitScaledRows(const AttentionTile &tile, ValueRange columns,
                                  Value factor, Value initWeight,
                                  const DividedRows *divided = nullptr,
                                  const ResultColumns &group = {},
                                  const ResultColumns &stored = {});

/// Where the log-sum-exps of rows go or, with `row_state`, their maxima and
/// sums; empty if nobody wants them.
struct LogViews {
  /// Log-sum-exps, or maxima.
  Value logs;
  /// Null for log-sum-exps.
  Value sums;

  explicit operator bool() const { return static_cast<bool>(logs); }
};

/// Makes views of the tile's rows.
LogViews emitLogViews(const AttentionTile &tile);
/// Makes those of rows that no other run has keys of, in the merged results.
LogViews emitMergedLogViews(const AttentionTile &tile);

/// Stores LSE, or what stands in its place.
void emitLSE(const AttentionTile &tile, Value m, Value l,
             const LogViews &views);

/// Stores `o`, f32, in groups of columns, each with a scale, which are stored
/// too. So many threads as `owners` hold a row.
void emitScaledGroups(const AttentionTile &tile, Value o, int64_t owners,
                      EpilogueKind epilogue);

/// Divides by the row sums and stores O, and LSE if `logViews` are not empty;
/// `columns` are those of O, and `owners` threads hold a row.
void emitResults(const AttentionTile &tile, const RunningState &state,
                 Value oView, const LogViews &logViews, Value scratch,
                 EpilogueKind epilogue, const ResultMap &map = {},
                 const ResultColumns &columns = {},
                 int64_t owners = kRowOwners);

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_KERNEL_STORERESULTS_H
