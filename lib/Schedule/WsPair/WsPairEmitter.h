//===- WsPairEmitter.h - What makes the kernel of ws_pair -------*- C++ -*-===//
//
// Both partitions walk the same tiles and, in each, the same blocks of keys
// from the last to the first: two warpgroups with 64 rows each, which run one
// program, and a warp that loads. Rows come in slices of columns, a slot each.
// The channel q hands over all slices of the queries. The channel kv hands over
// the slices of the CTA's own keys of the first block; with those of each block
// behind it, in turns, those of the values of the block before: of the CTA's
// own keys, then of the other CTA's, of the CTA's columns; at the end the
// values of the last block.
//
// The channel p brings what the other CTA sends, each warpgroup its part to the
// warpgroup of the same rows: probabilities of its keys, and the maxima that it
// computed them with. Both CTAs go on with the larger maximum, and results
// follow where that differs. At the end of a tile l brings its row sums.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WSPAIR_WSPAIREMITTER_H
#define ATTN_LIB_SCHEDULE_WSPAIR_WSPAIREMITTER_H

#include "../Wgmma/SlicedRings.h"
#include "WsPair.h"

namespace mlir::attn {

/// The partition with rows, and its further roles: who sends to the other CTA,
/// and who reads what came from there.
inline constexpr Role kPairUser{"rows", "rows"};
inline constexpr Role kPairSender{"sender", "rows"};
inline constexpr Role kPairReader{"reader", "rows"};
inline constexpr Role kPairLoader{"load", "load"};

class WsPairEmitter : SlicedRings {
public:
  WsPairEmitter(KernelContext &context, WsPairPlanAttr plan)
      : SlicedRings(context, getTilePlan(plan), plan.getSlice()), plan(plan) {}
  LogicalResult run();

private:
  /// What the warpgroups carry from block to block: beside its maxima, row sums
  /// and results the probabilities of its own keys of the last block, with
  /// which no value is multiplied yet, and cursors.
  struct BlockState {
    Value m, l, p, keys, toSend, toRead;
    SmallVector<Value> results;

    BlockState() = default;
    explicit BlockState(ValueRange carried);
    SmallVector<Value> list() const;
  };
  /// Makes a state in a branch.
  using StateBody = function_ref<BlockState()>;
  /// What came from the other CTA, and the token of its slot, which is handed
  /// back when it was used: a load need not be complete at an arrival in
  /// another CTA that stands behind it
  /// (docs/Rationale/Clusters/SignalScope.md).
  using Theirs = std::pair<Value, Value>;

  static TilePlan getTilePlan(WsPairPlanAttr plan);
  void makeRings();
  /// The channels between the CTAs.
  void makeExchanges();
  /// Takes each warpgroup's part of such a channel's slot; its token.
  Value acquirePart(Value channel, Value cursor, StringRef role);

  LogicalResult emitLoader();
  SmallVector<Value> emitLoaderTile(ValueRange cursors);
  /// Loads the slices of the queries.
  void loadQueries(Value cursor);
  /// A loop that carries a cursor; `emit` has the index and gives the next one.
  Value emitTrips(Value begin, Value end, Value cursor,
                  function_ref<Value(Value, Value)> emit);
  /// Loads slice `index` of the keys of a block, or of the values; the cursor
  /// behind.
  Value loadKeys(Value block, int64_t index, Value cursor);
  Value loadValues(Value block, int64_t index, Value cursor);
  /// Calls `keys` and `values` with the slices of a block's keys and of another
  /// one's values, in turns.
  void forEachSlice(function_ref<void(int64_t)> keys,
                    function_ref<void(int64_t)> values) const;

  LogicalResult emitRows();
  FailureOr<SmallVector<Value>> emitTile(ValueRange cursors);
  /// The loop over all blocks but the first one, whose state is `first`.
  FailureOr<BlockState> emitLoop(Value scale, const BlockState &first);
  /// The first block but for its values.
  FailureOr<BlockState> emitFirstBlock(Value scale, BlockState state);
  LogicalResult emitBlock(Value scale, Value key, ValueRange carried);
  /// The values of the last block.
  BlockState emitLastBlock(BlockState state);
  /// Probabilities of scores, which are sent, and their maxima and sums. The
  /// factors of results.
  FailureOr<Value> emitSoftmax(Value scale, Value key, Value s,
                               SoftmaxPolicy policy, BlockState &state);
  /// The other CTA's probabilities. Changes them and the state to the larger of
  /// both maxima, where some row's differ.
  Theirs emitTheirs(BlockState &state);
  BlockState emitInitialBlockState(Value keys, Value toSend, Value toRead);
  /// `emit` if the tile has a block, else `state`.
  BlockState emitIfAny(const BlockState &state, StateBody emit);
  /// The partial row sums of both CTAs; moves the cursors.
  Theirs emitSum(Value l, Value &toSend, Value &toRead);
  void emitOwnLSE(const FinalRows &rows);
  void storeResults(ValueRange results, Value factor);
  int64_t getResultColumns(int64_t index) const {
    return std::min(slice, getOwnColumns(facts) - index * slice);
  }
  RankedTensorType getScoreType(Type elementType) {
    return tileType({kPairRows, getOwnKeys(plan)}, elementType);
  }

  WsPairPlanAttr plan;
  /// The ring of keys and values, as either loads it.
  Ring k, v;
  Ring q;
  /// The channels between the CTAs, and where their bytes come: of
  /// probabilities and maxima, and of row sums.
  Value pChannel, lChannel;
  Value probabilities, maxima, sums;
  SmallVector<Value> queryTiles;
  /// The first of a block's keys whose scores the CTA has and has not.
  Value ownKey, otherKey;
  /// Slices of keys and, of those that have results, of the CTA's columns.
  int64_t keySlices = 0, valueSlices = 0;
  int64_t countValueSlots() const { return kPairCTAs * valueSlices; }
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSPAIR_WSPAIREMITTER_H
