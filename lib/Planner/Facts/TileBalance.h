//===- TileBalance.h - How evenly a static order deals tiles ----*- C++ -*-===//
//
// CTAs that take tiles of different lengths in turns of alternating direction
// end at different times. Which heads go together decides by how much.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PLANNER_FACTS_TILEBALANCE_H
#define ATTN_LIB_PLANNER_FACTS_TILEBALANCE_H

#include "attn/Planner/Facts/ProblemFacts.h"
#include "attn/Target/TargetTable.h"

namespace mlir::attn {

/// The work of the CTA that has most, over the mean of all `ctas`, when groups
/// of `groupHeads` heads (0: all) follow each other, the tiles of a group
/// descend in length or, in every second group from the last one on, ascend,
/// and CTAs take them in turns of alternating direction. None where a length is
/// not known.
std::optional<double> getImbalance(const ProblemFacts &facts, int64_t blockM,
                                   int64_t blockN, int64_t groupHeads,
                                   int64_t ctas);

/// The rounds of tiles that a launch of `waves` times `ctas` tiles takes: whole
/// ones, or as many as the CTA that has most of them where the longest come
/// first and their lengths are known.
double countRounds(const ProblemFacts &facts, TileOrder order, double waves,
                   int64_t blockM, int64_t blockN, int64_t groupHeads,
                   int64_t ctas);

/// True if key_range looks for keys by their numbers, so that tiles of a head
/// have any number of blocks, which take a while to find.
bool looksForKeys(const ProblemFacts &facts);

/// The number of heads that deals tiles most evenly among those whose keys and
/// values take half of L2, since each half of the chip may hold a copy of its
/// own, or somewhat more; where sequences are packed, as many as take half of
/// L2. Where a counter deals tiles, so that they are even in any case, as many
/// of these as have a tile for each CTA; where key_range looks for keys, as
/// many as take half of L2 with the keys that a tile has. 0 for all heads.
int64_t chooseGroupHeads(const ProblemFacts &facts, const TargetRow &target,
                         int64_t blockM, int64_t blockN, int64_t ctas,
                         bool isDealt = false);

/// As many heads as L2 holds with the keys of all batches, in equal groups:
/// tiles of a list are in the order of their lengths through all batches. 0 for
/// all heads.
int64_t chooseListedHeads(const ProblemFacts &facts, const TargetRow &target);

} // namespace mlir::attn

#endif // ATTN_LIB_PLANNER_FACTS_TILEBALANCE_H
