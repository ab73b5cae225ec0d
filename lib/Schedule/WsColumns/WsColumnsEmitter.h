//===- WsColumnsEmitter.h - What makes the kernel of ws_columns -*- C++ -*-===//
//
// All partitions walk the same tiles and, in each, the same blocks of keys from
// the last to the first: the warpgroups softmax and columns, and a warp for
// each ring of keys and values, so that none waits for slots of another one.
// Rows of Q, K and V come in slices, a slot each, so that the columns of a
// block need not lie in shared memory all at once. The channel q hands over all
// slices of a tile's queries, k those of the keys to the softmax, v and w those
// of the values: v the first columns to the softmax, w the others to the second
// warpgroup.
//
// The channel p hands over the probabilities of a block with the factor by
// which the accumulator is rescaled first. It has one slot: the second
// warpgroup reads it into registers and hands it back before it multiplies, so
// that it may be a block behind. The channel scale hands over what results are
// multiplied by.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WSCOLUMNS_WSCOLUMNSEMITTER_H
#define ATTN_LIB_SCHEDULE_WSCOLUMNS_WSCOLUMNSEMITTER_H

#include "../Wgmma/SlicedRings.h"
#include "WsColumns.h"

namespace mlir::attn {

inline constexpr Role kSoftmax{"softmax", "softmax"};
/// Of the channel s: who sends scores to the other CTA, and adds those that
/// came from there.
inline constexpr Role kSender{"sender", "softmax"};
inline constexpr Role kAdder{"adder", "softmax"};
inline constexpr Role kColumns{"columns", "columns"};
/// Who loads Q and K, and the two parts of the values.
inline constexpr Role kKeyLoader{"load_k", "load_k"};
inline constexpr Role kValueLoader{"load_v", "load_v"};
inline constexpr Role kOtherLoader{"load_w", "load_w"};

class WsColumnsEmitter : SlicedRings {
public:
  WsColumnsEmitter(KernelContext &context, WsColumnsPlanAttr plan)
      : SlicedRings(context, getTilePlan(plan), plan.getSlice()), plan(plan) {}
  LogicalResult run();

private:
  static TilePlan getTilePlan(WsColumnsPlanAttr plan);
  /// True if two CTAs divide the depth of a tile and the columns of its
  /// results.
  bool isDepthDivided() const { return plan.getDepthCtas() > 1; }
  /// The channel by which they exchange their parts of the scores.
  void makeExchange();
  void makeRings();
  LogicalResult emitKeyLoader();
  LogicalResult emitValueLoader();
  LogicalResult emitOtherLoader();
  /// The thread that fills a ring, and that of the queries before if it is to.
  LogicalResult emitLoader(const Ring &ring, Role role, SliceRange range,
                           bool withQueries);
  /// Loads the slices of the tile's queries.
  void loadQueries(Value cursor);
  /// The first column of slice `index`, of as many as `perCTA` for each CTA
  /// that divides the columns.
  Value emitFirstColumn(int64_t index, int64_t perCTA);
  /// Loads the slices of all blocks of a tile; the cursor behind.
  Value loadBlocks(const Ring &ring, Role role, SliceRange range, Value cursor);

  LogicalResult emitSoftmax();
  FailureOr<SmallVector<Value>> emitSoftmaxTile(ValueRange cursors);
  KVLoopOp emitSoftmaxLoop(Value scale, ValueRange cursors);
  LogicalResult emitSoftmaxBlock(Value scale, Value key, ValueRange carried);
  /// The sum of both CTAs' parts of the scores, the same in both, and the token
  /// of the slot that the other one came in, which is handed back when the sum
  /// was used (docs/Rationale/Clusters.md). Moves the cursors of
  /// the sender and of the adder.
  std::pair<Value, Value> emitDepthSum(Value part, Value &toSend, Value &toAdd);
  /// Hands probabilities and factor to the other warpgroup; the cursor behind.
  Value handOver(Value p, Value factor, Value cursor);

  LogicalResult emitColumns();
  SmallVector<Value> emitColumnsTile(ValueRange cursors);
  void emitColumnsBlock(ValueRange carried);

  /// The accumulators of a warpgroup, one for each slice.
  SmallVector<Value> emitInitialResults(SliceRange range);
  int64_t getResultColumns(int64_t slice) const {
    return std::min(plan.getSlice(),
                    getOwnColumns(facts, plan) - slice * plan.getSlice());
  }
  /// Adds probabilities times the values of a block; moves the cursor.
  SmallVector<Value> emitValueProducts(const Ring &ring, StringRef role,
                                       Value p, ValueRange results,
                                       Value &cursor);
  /// Stores LSE, which the first CTA of a tile does for all.
  void emitOwnLSE(const FinalRows &rows);
  /// Multiplies the accumulators and stores them.
  void storeResults(SliceRange range, ValueRange results, Value factor);

  WsColumnsPlanAttr plan;
  Ring q, k, v, w;
  Value pChannel, scaleChannel;
  /// Of the scores that the other CTA sends, and where they come; null without
  /// one.
  Value sChannel, sent;
  /// Probabilities, the factors of their rows, and those of results.
  Value probabilities, factors, scales;
  /// The slices of Q and K, and of the results of each warpgroup.
  int64_t keySlices = 0;
  SliceRange own = {}, others = {};
  /// The slots of the tile's queries.
  SmallVector<Value> queryTiles;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSCOLUMNS_WSCOLUMNSEMITTER_H
