//===- MlaEmitter.h - What makes kernels of mla with own scores -*- C++ -*-===//
//
// Three partitions walk the same tiles and, in each, the same blocks of keys
// from the last to the first. A warpgroup loads: queries by cp.async, keys by
// TMA, whose thread waits for free slots only, or by cp.async where TMA does
// not copy them. One computes scores and probabilities. Two hold the results,
// half of the columns of each slice each.
//
// The columns of a block of keys come in slices, with a ring each, so that
// scores begin when the first columns are there, and the first slice is loaded
// anew while the results' product with the next one runs. A slot of the first
// slices, the values, goes from the loads to the scores, from there to the
// results, and back; one of the other columns, `rope`, from the scores back.
// The channel p hands over probabilities, in shared memory, and the factor by
// which results are rescaled first; it has one slot, so that the scores of the
// next block and their softmax stand beside the product of this one. The
// channel scale hands over what results are multiplied by at the end.
//
// 8-bit keys have two rings for each slice: loads fill one, and a fourth
// partition, `widener`, writes them as f16 to the other one.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_MLA_MLAEMITTER_H
#define ATTN_LIB_SCHEDULE_MLA_MLAEMITTER_H

#include "../Copied/CopiedExtents.h"
#include "../Tma/RingEmitter.h"
#include "Mla.h"

namespace mlir::attn {

inline constexpr Role kLatentLoad{"load", "load"};
inline constexpr Role kLatentScores{"scores", "scores"};
inline constexpr Role kLatentResults{"results", "results"};
inline constexpr Role kLatentWidener{"widener", "widener"};

/// Columns of the keys with a ring of their own, and one slot for those of the
/// queries, which has a channel of its own where TMA fills it. Queries that are
/// held in registers pass through the ring of the keys instead, in front of a
/// tile's first block.
struct Slice {
  Ring ring, queries;
  /// What the loads fill, where `ring` holds the same columns widened.
  Ring raw;
  int64_t first, columns;
  /// Where they begin in the tensors that the rings are of.
  int64_t firstInTensor, firstInQueries;
  bool isHeld = false;

  const Ring &getLoaded() const { return raw.buffer ? raw : ring; }
};

class MlaEmitter : RingEmitter {
public:
  MlaEmitter(KernelContext &context, MlaPlanAttr plan);
  LogicalResult run();

private:
  /// Halves of a block's probabilities, which are handed over one by one.
  static constexpr llvm::StringLiteral kFront = "front", kBack = "back";

  void makeRings();
  /// True if a slot of keys is one copy from a page, whose address leaves the
  /// widener registers to load a part of a slot ahead.
  bool hasSimpleLoads() const;
  /// Registers that a thread of each partition asks for.
  SmallVector<int64_t> getPartitionRegisters();
  /// Brings the table of pages to L2 where a tile begins with the CTA.
  void prefetchPages();
  LogicalResult emitLoad();
  /// A ring for columns of the keys, which the first role fills: with a map of
  /// `tensor` if it loads by TMA.
  Ring makeKeyRing(StringRef name, StringRef tensor, int64_t stages,
                   int64_t columns, Type type,
                   ArrayRef<std::pair<Role, SignalKind>> roles);
  /// A ring for `columns` columns of the keys from `first` on, and memory for
  /// those of the queries, named `q` and `suffix`.
  Slice makeSlice(StringRef name, StringRef suffix, int64_t first,
                  int64_t columns, bool isValue, bool isHeld = false);
  /// Copies all slices of the block whose first key is `key`.
  SmallVector<Value> emitBlockLoad(Value key, ValueRange cursors);
  /// True if there are no more tiles than CTAs.
  bool hasOneTile() const;
  SmallVector<Value> emitLoadTile(ValueRange cursors);
  /// Copies the tile's queries; the cursors behind them.
  SmallVector<Value> emitQueryLoad(ValueRange cursors);
  /// Calls `emit` with each slice whose queries are held and the place in its
  /// ring where they pass through, and moves its cursor behind that.
  void forHeldQueries(MutableArrayRef<Value> cursors,
                      function_ref<void(const Slice &, Value)> emit);
  /// Copies the queries that are held to the rings; moves the cursors of keys.
  void emitHeldQueryLoad(MutableArrayRef<Value> cursors);
  /// A slice's queries, in registers or a slot.
  Value emitQueries(const Slice &slice) {
    if (slice.isHeld)
      return heldQueries;
    return SlotOp::create(b, slice.queries.slotType, slice.queries.buffer,
                          context.i32(0), /*distance=*/IntegerAttr());
  }
  /// Memory for slots, which beside widened keys is that of as many more of
  /// `partColumns` columns, what a warpgroup has in registers at a time; of
  /// columns that this does not divide in one piece.
  Value allocSlots(StringRef name, ArrayRef<int64_t> shape, Type type,
                   int64_t partColumns);
  /// The parts of a slot of such memory.
  SmallVector<Value> emitParts(Value slot);
  /// Queries of the type of operands, in the bytes of `slice`'s.
  Value emitConvertedQueries(const Slice &slice);
  /// Channels of the queries.
  SmallVector<Value> listQueryChannels();
  LogicalResult emitWidenerRole();
  /// Widens the blocks of a tile; the cursors of each slice's two rings.
  SmallVector<Value> emitWidenerTile(ValueRange cursors);
  /// Widens a slot of the slice, and moves the two cursors behind it.
  void emitWidening(const Slice &slice, Value &source, Value &dest);
  LogicalResult emitScoreRole();
  FailureOr<SmallVector<Value>> emitScoreTile(ValueRange cursors);
  /// The loop over the tile's blocks, which carries m, l and the cursors of k
  /// and p; null if it failed.
  KVLoopOp emitScoreLoop(Value scale, ValueRange cursors);
  LogicalResult emitScoreBlock(Value scale, Value key, ValueRange carried);
  /// Stores probabilities and the factors of their rows for the results.
  void emitHandOver(Value p, Value factor, Value cursor);
  /// Scores of a block; moves the cursors of the slices behind it.
  Value emitScoreProduct(SmallVectorImpl<Value> &cursors);
  LogicalResult emitResultRole();
  SmallVector<Value> emitResultTile(ValueRange cursors);
  /// Accumulators of the warpgroups of the results.
  MmaLayoutAttr getResultLayout() {
    return MmaLayoutAttr::get(b.getContext(),
                              {plan.getWarpsM(), plan.getWarpsN()},
                              /*copies=*/1, /*column_runs=*/true);
  }
  DividedRows getResultRows() {
    auto shared = MmaLayoutAttr::get(b.getContext(), {plan.getWarpsM(), 1},
                                     plan.getWarpsN());
    return {blockM, getResultLayout(), shared, units};
  }
  /// True if the first half of a block's probabilities is handed over before
  /// the other one is computed, under the products of which that is.
  bool handsOnHalves() const {
    return plan.getSoftmax() == SoftmaxPolicy::Lagged;
  }
  /// The memory of a half of the probabilities.
  Value emitHalf(int64_t index) {
    int64_t columns = plan.getBlockN() / 2;
    return SlotOp::create(b, bufferType({blockM, columns}, getOperandType()),
                          probabilities, context.i32(index),
                          /*distance=*/IntegerAttr());
  }
  /// Waits for a half of a block's probabilities; its token.
  Value awaitHalf(Value cursor, StringRef part);
  /// Starts the product of a block's probabilities with a slice of its values,
  /// which `result` is added to. `back` is the token of the second half, taken
  /// here by the first product that needs it.
  Value emitValueProduct(Value slot, Value result, Value cursor, Value &back);
  /// The cursors of p and the values behind a block, the results, what these
  /// are multiplied by at the end, and the cursor of that. In the tile's last
  /// block slices of the results are stored as soon as they are complete, while
  /// the product with another slice runs.
  SmallVector<Value> emitResultBlock(Value isLast, ValueRange carried);
  /// The slice that the results' product `step` of a block reads.
  int64_t getValueSlice(int64_t step) const;
  /// What `emit` makes if `condition` holds, or else `otherwise`.
  SmallVector<Value> emitIf(Value condition, ValueRange otherwise,
                            function_ref<SmallVector<Value>()> emit);
  /// Waits for what results are multiplied by at the end; the cursor behind it.
  SmallVector<Value> emitScale(Value cursor);
  /// The sum `result` of slice `index` times `scale` of its rows, in the type
  /// of the results, whose units are stored if they are the slice's own.
  Value emitScaledSlice(int64_t index, Value result, Value scale);
  void storeSlice(const Slice &slice, Value o);
  /// True if partial results of f16 have units that all slices have in common.
  bool sharesUnits() const {
    return facts.hasPartialScales() && facts.getUnitGroups() != valueSlices;
  }
  /// True if slices of the results are stored in the tile's last block.
  bool storesEarly() const {
    return leavesInSlices(facts, plan) && !sharesUnits();
  }
  /// Stores the slices of `results`, times `scale` of their rows, that were not
  /// stored in the tile's last block.
  void storeRest(ValueRange results, Value scale);
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
  /// Slices of a block of keys, in the order in which they are read; those of
  /// the first columns are the values.
  SmallVector<Slice, 3> slices;
  int64_t valueSlices = 0;
  /// The order in which slices are loaded, widened and multiplied by queries.
  SmallVector<unsigned> order;
  bool byTma = false, queriesByTma = false;
  Value qChannel, pChannel, scaleChannel;
  /// The tile's queries of the slice that is held.
  Value heldQueries;
  /// Those of each slice as operands beside widened keys.
  SmallVector<Value> convertedQueries;
  /// The block's probabilities, the factors of their rows and those of the
  /// results.
  Value probabilities, factors, scales;
  /// What warpgroups exchange to find the units of rows, one slice after the
  /// other; null where results have none.
  Value units;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_MLA_MLAEMITTER_H
