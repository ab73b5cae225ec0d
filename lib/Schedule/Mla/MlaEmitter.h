//===- MlaEmitter.h - What makes kernels of mla with own scores -*- C++ -*-===//
//
// Three partitions walk the same tiles and, in each, the same blocks of keys
// from the last to the first. A warpgroup loads, by cp.async, so that pages and
// lengths are what they are elsewhere. One computes scores and probabilities.
// Two hold the results, half of the columns each.
//
// A slot of the channel k goes from the loads to the scores, from there to the
// results, whose values are its first columns, and back. The channel p hands
// over probabilities, in shared memory, and the factor by which results are
// rescaled first; it has one slot, so that the scores of the next block and
// their softmax stand beside the product of this one. The channel scale hands
// over what results are multiplied by at the end.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_MLA_MLAEMITTER_H
#define ATTN_LIB_SCHEDULE_MLA_MLAEMITTER_H

#include "../Copied/CopiedExtents.h"
#include "../Tma/RingEmitter.h"

namespace mlir::attn {

inline constexpr Role kLatentLoad{"load", "load"};
inline constexpr Role kLatentScores{"scores", "scores"};
inline constexpr Role kLatentResults{"results", "results"};

/// Registers that a thread asks for: 128 x (64 + 128 + 2 x 160) = 65536.
inline constexpr int64_t kLatentLoadRegisters = 64;
inline constexpr int64_t kLatentScoreRegisters = 128;
inline constexpr int64_t kLatentResultRegisters = 160;

class MlaEmitter : RingEmitter {
public:
  MlaEmitter(KernelContext &context, MlaPlanAttr plan);
  LogicalResult run();

private:
  void makeRings();
  LogicalResult emitLoad();
  SmallVector<Value> emitLoadTile(ValueRange cursors);
  LogicalResult emitScoreRole();
  FailureOr<SmallVector<Value>> emitScoreTile(ValueRange cursors);
  /// The loop over the tile's blocks, which carries m, l and the cursors of k
  /// and p; null if it failed.
  KVLoopOp emitScoreLoop(Value scale, ValueRange cursors);
  LogicalResult emitScoreBlock(Value scale, Value key, ValueRange carried);
  LogicalResult emitResultRole();
  SmallVector<Value> emitResultTile(ValueRange cursors);
  /// The results behind a block, and the cursors of k and p.
  SmallVector<Value> emitResultBlock(ValueRange carried);
  /// The loop over the tile's blocks for who needs no masks; `body` is given
  /// the block's number from the last one on.
  scf::ForOp
  emitBlocks(ValueRange inits,
             function_ref<SmallVector<Value>(Value, ValueRange)> body);
  /// `results` times the factors of their rows where some factor is not 1.
  Value emitRescale(Value factor, Value results);
  Value start(Value channel, StringRef role) {
    return CursorStartOp::create(b, channel, role);
  }
  Value next(Value cursor, Value channel) {
    return CursorAdvanceOp::create(b, cursor, channel);
  }
  /// Waits for the slot of a channel without a ring; its token.
  Value await(Value channel, Value cursor, StringRef role) {
    return ChannelAcquireOp::create(b, channel, cursor, role).getToken();
  }

  MlaPlanAttr plan;
  CopiedExtents extents;
  Ring ring;
  Value qChannel, pChannel, scaleChannel;
  /// The tile's queries, the block's probabilities, the factors of their rows
  /// and those of the results.
  Value q, probabilities, factors, scales;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_MLA_MLAEMITTER_H
