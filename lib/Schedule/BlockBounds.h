//===- BlockBounds.h - Which keys a tile of queries needs -------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_BLOCKBOUNDS_H
#define ATTN_LIB_SCHEDULE_BLOCKBOUNDS_H

#include "attn/Schedule/KernelContext.h"

namespace mlir::attn {

/// The blocks of keys that a tile of queries walks, and the mask's bounds.
struct BlockBounds {
  /// As the operands of attn.kv_loop, i32.
  Value begin, fullBegin, fullEnd, end;
  /// As the operands of attn.apply_mask, i32; null where there is no bound.
  Value lower, upper;
};

/// Emits the bounds of the tile of `blockM` queries from `row` on. `queries`
/// and `keys` are the lengths of the sequence; any of them may be 0.
BlockBounds emitBlockBounds(KernelContext &context, Value row, Value queries,
                            Value keys, int64_t blockM, int64_t blockN);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_BLOCKBOUNDS_H
