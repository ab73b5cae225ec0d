//===- RingFacts.h - What rings that TMA fills need and take ----*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_TMA_RINGFACTS_H
#define ATTN_LIB_SCHEDULE_TMA_RINGFACTS_H

#include "attn/Planner/Facts/ProblemFacts.h"

namespace mlir::attn {

/// Columns of a slot for rows of `dim` elements: the map's boxes, whole spans
/// of a swizzle, pad them with zeros.
int64_t getSlotColumns(const ProblemFacts &facts, int64_t dim);
/// Columns of the slots of Q and K, and of V as it is loaded.
inline int64_t getKeyColumns(const ProblemFacts &facts) {
  return getSlotColumns(facts, facts.headDim);
}
inline int64_t getValueColumns(const ProblemFacts &facts) {
  return facts.hasTransposedValues() ? facts.valueDim
                                     : getSlotColumns(facts, facts.valueDim);
}

/// What results pass through on their way to global memory.
enum class ResultBuffer {
  /// Nothing, or what the epilogue finds: the plan says so, or TMA cannot tell
  /// where their rows end or how they lie.
  None,
  /// Memory of their own, so that the next queries are loaded early.
  Own,
  /// The slot of the tile's queries, which is free when the copy has read it.
  Queries
};

/// Slots of the channel by which the loader hands on what a counter deals.
inline constexpr int64_t kTileStages = 2;
/// Bytes of such a slot: an index, in an array of a multiple of 16 bytes, and
/// an mbarrier for each role.
inline int64_t getTileSlotBytes(int64_t roles) { return 8 + 8 * roles; }
/// Bytes of a slot whose index is a response.
inline int64_t getResponseSlotBytes(int64_t roles) { return 16 + 8 * roles; }

/// Returns the rows of a query in tiles that pack the heads of a group: the
/// next power of two, so that boxes are of whole queries; 1 without
/// `packHeads`.
int64_t countQueryRows(const ProblemFacts &facts, bool packHeads);

/// Keys of a copy of `rows` keys from a multiple of `rows` on: as many as are
/// always in one page.
int64_t getBoxRows(const ProblemFacts &facts, int64_t rows);

/// Bytes of shared memory that `rows` rows of results, with so many columns
/// each, take on their way.
int64_t getResultBytes(const ProblemFacts &facts, int64_t rows,
                       int64_t columns);
/// True if the slot of as many rows of queries can hold them.
bool fitQuerySlot(const ProblemFacts &facts, int64_t rows);

/// Why no tensor map can describe a tensor; nothing if one can.
std::optional<std::string> findUnmappable(const TensorFacts &tensor);

/// True if TMA may store results: a packed sequence ends before the tensor
/// does, and threads store results with scales.
bool canStoreByTma(const ProblemFacts &facts);

/// True if blocks of so many keys need no mask: all keys of each exist and are
/// allowed.
bool hasFullBlocks(const ProblemFacts &facts, int64_t blockN);

/// True if TMA copies keys row by row: boxes have more rows than a page.
bool gathersKeys(const ProblemFacts &facts);

/// Refuses problems whose Q, K and V no tensor map describes; `gathers` says
/// whether the schedule copies keys row by row where it has to.
llvm::Error checkMappable(llvm::StringRef schedule, const ProblemFacts &facts,
                          bool gathers = false);
/// What of the problem TMA does not support, if there is something.
std::optional<std::string> findUnmappable(const ProblemFacts &facts,
                                          bool gathers = false);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_TMA_RINGFACTS_H
