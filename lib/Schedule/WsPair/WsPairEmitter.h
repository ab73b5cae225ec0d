//===- WsPairEmitter.h - What makes the kernel of ws_pair -------*- C++ -*-===//
//
// All partitions walk the same tiles and, in each, the same blocks of keys from
// the last to the first: two warpgroups with 64 rows each, and a warp that
// loads. Rows come in slices of columns, a slot each. The channels q0 and q1
// hand over all slices of a warpgroup's queries. The channel kv hands over the
// slices of the CTA's own keys of the first block; with those of each block
// behind it, in turns, those of the values of the block before: of the CTA's
// own keys, then of the other CTA's, of the CTA's columns; at the end the
// values of the last block.
//
// The channels p0 and p1 bring what the other CTA's warpgroup of the same rows
// sends: probabilities of its keys, and the maxima that it computed them with.
// Both CTAs go on with the larger maximum, and results follow where that
// differs. At the end of a tile l0 and l1 bring its row sums.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WSPAIR_WSPAIREMITTER_H
#define ATTN_LIB_SCHEDULE_WSPAIR_WSPAIREMITTER_H

#include "../Wgmma/SlicedRings.h"
#include "WsPair.h"

namespace mlir::attn {

/// The partitions with rows, and the roles of each: who sends to the other CTA,
/// and who reads what came from there.
inline constexpr Role kPairRoles[] = {{"rows0", "rows0"}, {"rows1", "rows1"}};
inline constexpr Role kPairSenders[] = {{"sender0", "rows0"},
                                        {"sender1", "rows1"}};
inline constexpr Role kPairReaders[] = {{"reader0", "rows0"},
                                        {"reader1", "rows1"}};
/// Both of them, as they read keys and values.
inline constexpr Role kPairUsers{"rows", "rows0", "rows1"};
inline constexpr Role kPairLoader{"load", "load"};

class WsPairEmitter : SlicedRings {
public:
  WsPairEmitter(KernelContext &context, WsPairPlanAttr plan)
      : SlicedRings(context, getTilePlan(plan), plan.getSlice()), plan(plan) {}
  LogicalResult run();

private:
  /// What a warpgroup has of its own.
  struct Warpgroup {
    Ring q;
    /// The channels between the CTAs, and where their bytes come: of
    /// probabilities and maxima, and of row sums.
    Value pChannel, lChannel;
    Value probabilities, maxima, sums;
  };
  /// What a warpgroup carries from block to block: beside its maxima, row sums
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
  void makeWarpgroup(int64_t number);

  LogicalResult emitLoader();
  SmallVector<Value> emitLoaderTile(ValueRange cursors);
  /// Loads the slices of a warpgroup's queries.
  void loadQueries(int64_t number, Value cursor);
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

  LogicalResult emitRows(int64_t number);
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
  /// `emit` if the tile has a block, else `otherwise`, which is `state` but for
  /// the cursor of keys.
  BlockState emitIfAny(const BlockState &state, StateBody emit,
                       function_ref<Value()> otherwise);
  /// Hands `slots` slots back unread, if `count` blocks are skipped, i32, and
  /// there is one, or for each of them but one; the cursor behind.
  Value skipOnce(Value count, int64_t slots, Value cursor);
  Value skipOthers(Value count, int64_t slots, Value cursor);
  Value skipSlots(int64_t slots, Value cursor);
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
  Warpgroup warpgroups[kPairTiles];
  /// Of the partition that is being emitted.
  int64_t number = 0;
  SmallVector<Value> queryTiles;
  /// The CTA's place in the cluster, and the first of a block's keys whose
  /// scores it has and has not.
  Value cta, ownKey, otherKey;
  /// Slices of keys and, of those that have results, of the CTA's columns.
  int64_t keySlices = 0, valueSlices = 0;
  int64_t countValueSlots() const { return kPairCTAs * valueSlices; }
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSPAIR_WSPAIREMITTER_H
