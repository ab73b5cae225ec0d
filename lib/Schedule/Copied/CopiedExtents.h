//===- CopiedExtents.h - What a plan on cp.async holds ----------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COPIED_COPIEDEXTENTS_H
#define ATTN_LIB_SCHEDULE_COPIED_COPIEDEXTENTS_H

#include "CopiedPlan.h"
#include "attn/Planner/Facts/RegisterModel.h"
#include "attn/Schedule/Core/Schedule.h"

namespace mlir::attn {

/// Columns of a group of 8-bit keys without scales of groups where registers do
/// not hold the queries.
inline constexpr int64_t kGroupColumns = 128;

/// True if several groups of columns of a row have scales.
bool hasGroupScales(const ProblemFacts &facts);

/// The extents of a plan's buffers and the sums that follow from them.
struct CopiedExtents {
  CopiedExtents(const ProblemFacts &facts, const CopiedPlan &plan);

  /// Columns of the Q and K buffers: the head dimension in whole k-steps of the
  /// matrix instruction, 16 or 32 of 8-bit elements.
  int64_t keyColumns;
  /// Columns of the V buffers, and of the accumulator of the results.
  int64_t valueColumns;
  /// Rows of one warp, and its columns of the results.
  int64_t warpRows, ownColumns;
  /// Values are columns of the keys, and have no slots of their own.
  bool isLatent;
  /// Queries, keys, values and probabilities have 8 bits.
  bool isNarrow;
  /// 8-bit keys and values become f16 as fragments.
  bool widensKeys;
  /// Bytes of Q, of one slot of K and of one slot of V, and of a tile of O.
  int64_t qBytes, kBytes, vBytes, oBytes;
  /// Groups of columns whose queries registers hold, of 8-bit latent keys.
  int64_t heldKeyGroups = 0, heldQueryColumns = 0;
  /// Queries have memory of their own beside the rings, all of them.
  bool keepsQueries = false;
  /// Bytes of the rings of scales of rows of K and V.
  SmallVector<int64_t, 2> scaleRings;
  /// What the bytes of a team are a multiple of, by which swizzles repeat.
  int64_t teamAlignment;
  /// Columns of a group that has a ring of its own, and scales if rows have
  /// any; 0 where the columns of a row are together.
  int64_t groupColumns = 0;
  /// Bytes of the scores that warps exchange.
  int64_t exchangeBytes;

  /// Bytes of the ring that slices of K and V have in turns, and of that of
  /// Q's; 0 where there is none.
  int64_t sliceBytes = 0, querySliceBytes = 0;
  /// Some slice, or row of 8-bit values, has columns that do not exist.
  bool hasPadding = false;

  /// f32 elements of a team's state on its way to another one: for each 16 rows
  /// the registers of O, m, l and the divisor in 32 threads, in whole fours.
  int64_t stateElements;

  /// True if addresses take registers that would be constants otherwise.
  bool dynamicStrides;
  /// True if rows of K and V have to be found one by one.
  bool isPaged;
  /// True if sequences of queries are packed, if results of other keys are
  /// added to those of these, and if results are those of a run of keys.
  bool isPacked, hasInit, isPartial;
  /// True if results are f32, and if rows of dense keys have a length.
  bool hasWideOutput, isBounded;
  /// True if some scores are hidden, and if that is on both sides of a row's.
  bool isMasked, isWindowed;
  /// True if indices say which keys each query reads.
  bool hasIndices;
  /// True if rows have a divisor apart from l.
  bool hasDivisor;
  /// Temporaries of what stands between products and softmax.
  int64_t scoreRegisters = 0;

  ResourceSum getSharedBytes(const CopiedPlan &plan) const;
  /// Returns what the register model asks of a plan.
  RegisterFeatures getRegisterFeatures(const CopiedPlan &plan) const;
  /// Returns the registers that a block takes where rows of K and V have
  /// different lengths, and do not share the thread's offsets, predicates and
  /// swizzles. Occupancy is counted without them.
  int64_t getOwnRowRegisters(const CopiedPlan &plan) const;
  ResourceSum getRegisters(const CopiedPlan &plan) const;
  /// Registers of a thread for results that the loop carries as f16; 0 for f32.
  int64_t getNarrowResultRegisters(const CopiedPlan &plan) const;

private:
  /// True if results leave no registers for 8-bit latent keys' queries.
  bool hasWideResults() const;
  /// Sets the registers of fragments.
  void setFragments(RegisterFeatures &features, const CopiedPlan &plan) const;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COPIED_COPIEDEXTENTS_H
