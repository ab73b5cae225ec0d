//===- StageCopies.h - Copies of attn.stage for other blocks ----*- C++ -*-===//
//
// Private to attn-expand-pipeline: what a stage of attn.kv_loop loads, started
// in another iteration than the one that reads it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_STAGECOPIES_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_STAGECOPIES_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::attn {

/// An attn.stage and what is needed to start its copies for another block.
struct Stage {
  StageOp op;
  /// Ops of the body that compute the source and the row, in order.
  SmallVector<Operation *> slice;
  /// The body's first and last op that touches the slot.
  Operation *first = nullptr;
  Operation *last = nullptr;
  /// Read before the softmax: K rather than V.
  bool early = true;
};

/// The stages of the body, in order; fails with a diagnostic where a block's
/// rows cannot be computed ahead.
FailureOr<SmallVector<Stage>> collectStages(KVLoopOp loop);

/// Starts the copies of `stage` to `dest` for the block whose first key is
/// mapped in `mapping`, to which the ops that compute its rows are added. With
/// `blockExists` all keys of the block do.
void startCopies(OpBuilder &builder, KVLoopOp loop, const Stage &stage,
                 Value dest, IRMapping &mapping, bool blockExists);

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_STAGECOPIES_H
