//===- KVPhases.h - The phases of a loop over key blocks --------*- C++ -*-===//
//
// Blocks are numbered in the order of execution: iteration t works on block
// end - 1 - t.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_KVPHASES_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_KVPHASES_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::attn {

/// Iterations [begin, end) with the same masks.
struct KVPhaseRange {
  KVPhase kind;
  Value begin;
  Value end;
};

/// True if both are the same value or the same constant.
bool isSameBound(Value a, Value b);

/// The phases of `loop`, which has `trips` iterations. A phase that cannot
/// exist is left out; any of them may be empty.
SmallVector<KVPhaseRange, 3> makePhaseRanges(OpBuilder &builder, KVLoopOp loop,
                                             Value trips);

/// Clones an op of the loop's body with the masks and the softmax policy of a
/// phase. Null where the phase does not need the op.
Operation *cloneForPhase(OpBuilder &builder, Operation *op, KVPhase phase,
                         IRMapping &mapping);

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_KVPHASES_H
