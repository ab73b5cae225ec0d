//===- KVLoopExpander.h - attn.kv_loop as pipelined loops -------*- C++ -*-===//
//
// Private to attn-expand-pipeline.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_KVLOOPEXPANDER_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_KVLOOPEXPANDER_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// Name of the attribute that tells the phase of a loop over key blocks.
inline constexpr llvm::StringLiteral kPhaseAttr("attn.phase");

/// What an expanded loop looks like, for remarks and statistics.
struct KVLoopSummary {
  int64_t stages = 0;
  /// Blocks between the start of a block's copies and its use.
  int64_t copiesAhead = 0;
  /// Steps of a block whose slices have the slots of a ring in turns; 0 if
  /// blocks have them.
  int64_t steps = 0;
  /// Groups of asynchronous copies that are incomplete at the same time.
  int64_t groupsInFlight = 0;
  SmallVector<KVPhase, 3> phases;
  /// The first copies start above a wait that stands before the loop.
  bool aboveWait = false;
};

/// Replaces `loop` by a prologue that starts the first copies, one scf.for for
/// each phase, and a wait for what is left. That of a loop with `above_wait`
/// goes above the wait in front of it where it can. An error if a block's rows
/// cannot be computed ahead.
FailureOr<KVLoopSummary> expandKVLoop(KVLoopOp loop);

/// True if several stages of the loop load into one ring.
bool hasSlices(KVLoopOp loop);

/// Replaces a loop with slices by a prologue that starts the copies of the
/// first steps, one scf.for for each phase, and a wait for what is left. An
/// error if slices are not read one after the other, or cannot be loaded ahead.
FailureOr<KVLoopSummary> expandSlicedKVLoop(KVLoopOp loop);

/// Replaces a `qk_ahead` loop by its first block, one scf.for for each phase
/// and the last PV, under a branch for loops without blocks. The online softmax
/// of the loops is expanded. An error if the body is no QK, softmax and PV, or
/// cannot have the sizes of `first`.
FailureOr<KVLoopSummary> expandRotatedKVLoop(KVLoopOp loop);

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_KVLOOPEXPANDER_H
