//===- EmitBlockBounds.h - A kernel finds the keys of a tile ----*- C++ -*-===//

#ifndef ATTN_SCHEDULE_KERNEL_EMITBLOCKBOUNDS_H
#define ATTN_SCHEDULE_KERNEL_EMITBLOCKBOUNDS_H

#include "attn/Dialect/Attn/IR/BlockBounds.h"
#include "attn/Schedule/Core/KernelContext.h"

namespace mlir::attn {

/// Bounds as i32 values; null where the mask has none.
using BlockBounds = BlockBoundsOf<Value>;

/// Emits the bounds of the tile of `blockM` queries from `row` on. `queries`
/// and `keys` are the lengths of the sequence; any of them may be 0. With
/// `group` above 1 rows are those of groups of heads.
BlockBounds emitBlockBounds(KernelContext &context, Value row, Value queries,
                            Value keys, int64_t blockM, int64_t blockN,
                            int64_t group = 1);

/// Narrows the bounds to share `index` of `count`: as many blocks as in any
/// other share, or one more.
void emitShare(KernelContext &context, BlockBounds &bounds, Value index,
               int64_t count);

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_KERNEL_EMITBLOCKBOUNDS_H
