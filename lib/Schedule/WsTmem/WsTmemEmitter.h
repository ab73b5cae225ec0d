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

/// The parts in which probabilities are handed on.
inline constexpr StringRef kFront = "front", kBack = "back";
inline constexpr StringRef kParts[] = {kFront, kBack};

/// The slots of an order of issue that are tensor memory: of a tile, or of its
/// scores, and of its probabilities and results.
inline constexpr StringRef kTileSlots[] = {"t0", "t1"};
inline constexpr StringRef kHandedSlots[] = {"p0", "p1"};

/// The tensor memory of a tile and the channels that guard it.
struct TensorTile {
  /// Guards all of it, or the scores alone.
  Value channel;
  /// Guards probabilities and results where these have columns of their own;
  /// else null.
  Value handed;
  Value scores, probabilities, results;
  /// Whose turn it is with the queries' memory where results take it, the
  /// loader's or the softmax's; else null.
  Value stored;
  /// What guards probabilities and results.
  Value getLast() const { return handed ? handed : channel; }
  SmallVector<Value> getChannels() const {
    if (handed)
      return {channel, handed};
    return {channel};
  }
};

/// A statement of an attn.issue_loop.
struct IssueStatement {
  std::string name;
  /// Whether it has one iteration less than the others, since the first one
  /// stands in front of the loop.
  bool isLess;
  SmallVector<StringRef> uses;
  /// The part of each of them, or none for whole slots.
  SmallVector<StringRef> parts;
  /// Makes the body from its arguments.
  std::function<void(ValueRange)> emit;
};

/// The order of a thread that issues work for the blocks of a tile, behind what
/// it issues for the first one.
struct IssueOrder {
  StringRef role;
  Value trips;
  SmallVector<Value> channels, cursors;
  SmallVector<StringRef> slots;
  SmallVector<int64_t> slotChannels;
  SmallVector<IssueStatement> statements;
  /// The slot that is released a step later, behind which statement, and its
  /// token in front of the first step; null if none is.
  StringRef heldSlot, releasedBehind;
  Value held;
  /// A slot of a channel of its own.
  void addSlot(StringRef name, Value channel) {
    slots.push_back(name);
    slotChannels.push_back(channels.size());
    channels.push_back(channel);
  }
};

class WsTmemEmitter : RingEmitter {
public:
  WsTmemEmitter(KernelContext &context, WsTmemPlanAttr plan)
      : RingEmitter(context, getTilePlan(context.facts, plan)), plan(plan),
        resultBuffer(getTmemResultBuffer(context.facts, plan, context.target)) {
  }
  LogicalResult run();

private:
  static TilePlan getTilePlan(const ProblemFacts &facts, WsTmemPlanAttr plan);
  void makeRings();
  void makeTensorTile(int64_t number);
  void makeDealer();
  int64_t getFront() const { return getFrontKeys(plan); }
  /// Tells if softmaxes hand slots of a tile's channel on in parts.
  bool hasParts(int64_t number, Value channel) const {
    return getFront() != 0 && channel == tiles[number].getLast();
  }
  BufferType tensorType(ArrayRef<int64_t> shape, Type elementType);
  /// The rings of K and V: one or two channels.
  SmallVector<Value> getKeyChannels();
  SmallVector<Value> startKeyCursors(StringRef role);
  /// Slot numbers of K and V in an order of issue.
  void addKeySlots(IssueOrder &order);
  /// The loop, and the cursors behind it, with the token of what is held.
  SmallVector<Value> emitIssueLoop(const IssueOrder &order);
  Value emitSlot(const Ring &ring, Value index);
  /// An order for all blocks of the walk.
  IssueOrder startOrder(StringRef role, ValueRange cursors);
  /// What `emit` makes of cursors, if the walk has a block.
  SmallVector<Value>
  emitIfBlocks(ValueRange cursors,
               function_ref<SmallVector<Value>(ValueRange)> emit);

  static LogicalResult toResult(TileLoopOp loop) {
    return success(static_cast<bool>(loop));
  }
  LogicalResult emitLoader();
  SmallVector<Value> emitLoaderTile(ValueRange cursors);
  LogicalResult emitMultiplier();
  SmallVector<Value> emitMultiplierTile(ValueRange cursors);
  /// What `emit` makes for one of the walk's blocks, if the tile computes it;
  /// `emit` gets whether the tile has computed another one.
  void emitIfOwn(const ClusterTile &own, Value iteration,
                 function_ref<void(Value)> emit);
  /// The tile `number` of the CTA's.
  ClusterTile emitOwnTile(int64_t number);
  /// The product of queries and the keys in slot `index`.
  void emitScoreProduct(int64_t number, Value queryTile, Value index);
  void addScores(IssueOrder &order, int64_t number, Value queryTile,
                 const ClusterTile &own);
  /// Adds the products of a tile's probabilities, in the parts that are handed
  /// on, after those of `before` blocks, of none if it is null.
  void addResults(IssueOrder &order, int64_t number, const ClusterTile &own,
                  Value before);
  /// The product of `depth` probabilities from `first` on and the values in
  /// slot `index`; `some` says whether results are added up.
  void emitResultProduct(int64_t number, Value index, Value some, int64_t first,
                         int64_t depth);
  /// Acquires a slot of a tile, all its parts; its token.
  Value acquireTile(int64_t number, Value channel, Value cursor);
  /// Takes the results back behind a tile, where they have a channel of their
  /// own.
  void emitResultRounds(MutableArrayRef<Value> cursors);
  LogicalResult emitSoftmax(int64_t number);
  FailureOr<SmallVector<Value>> emitSoftmaxTile(int64_t number,
                                                ValueRange cursors);
  /// Lets the tile walk the blocks of both, with its own masks.
  void widenBounds();
  /// Hands `count` slots of a tile on as they are, none if it is null; the
  /// cursors behind them.
  SmallVector<Value> emitSkips(int64_t number, Value count, ValueRange cursors);
  /// Hands a slot on, in all the parts that the channel has.
  void emitReleaseAll(int64_t number, Value channel, Value token);
  KVLoopOp emitSoftmaxLoop(int64_t number, ValueRange cursors);
  /// Hands a block's probabilities on, behind the rescale by `factor` where
  /// that waits for their columns; the cursors behind it.
  SmallVector<Value> emitProbabilities(int64_t number, Value p, Value factor,
                                       Value token, Value key,
                                       ValueRange cursors);
  /// The same under a policy that votes on the sums of what it has stored.
  SmallVector<Value> emitBetProbabilities(int64_t number, Value p, Value factor,
                                          Value standing, Value token,
                                          Value key, ValueRange cursors);
  bool betsOnSums() { return plan.getSoftmax() == SoftmaxPolicy::Optimistic; }
  /// Whether rows are divided by sums that have a row's largest probability as
  /// it is rounded. Powers of halves are added up as they are rounded anyway;
  /// under exact it is 1, which no type rounds.
  bool roundsLargest() const {
    return plan.getSoftmax() == SoftmaxPolicy::Threshold ||
           plan.getSoftmax() == SoftmaxPolicy::Lagged;
  }
  /// How many values of rows the loop over blocks carries, in front of its
  /// cursors.
  int64_t countRowValues() const { return roundsLargest() ? 3 : 2; }
  /// The rows behind that loop.
  FinalRows emitRows(KVLoopOp loop);
  LogicalResult emitSoftmaxBlock(int64_t number, Value scale, Value key,
                                 ValueRange carried);
  /// Whether a block is the tile's first one.
  Value emitIsFirst(Value key, arith::CmpIPredicate predicate);
  /// Behind a step, the path on which results are multiplied by its factor.
  /// With the maximum that stood in front of it nothing but that tells whether
  /// there are any.
  void emitRescale(const TensorTile &tile, Value factor, Value key,
                   Value standing = Value());
  /// The layout in which a thread has a whole row.
  TmemRegsLayoutAttr getRowLayout();
  /// What is in the columns of tensor memory from `first` on.
  Value startTensorLoad(Value buffer, int64_t first, int64_t columns);
  SmallVector<Value> awaitTensorLoads(ValueRange loads);
  Value emitTensorLoad(Value buffer, int64_t first, int64_t columns);
  Value emitColumns(Value buffer, int64_t first, int64_t columns);
  /// Waits for the last commit of a tile's probabilities, which nobody else
  /// does.
  void awaitLastCommit(int64_t number, Value cursor);

  /// Emits the results of the tile, zeros if it has no blocks, and the cursors
  /// after them.
  std::pair<Value, SmallVector<Value>> emitTileResults(int64_t number,
                                                       ValueRange cursors);
  /// Stores the results of a tile through shared memory, in as many parts as
  /// the plan says; `oView` is null where these have views of their own.
  void emitStagedResults(int64_t number, RunningState state, Value oView);
  /// The memory that they pass through.
  Value getStaging(int64_t number);
  /// The same by TMA from the queries' memory, which is handed back when it has
  /// been read; the cursor of `stored` behind it.
  Value emitResultsOverQueries(int64_t number, RunningState state, Value oView,
                               Value cursor);
  /// Waits until the results of the tile before are stored whose memory the
  /// next queries take; the cursors behind it.
  SmallVector<Value> awaitStored(ValueRange cursors);

  WsTmemPlanAttr plan;
  ResultBuffer resultBuffer;
  Ring q, k, v;
  TileDealer dealer;
  TensorTile tiles[kTmemTiles];
  /// Where TMA stores results; else null.
  Value resultMap;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSTMEM_WSTMEMEMITTER_H
