//===- WgmmaEmitter.h - Blocks that wgmma multiplies ------------*- C++ -*-===//
//
// The loop over the blocks of a tile: the products of a block with the softmax
// between them, whoever loads their operands. Blocks are walked from the last
// keys to the first.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WGMMA_WGMMAEMITTER_H
#define ATTN_LIB_SCHEDULE_WGMMA_WGMMAEMITTER_H

#include "../Tma/RingEmitter.h"

namespace mlir::attn {

/// How the products of a block are made.
struct ProductPlan {
  bool qkAhead = false;
  SoftmaxPolicy softmax;
  /// The rows of K are loaded in the order of quads (attn.apply_mask).
  bool keyQuads = false;
};

/// What the loop over the blocks of a tile reads.
struct BlockOperands {
  /// The role that computes.
  StringRef role;
  const Ring &keys, &values;
  /// The slot of the queries, and the exponents of two of a unit of score.
  Value queries, scale;
  /// Where the partition itself transposes each slot of the values to, as the
  /// role `transposer`; null if PV reads their slots.
  Value transposed = Value();
  StringRef transposer = {};
};

/// What the loop over the blocks of a tile carries.
struct BlockState {
  RunningState running;
  /// Cursors of who reads K and V.
  Value keys, values;
  /// Cursors of who loads them where that is the same partition; else null.
  Value keyLoads = Value(), valueLoads = Value();

  BlockState(RunningState running, Value keys, Value values)
      : running(running), keys(keys), values(values) {}
  /// The state as the loop has it, in the order of list().
  explicit BlockState(ValueRange carried);
  SmallVector<Value> list() const;
};

class WgmmaEmitter : protected RingEmitter {
protected:
  WgmmaEmitter(KernelContext &context, const TilePlan &tilePlan,
               const ProductPlan &productPlan)
      : RingEmitter(context, tilePlan), productPlan(productPlan) {}

  /// The loop over the blocks of the tile. `between`, called between softmax
  /// and PV with the first key of the block, may change what the schedule
  /// carries for itself. Null after a diagnostic.
  KVLoopOp
  emitBlocks(const BlockOperands &operands, const BlockState &init,
             function_ref<void(Value, BlockState &)> between = nullptr);

  const ProductPlan productPlan;

private:
  /// Copies the slot of the values at `cursor` to where PV reads them.
  void emitTransposition(const BlockOperands &operands, Value cursor);
  /// One block; what the loop carries.
  FailureOr<BlockState>
  emitBlock(const BlockOperands &operands, Value key, const BlockState &state,
            function_ref<void(Value, BlockState &)> between);
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WGMMA_WGMMAEMITTER_H
