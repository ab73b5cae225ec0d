//===- WsPairEmitter.h - What makes the kernel of ws_pair -------*- C++ -*-===//
//
// All partitions walk the same tiles and, in each, the same blocks of keys from
// the last to the first: two warpgroups with 64 rows each, and a warp that
// loads. Rows come in slices of columns, a slot each. The channels q0 and q1
// hand over all slices of a warpgroup's queries; kv, in this order, the slices
// of the CTA's own keys, of the values of its own keys, and of those of the
// other CTA's, of the CTA's columns.
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
  /// What the loop over blocks carries.
  struct BlockState {
    Value m, l, keys, toSend, toRead;
    SmallVector<Value> results;

    BlockState() = default;
    explicit BlockState(ValueRange carried);
    SmallVector<Value> list() const;
  };

  static TilePlan getTilePlan(WsPairPlanAttr plan);
  void makeRings();
  void makeWarpgroup(int64_t number);

  LogicalResult emitLoader();
  SmallVector<Value> emitLoaderTile(ValueRange cursors);
  /// Loads the slices of a warpgroup's queries.
  void loadQueries(int64_t number, Value cursor);
  /// Loads the slots of a block; the cursor behind.
  Value loadBlock(Value block, Value cursor);
  /// Loads the slots of `count` slices from `column` on of the rows from `key`
  /// on; the cursor behind.
  Value loadSlices(const Ring &ring, Value key, Value column, int64_t count,
                   Value cursor);

  LogicalResult emitRows(int64_t number);
  FailureOr<SmallVector<Value>> emitTile(ValueRange cursors);
  LogicalResult emitBlock(Value scale, Value key, ValueRange carried);
  /// Sends probabilities and maxima; the cursor behind.
  Value send(Value p, Value m, Value cursor);
  /// Adds the products of the own probabilities, then of the other CTA's, with
  /// the larger of both maxima. `state` has the own one.
  void emitProducts(Value p, BlockState &state);
  /// Changes m, l, results and the other CTA's probabilities to the larger of
  /// both maxima, where some row's differ.
  Value emitCommonMaximum(Value otherM, Value otherP, BlockState &state);
  /// The partial row sums of both CTAs; moves the cursors.
  Value emitSum(Value l, Value &toSend, Value &toRead);
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
  int64_t keySlices = 0, valueSlices = 0;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSPAIR_WSPAIREMITTER_H
