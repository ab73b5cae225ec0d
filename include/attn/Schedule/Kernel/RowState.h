//===- RowState.h - The softmax's state of rows -----------------*- C++ -*-===//
//
// The state that a loop over blocks of keys carries for each row, and what it
// becomes after the loop: whole row sums, merged states of different keys,
// logits beside the scores, factors of results.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_KERNEL_ROWSTATE_H
#define ATTN_SCHEDULE_KERNEL_ROWSTATE_H

#include "attn/Schedule/Kernel/AttentionTile.h"

namespace mlir::attn {

/// The row values and the accumulator of a tile.
struct RunningState {
  Value m, l, o;
  /// Sums of whole rows by which these are divided, if they are not those of
  /// which LSE is made; else null.
  Value divisor;
  /// In a loop the largest exponents of rows, or of parts of rows, where
  /// divisors are to be made of them; else null.
  Value largest;
  /// How much of the sum belongs to the state that rows go on from, below 0 in
  /// rows without one; null before emitWithSinks or if no row has one.
  Value initShare;

  RunningState() = default;
  RunningState(Value m, Value l, Value o) : m(m), l(l), o(o) {}
  Value getDivisor() const { return divisor ? divisor : l; }
};

/// The row values of a whole tile.
struct FinalRows {
  Value m, l;
  /// Multiplies the accumulator, for sinks and for the state that rows go on
  /// from; null without any.
  Value factor;
  /// As in RunningState.
  Value divisor;
  Value initShare = {};

  Value getDivisor() const { return divisor ? divisor : l; }
};

/// True if rows are divided by sums that have a row's largest probability as it
/// is rounded. Where maxima are whole numbers that probability is not 1, and
/// where one key decides a row its error is the row's. Keys of 8 bits have
/// probabilities of f16, whose errors are small beside their own.
inline bool dividesByRounded(const ProblemFacts &facts) {
  return facts.hasWholeMaxima() && !facts.isNarrow() && !facts.hasNarrowKeys();
}

/// Returns m, l and o before the first block. Under a policy that bets, rows
/// beyond the last query start with a maximum that keeps their probabilities
/// small: all their scores are 0, so that each block would lose the bet for its
/// warp.
RunningState emitInitialState(const AttentionTile &tile, bool bets = false);

/// Returns row sums `sums` with the largest probabilities as they are rounded
/// to the operands' type, given m and the largest exponents of rows, or of
/// parts of rows where maxima are whole. Of rows without keys, whose sum is 0,
/// that is nothing above 0.
Value emitDivisor(const AttentionTile &tile, Value sums, Value m,
                  Value largest);

/// Returns the rows after the loop, given m and partial sums l: in exponents of
/// two and whole row sums, with sinks and the state that rows go on from. With
/// `largest`, the largest exponents of rows or of parts of rows, they have a
/// divisor.
FinalRows emitFinalRows(const AttentionTile &tile, Value m, Value l,
                        Value largest = {});
/// Returns whole row sums with sinks and the state that rows go on from.
FinalRows emitLogits(const AttentionTile &tile, FinalRows rows);

/// Returns the state after the loop with whole row sums: `l` has a value for
/// each row.
RunningState emitRowSums(const AttentionTile &tile, const RunningState &state);
/// Returns what two states of different keys, with whole row sums, give
/// together.
RunningState emitMergedState(const AttentionTile &tile,
                             const RunningState &first,
                             const RunningState &second);
/// Returns a state of final rows and the accumulator that has no logits yet.
RunningState emitState(const AttentionTile &tile, const FinalRows &rows,
                       Value o);
/// Returns a state with whole row sums and the sinks.
RunningState emitWithSinks(const AttentionTile &tile,
                           const RunningState &state);
/// Returns the state after the loop in exponents of two and whole row sums,
/// with the sinks.
RunningState emitFinalState(const AttentionTile &tile,
                            const RunningState &state);

/// Returns `one` by the sum, or by 1 where that is 0.
Value emitReciprocal(const AttentionTile &tile, Value l, Value one);
/// Returns what a row of the accumulator is multiplied by, given its sum, by
/// which rows with `row_state` are not divided.
Value emitInverse(const AttentionTile &tile, Value l);
/// Returns what a row of an accumulator that has no logits yet is multiplied
/// by.
Value emitRowFactor(const AttentionTile &tile, const FinalRows &rows);

/// Returns the part of a row, given its sum and that part of the sum, that is
/// the state that it goes on from, below 0 in rows without one; null if
/// `initShare` is.
Value emitInitWeight(const AttentionTile &tile, Value l, Value initShare);
/// Returns that state's results in `columns` times `weight`, a tile of `type`;
/// 0 where that is below 0.
Value emitInitTerm(const AttentionTile &tile, RankedTensorType type,
                   Value weight, const ResultColumns &columns);

/// Returns `results` times `factor`, of their rows, where some factor is not 1.
SmallVector<Value> emitRareRescale(ImplicitLocOpBuilder &b, Value factor,
                                   ValueRange results);

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_KERNEL_ROWSTATE_H
