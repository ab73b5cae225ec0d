//===- RingIndex.h - Which slot of a ring an index names --------*- C++ -*-===//
//
// An index is a base, such as a loop's counter or a value that a loop carries,
// plus a number, both modulo the ring's depth: i % 3, (i + 2) % 3, or a carried
// slot to which one is added and which starts over behind the last one.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_MEMORY_RINGINDEX_H
#define ATTN_LIB_ANALYSIS_MEMORY_RINGINDEX_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// A number modulo the depth of a ring: `distance` more than `base`, or
/// `distance` alone.
struct RingIndex {
  Value base;
  int64_t distance = 0;
};

/// Slots of the slot's ring.
int64_t getDepth(SlotOp slot);

/// The remainder of a number by a ring's depth, not negative.
int64_t wrap(int64_t number, int64_t depth);

/// What `index` is modulo `depth`. What it is computed from by other ops than
/// additions of constants and remainders by the depth is its base. Loops'
/// counters are taken not to overflow.
RingIndex getRingIndex(Value index, int64_t depth);

/// What a loop's counter or a value that it carries is in the first iteration,
/// modulo `depth`; nothing for other values.
std::optional<RingIndex> getFirstRingIndex(Value argument, int64_t depth);

/// A loop's only counter; null if it has none or several.
Value getCounter(LoopLikeOpInterface loop);

/// How much more the counter is in the next iteration, if that is a constant.
std::optional<int64_t> getCounterStep(LoopLikeOpInterface loop);

/// What the counter of a loop with constant bounds would be in the iteration
/// behind the last one.
std::optional<int64_t> getCounterEnd(LoopLikeOpInterface loop);

} // namespace mlir::attn

#endif // ATTN_LIB_ANALYSIS_MEMORY_RINGINDEX_H
