//===- RotatedLoopExpander.h - attn.kv_loop with QK ahead -------*- C++ -*-===//
//
// Private to attn-expand-pipeline.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_ROTATEDLOOPEXPANDER_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_ROTATEDLOOPEXPANDER_H

#include "KVLoopExpander.h"
#include "KVPhases.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::attn {

/// An accumulator that is awaited late: before its first use.
struct LateWait {
  OnlineSoftmaxOp softmax;
  /// QK, where the softmax may multiply scores once more.
  ProductOpInterface scores;
  ProductWaitOpInterface wait;
  /// Releases of the slots that the awaited product read.
  SmallVector<Operation *> releases;
  /// Acquires of the slots that the next product reads, if they go before.
  SmallVector<Operation *> acquires;
};

/// Where PV of the last block is in flight and the scores of the next one are
/// ready.
struct BehindState {
  /// The loop's values, the accumulator left out.
  SmallVector<Value> carried;
  Value scores, accumulator;
  /// Tokens of the slots that PV reads.
  SmallVector<Value> tokens;

  SmallVector<Value> flatten() const;
};

/// Warpgroups that multiply equally many keys of the first block: those below
/// `end` that no run before has.
struct FirstBlockRun {
  int64_t end;
  int64_t keys;
};

class RotatedExpander {
public:
  explicit RotatedExpander(KVLoopOp loop)
      : loop(loop), body(loop.getBody().front()), builder(loop),
        loc(loop.getLoc()) {}
  FailureOr<KVLoopSummary> run();

private:
  LogicalResult analyze();
  /// The two products, their waits and the softmax between them.
  LogicalResult findProducts();
  /// The ops of the three parts, and what passes between them.
  LogicalResult divide();
  /// Fills `runs` and what stands on the way of the first block's scores.
  LogicalResult analyzeFirst();
  LogicalResult followScores();
  LogicalResult checkOutputs();
  /// Adds the ops of the body that `value` is computed by; acquires go to
  /// `acquires`.
  void addSlice(Value value, DenseSet<Operation *> &part,
                SmallVectorImpl<ChannelUserOpInterface> &acquires);
  /// The releases of the slots that were acquired.
  SmallVector<Operation *>
  findReleases(ArrayRef<ChannelUserOpInterface> acquires);

  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, value, 32);
  }
  Value keyOf(Value iteration);
  void cloneAll(ArrayRef<Operation *> ops, IRMapping &mapping) {
    for (Operation *op : ops)
      builder.clone(*op, mapping);
  }
  /// A wait like `wait` for another accumulator in flight.
  ProductWaitOpInterface cloneWait(ProductWaitOpInterface wait, Value inFlight,
                                   int64_t pending);
  /// Starts QK. `mapping` holds the loop's arguments.
  void startQK(IRMapping &mapping) { cloneAll(partA, mapping); }
  /// Where QK and PV start together, warpgroups may take turns.
  void takeTurn() {
    if (std::optional<uint64_t> id = loop.getTurns())
      TurnTakeOp::create(builder, loc, *id);
  }
  void passTurn() {
    if (std::optional<uint64_t> id = loop.getTurns())
      TurnPassOp::create(builder, loc, *id);
  }
  /// Starts PV of the iteration whose inputs are `inputs`; returns the wait.
  LateWait startPV(ValueRange inputs, bool isFirst);
  /// Starts PV; `mapping` holds part C's inputs and gets its results.
  void startProduct(IRMapping &mapping, bool isFirst);
  /// What `emit` makes for each run's keys, under branches on the warpgroup if
  /// there are several.
  SmallVector<Value>
  emitByRun(TypeRange types,
            function_ref<SmallVector<Value>(int64_t keys)> emit);
  /// The first block up to its probabilities; what makeLoop carries.
  SmallVector<Value> emitFirstBlock();
  /// The second block, if there is one. Takes and returns what makeLoop does.
  SmallVector<Value> emitSecondBlock(KVPhase phase, ValueRange carried);
  /// Its product, softmax and what depends on them, for the first `keys` keys;
  /// the outputs.
  SmallVector<Value> emitFirstScores(int64_t keys, IRMapping mapping);
  /// Clones an op whose tiles have the block's columns with the first `keys`.
  void cloneNarrowed(Operation *op, int64_t keys, IRMapping &mapping);
  /// The wait for QK and, unless the softmax may read it again, the release of
  /// what it read.
  void waitForQK(int64_t pending, IRMapping &mapping, bool releases = true);
  /// The softmax and what stands around it; scores and accumulator are mapped.
  OnlineSoftmaxOp emitSoftmaxPart(KVPhase phase, IRMapping &mapping);
  /// The loop's values behind an iteration, the accumulator left out.
  SmallVector<Value> collectCarried(IRMapping &mapping);
  SmallVector<Value> lookupAll(ArrayRef<Value> values, IRMapping &mapping);
  SmallVector<Value> makeLoop(KVPhase phase, Value begin, Value end,
                              ValueRange carried);
  /// QK and softmax of an iteration and PV of the one before, which may be the
  /// first. Takes and returns what makeLoop does.
  SmallVector<Value> emitIteration(KVPhase phase, Value iteration,
                                   ValueRange carried, bool isFirst);
  /// Maps the loop's arguments but the accumulator, and the key.
  void bindIteration(Value iteration, ValueRange carried, IRMapping &mapping);
  /// An odd number of iterations with PV one block behind, or none. Takes and
  /// returns what makeLoop does.
  SmallVector<Value> makeBehindLoop(Value begin, Value end, ValueRange carried,
                                    bool isFirst);
  SmallVector<Value> emitBehindBlocks(Value begin, Value end,
                                      ValueRange carried, bool isFirst);
  /// Starts QK of `iteration` and PV of the one before, whose inputs are the
  /// last ones of `carried`, and waits for QK and all before it.
  BehindState startBehind(Value iteration, ValueRange carried, bool isFirst);
  /// The softmax of `iteration`; what makeLoop carries.
  SmallVector<Value> emitBehindSoftmax(Value iteration,
                                       const BehindState &state);
  /// Releases the slots that an awaited PV has read.
  SmallVector<Operation *> releaseTokens(ArrayRef<Value> tokens);
  SmallVector<KVPhase> emitBlocks(SmallVector<Value> &carried);
  LogicalResult finishWaits();

  KVLoopOp loop;
  Block &body;
  OpBuilder builder;
  Location loc;
  ProductOpInterface qk, pv;
  ProductWaitOpInterface qkWait, pvWait;
  OnlineSoftmaxOp softmax;
  /// Ops of the three parts in order. Releases stand apart: partA and partC end
  /// with a product, and `releases` follow the product's wait.
  SmallVector<Operation *> partA, partB, partC, releasesA, releasesC;
  /// Acquires of the slots that part C reads, and whether part B has them.
  SmallVector<ChannelUserOpInterface> acquiresC;
  bool early = false;
  /// What part C takes from part B or from the loop's arguments.
  SmallVector<Value> inputsC;
  /// The position of the accumulator among the carried values.
  unsigned accumulator = 0;
  Value trips, lastBlock;
  SmallVector<LateWait> lateWaits;
  /// Softmaxes whose accumulator stays in flight.
  SmallVector<OnlineSoftmaxOp> behind;
  /// Empty unless the first block has sizes of its own.
  SmallVector<FirstBlockRun> runs;
  /// With such sizes: QK, its wait and the ops of part B that follow from them,
  /// those of them that follow from the softmax, and values with as many
  /// columns as the block has keys.
  DenseSet<Operation *> dependents, behindSoftmax;
  DenseSet<Value> narrowed;
  /// Ops of part B that dependents need, and values that leave them.
  DenseSet<Operation *> needed;
  llvm::SetVector<Value> outputs;
};

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_ROTATEDLOOPEXPANDER_H
