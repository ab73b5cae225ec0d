//===- Scores.h - What stands between products and softmax ------*- C++ -*-===//
//
// Scores stay in units in which one factor, the softmax's scale, turns them
// into exponents of two: the raw products where nothing but the problem's scale
// stands between, else natural units.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_KERNEL_SCORES_H
#define ATTN_SCHEDULE_KERNEL_SCORES_H

#include "attn/Schedule/Kernel/AttentionTile.h"

namespace mlir::attn {

/// Counts what emitScores adds for the options of a problem: registers of a
/// thread, and instructions of a warp for each element of a thread.
struct ScoreCost {
  int64_t registers = 0;
  double instructions = 0;
};
ScoreCost getScoreCost(const ProblemFacts &facts);

/// Returns queries in the type of operands.
Value emitOperand(const AttentionTile &tile, Value q);
/// Converts queries in shared memory to the type of operands, in place.
Value emitConverted(const AttentionTile &tile, Value buffer);

/// Returns what the tensor `name` of (heads) or (batch, heads) has for the
/// heads of the tile's rows, of which some are packed.
Value emitHeadValues(const AttentionTile &tile, StringRef name);

/// Reads what units of q and k stand for in the tile's heads, if the problem
/// says so.
void emitScoreDescale(AttentionTile &tile);
/// Reads what units of v stand for; null where the problem does not say so.
Value emitValueDescale(const AttentionTile &tile);

/// Returns the factor of online_softmax, f32: exponents of two per unit of
/// score.
Value emitExponentScale(const AttentionTile &tile);

/// Finds which keys each row of the tile keeps, where key_range looks for them,
/// so that blocks are compared with these and mask_mod need not be asked.
void emitRowKeys(AttentionTile &tile);

/// Applies the soft cap, score_mod, mask_mod and the mask to the products of
/// the block at `key`, whose keys are in fours with `quads` (attn.apply_mask).
LogicalResult emitScores(const AttentionTile &tile, Value key, Value &scores,
                         bool quads = false);

/// Returns the head and the query of row `row` of a group's rows.
std::pair<Value, Value> emitHeadAndQuery(const AttentionTile &tile, Value row);

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_KERNEL_SCORES_H
