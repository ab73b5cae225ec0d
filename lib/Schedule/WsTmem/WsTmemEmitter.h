//===- WsTmemEmitter.h - What makes the kernel of ws_tmem -------*- C++ -*-===//
//
// The CTA's two tiles of 128 queries walk the blocks that one of them needs. A
// channel t0 or t1 guards the tensor memory of a tile: its scores S, its
// probabilities P, which take the second half of the scores' columns, and its
// results O. The thread that multiplies hands it on when S of a block is there;
// since it has started PV of the block before in front of that QK, and commits
// cover all that was started, O is then at rest as well. The tile's warpgroup
// reads S, rescales O where a maximum has grown, writes P and hands it back. So
// n blocks are n + 1 rounds: the last one hands over O alone.
//
// That QK of a block may overwrite what PV of the block before still reads as P
// rests on products of one thread being executed in their order
// (attn.tcgen05.mma).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WSTMEM_WSTMEMEMITTER_H
#define ATTN_LIB_SCHEDULE_WSTMEM_WSTMEMEMITTER_H

#include "../Tma/RingEmitter.h"
#include "WsTmem.h"
#include <functional>

namespace mlir::attn {

inline constexpr Role kLoader{"load", "load"};
inline constexpr Role kMultiplier{"mma", "mma"};
inline constexpr Role kSoftmaxes[kTmemTiles] = {{"softmax0", "softmax0"},
                                                {"softmax1", "softmax1"}};

/// The tensor memory of a tile and the channel that guards it.
struct TensorTile {
  Value channel;
  /// Scores, the probabilities in their place, and results.
  Value scores, probabilities, results;
};

/// A statement of an attn.issue_loop.
struct IssueStatement {
  std::string name;
  int64_t skew;
  SmallVector<StringRef> uses;
  /// Makes the body from its arguments.
  std::function<void(ValueRange)> emit;
};

/// The order of a thread that issues work for the blocks of a tile.
struct IssueOrder {
  StringRef role;
  Value trips;
  SmallVector<Value> channels, cursors;
  SmallVector<StringRef> slots;
  SmallVector<int64_t> slotChannels;
  SmallVector<IssueStatement> statements;
};

class WsTmemEmitter : RingEmitter {
public:
  WsTmemEmitter(KernelContext &context, WsTmemPlanAttr plan)
      : RingEmitter(context, {kTmemRows, plan.getBlockN(), plan.getOrder(),
                              plan.getGroupHeads(), /*cluster=*/1,
                              /*dynamic=*/false, kTmemTiles}),
        plan(plan) {}
  LogicalResult run();

private:
  void makeRings();
  void makeTensorTile(int64_t number);
  BufferType tensorType(ArrayRef<int64_t> shape, Type elementType);
  /// The rings of K and V: one or two channels.
  SmallVector<Value> getKeyChannels();
  SmallVector<Value> startKeyCursors(StringRef role);
  /// Slot numbers of K and V in an order of issue.
  void addKeySlots(IssueOrder &order);
  /// The loop, and the cursors behind it.
  SmallVector<Value> emitIssueLoop(const IssueOrder &order);
  Value emitSlot(const Ring &ring, Value index);
  Value emitBlocks() {
    return b.createOrFold<arith::SubIOp>(walk.end, walk.begin);
  }

  static LogicalResult toResult(TileLoopOp loop) {
    return success(static_cast<bool>(loop));
  }
  LogicalResult emitLoader();
  SmallVector<Value> emitLoaderTile(ValueRange cursors);
  LogicalResult emitMultiplier();
  SmallVector<Value> emitMultiplierTile(ValueRange cursors);
  LogicalResult emitSoftmax(int64_t number);
  FailureOr<SmallVector<Value>> emitSoftmaxTile(int64_t number, Value cursor);
  /// Lets the tile walk the blocks of both, with its own masks.
  void widenBounds();
  KVLoopOp emitSoftmaxLoop(int64_t number, Value cursor);
  LogicalResult emitSoftmaxBlock(int64_t number, Value scale, Value key,
                                 ValueRange carried);
  /// Behind a step, the path on which results are multiplied by its factor.
  void emitRescale(const TensorTile &tile, Value factor, Value key);
  /// What is in the columns of tensor memory from `first` on.
  Value emitTensorLoad(Value buffer, int64_t first, int64_t columns);
  Value emitColumns(Value buffer, int64_t first, int64_t columns);
  /// The results of the tile, zeros if it has no blocks, and the cursor behind.
  std::pair<Value, Value> emitTileResults(int64_t number, Value cursor);

  WsTmemPlanAttr plan;
  Ring q, k, v;
  TensorTile tiles[kTmemTiles];
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSTMEM_WSTMEMEMITTER_H
