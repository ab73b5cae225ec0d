//===- RingPositions.h - Slots of rings from one iteration to the next ----===//
//
// Slots of a ring. In a loop a slot is known by its distance from the loop's
// cursor, the carried value or counter from which the slot's index is computed.
// An op that says the distance is believed, of others the index says it
// (RingIndex.h). An access remembers (cursor, distance); the end of an
// iteration turns distance d into d - 1; at the entry and the exit of a loop
// the cursor's initial value and result take its place, so that the knowledge
// passes from one loop to the next and from slots with a constant index to the
// first loop. Two slots are different if their cursors are the same and their
// distances differ modulo the ring's depth. Otherwise they may be the same.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_MEMORY_RINGPOSITIONS_H
#define ATTN_LIB_ANALYSIS_MEMORY_RINGPOSITIONS_H

#include "attn/Analysis/Memory/SharedAccess.h"

namespace mlir::attn {

/// Where in its ring a slot is: `distance` slots after `cursor`, or unknown.
struct RingPosition {
  Value cursor;
  int64_t distance = 0;
};

/// The region of a loop that rings are walked by.
Region &getRingBody(LoopLikeOpInterface loop);

/// Follows accesses to slots through loops.
class RingPositions {
public:
  /// Where a slot is, as its op or its index says.
  RingPosition getPosition(SlotOp slot);
  /// Where the slot of an access is inside of a loop that begins, in the next
  /// iteration of one, and behind one, whose counter may make its index known.
  RingPosition enter(LoopLikeOpInterface loop, const SharedAccess &access,
                     RingPosition position);
  RingPosition iterate(LoopLikeOpInterface loop, const SharedAccess &access,
                       RingPosition position);
  RingPosition leave(LoopLikeOpInterface loop, SharedAccess &access,
                     RingPosition position);

private:
  Value getCursor(SlotOp slot);
  Value getRingCursor(LoopLikeOpInterface loop, Value ring);
  Value getRingBase(LoopLikeOpInterface loop, Value ring);

  /// What has been found, by slot, and by loop and ring.
  DenseMap<Operation *, Value> cursors;
  DenseMap<std::pair<Operation *, Value>, Value> bases;
};

} // namespace mlir::attn

#endif // ATTN_LIB_ANALYSIS_MEMORY_RINGPOSITIONS_H
