//===- BlockCount.h - How many blocks of keys tiles walk --------*- C++ -*-===//

#ifndef ATTN_LIB_PLANNER_FACTS_BLOCKCOUNT_H
#define ATTN_LIB_PLANNER_FACTS_BLOCKCOUNT_H

#include "attn/Planner/Facts/ProblemFacts.h"
#include <algorithm>

namespace mlir::attn {

/// Extents that estimates go by: what is known, and the assumed ones of
/// PlanModel.h where only the launch knows.
struct TypicalExtents {
  double batch, heads;
  /// Of a sequence. Packed ones share the rows that there are.
  double queries, keys;
};
TypicalExtents getTypicalExtents(const ProblemFacts &facts);

/// Blocks of `blockN` keys that an average tile of `blockM` queries walks under
/// the problem's mask and key_range; an estimate, at least 1.
double countBlocks(const ProblemFacts &facts, double queries, double keys,
                   double blockM, double blockN);

/// Returns the blocks of a run where those of a tile are dealt to `runs` runs:
/// none reads less than a block.
inline double countRunBlocks(double blocks, double runs) {
  return runs <= 1 ? blocks : std::max(1.0, blocks / runs);
}

/// The blocks of these that keep all tests of a mask that is bounded on the
/// left, or of a function beside a key_range: those at both ends of what a tile
/// sees. 0 for others, for which
/// estimates count the block at the diagonal in the costs of a tile.
double countWindowEnds(const ProblemFacts &facts, double queries, double keys,
                       double blockM, double blockN);

} // namespace mlir::attn

#endif // ATTN_LIB_PLANNER_FACTS_BLOCKCOUNT_H
