//===- MlaRings.h - What the roles of mla hand each other -------*- C++ -*-===//
//
// Memory and channels of the kernels of mla whose scores have a warpgroup.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_MLA_MLARINGS_H
#define ATTN_LIB_SCHEDULE_MLA_MLARINGS_H

#include "../Tma/Rings.h"
#include "Mla.h"
#include "attn/Schedule/Kernel/DividedRows.h"

namespace mlir::attn {

inline constexpr Role kLatentLoad{"load", "load"};
inline constexpr Role kLatentScores{"scores", "scores"};
inline constexpr Role kLatentResults{"results", "results"};
inline constexpr Role kLatentWidener{"widener", "widener"};

/// The parts in which a block's probabilities are handed over, if they are.
inline constexpr llvm::StringLiteral kFrontHalf = "front", kBackHalf = "back";

/// Columns of the keys with a ring of their own, and one slot for those of the
/// queries, which has a channel of its own where TMA fills it. Queries that are
/// held in registers pass through the ring of the keys instead, before a tile's
/// first block.
struct LatentSlice {
  Ring ring, queries;
  /// The ring that the loads fill, where `ring` holds the same columns widened.
  Ring raw;
  int64_t first, columns;
  /// Where they begin in the tensors that the rings are of.
  int64_t firstInTensor, firstInQueries;
  bool isHeld = false;

  const Ring &getLoaded() const { return raw.buffer ? raw : ring; }
};

struct LatentRings {
  /// True if TMA copies keys, and queries; cp.async copies what it does not.
  bool byTma = false, queriesByTma = false;
  /// Slices of a block of keys in the order of their columns. The first ones
  /// are the values.
  SmallVector<LatentSlice, 3> slices;
  int64_t valueSlices = 0;
  /// Slices in the order in which they are loaded, widened and multiplied by
  /// queries. RingMaker::makeSlices lists the orders.
  SmallVector<unsigned, 3> order;
  /// Slices of the values in the order in which results read them. The one with
  /// the fewest slots is first, since it is then free first.
  SmallVector<unsigned, 3> valueOrder;
  /// Channels of the queries: one for each slice that TMA copies, or for all.
  SmallVector<Value, 3> queries;
  /// Channels of a block's probabilities and of a tile's last factors.
  Value handed, scaled;
  /// The block's probabilities, the factors by which they rescale results, and
  /// what results are multiplied by at the end.
  Value probabilities, factors, scales;
  /// Where warpgroups exchange numbers to find the units of rows, one slice
  /// after the other; null where results have none.
  Value units;

  ArrayRef<LatentSlice> getValues() const {
    return ArrayRef(slices).slice(0, valueSlices);
  }
  /// Returns the slices whose queries have a slot.
  SmallVector<const LatentSlice *, 3> listQueries() const;
};

/// Makes the memory and channels of a kernel.
LatentRings makeLatentRings(const TileWalk &tiles, MlaPlanAttr plan);

/// Returns how the warpgroups of the results divide rows and columns.
DividedRows getLatentResultRows(MlaPlanAttr plan, Value units);

/// Returns the parts of a slot of a ring that has them: columns that a
/// warpgroup has in registers at a time.
SmallVector<Value> listSlotParts(const AttentionTile &tile, Value slot);

/// True if the first half of a block's probabilities is handed over by itself.
/// attn-expand-pipeline then computes the second half while the products of the
/// first one run.
inline bool handsOnHalves(MlaPlanAttr plan) {
  return plan.getSoftmax() == SoftmaxPolicy::Lagged;
}

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_MLA_MLARINGS_H
