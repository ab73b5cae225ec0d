//===- HandleFlow.h - Where cursors, tokens and accumulators go -*- C++ -*-===//
//
// Cursors, tokens and accumulators in flight are handles: each stands for a
// position or a right that control flow passes on. Here is how a handle gets
// from an operand of a loop, a branch or its terminator to the values behind
// it, and in which order a block uses it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_FLOW_HANDLEFLOW_H
#define ATTN_ANALYSIS_FLOW_HANDLEFLOW_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// True for !attn.cursor, !attn.token and !attn.inflight.
bool isHandle(Type type);

/// For each operand through which a region op passes a handle on, the block
/// arguments and results that may receive it.
using HandleFlow = llvm::DenseMap<OpOperand *, SmallVector<Value>>;

/// The flow of all handles below `root`.
HandleFlow collectHandleFlow(Operation *root);

/// The uses of a value at or below one op of a block.
struct UseGroup {
  /// The op in the block.
  Operation *op = nullptr;
  /// Uses by `op` itself, in the order of its operands.
  SmallVector<OpOperand *, 2> direct;
  /// Uses by ops in its regions.
  SmallVector<OpOperand *, 2> nested;
};

/// The uses of `value` in and below `block`, in the block's order.
SmallVector<UseGroup> groupUses(Value value, Block *block);

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_FLOW_HANDLEFLOW_H
