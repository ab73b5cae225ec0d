//===- BulkStores.h - Asynchronous stores of a thread -----------*- C++ -*-===//
//
// The ops by which one thread stores buffers to boxes of tensors, in the order
// that their groups ask for.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_BULKSTORES_H
#define ATTN_DIALECT_ATTN_IR_BULKSTORES_H

#include "mlir/IR/Builders.h"

namespace mlir::attn {

/// Starts a copy of `buffer` to the box of `map` at `start`, as a group of its
/// own of the executing thread. With `warpgroups` threads, one of each
/// warpgroup, each copies its part of the rows.
void startBulkStore(OpBuilder &builder, Location loc, Value buffer, Value map,
                    ValueRange start, int64_t warpgroups);

/// Waits until all copies that the executing thread started have read their
/// buffers.
void awaitBulkStores(OpBuilder &builder, Location loc);

/// True for a wait for copies that ends when they have read their buffers, and
/// may have written nothing.
bool awaitsOnlyReads(Operation *wait);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_BULKSTORES_H
