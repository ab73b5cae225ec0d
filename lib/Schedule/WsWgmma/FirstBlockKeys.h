//===- FirstBlockKeys.h - Keys that a tile's first block needs --*- C++ -*-===//
//
// Tiles walk blocks of keys from the last to the first. Of the first block that
// they walk, a causal mask leaves the first warpgroup's rows fewer keys than
// the last one's, and the end of the sequence may leave all of them fewer.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WSWGMMA_FIRSTBLOCKKEYS_H
#define ATTN_LIB_SCHEDULE_WSWGMMA_FIRSTBLOCKKEYS_H

#include "attn/Planner/Facts/ProblemFacts.h"

namespace mlir::attn {

/// Rows of a warpgroup.
inline constexpr int64_t kGroupRows = 64;

/// What all tiles of a problem have in common.
struct FirstBlockSizes {
  /// For each warpgroup, the most keys of the first block that its rows keep in
  /// some tile, rounded up to the depth of a matrix instruction.
  SmallVector<int64_t, 3> keys;
  /// The phase of the block walked next, if it is the same in all tiles that
  /// have two.
  std::optional<KVPhase> second;
  /// The part of all products that are not multiplied for it, 0 to 1.
  double saved = 0;
  /// The same part of the first blocks alone.
  double savedOfFirst = 0;
};

/// The sizes for a plan. Nothing if the plan asks for whole blocks or puts keys
/// in the order of quads, of which the first columns are not the first keys, if
/// sequences are packed, if a length that decides is no constant, or if each
/// warpgroup needs a whole first block in some tile.
std::optional<FirstBlockSizes> findFirstBlock(const ProblemFacts &facts,
                                              WsWgmmaPlanAttr plan);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSWGMMA_FIRSTBLOCKKEYS_H
