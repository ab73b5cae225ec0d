//===- WsTmemKernel.h - The kernel of ws_tmem -------------------*- C++ -*-===//
//
// Each program of a partition stands in a file of its own: WsTmemLoader.cpp,
// WsTmemMultiplier.cpp and WsTmemSoftmax.cpp. Those of a CTA with one tile that
// load, multiply and store stand in WsTmemOneTile.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WSTMEM_WSTMEMKERNEL_H
#define ATTN_LIB_SCHEDULE_WSTMEM_WSTMEMKERNEL_H

#include "WsTmemMemory.h"

namespace mlir::attn {

/// All that the programs share.
struct WsTmemKernel {
  WsTmemKernel(KernelContext &context, WsTmemPlanAttr plan);

  /// Computes what the programs share, in front of them.
  void emitExtents();
  /// Calls `body` for each tile of the CTA, as the CTA's tile of that number.
  void forTiles(int64_t number, function_ref<void()> body);
  /// True if the CTAs of a cluster have the same tile, and columns of its
  /// results each.
  bool dividesResults() const;
  /// Returns `count` of the CTA's columns of results from `first` on.
  ResultColumns getResultColumns(int64_t first, int64_t count);
  /// Returns the place of the CTA's tile of that number among those that walk
  /// the same keys, i32. Tiles of that number in a pair are neighbours, since
  /// they are rows of the same products.
  Value getPlace(int64_t number);
  /// Emits the tiles that products with the CTA's tile of that number have as
  /// rows, with the blocks that one of them needs.
  ClusterTile emitProductRows(int64_t number);
  /// Tells, i1, if the tiles' walk has a block.
  Value hasBlocks();
  /// Calls `body` if it has one.
  void ifBlocks(function_ref<void()> body);
  /// Returns the number of the last trip of the walk. Trips go from the last
  /// block to the first one.
  Value getLastTrip();
  /// Returns the first key of the block of a trip.
  Value getFirstKey(Value trip);
  /// Calls `keys` and `values` with each trip, in the order in which slots are
  /// filled, which is the one in which they are multiplied with; `then` after
  /// the first keys.
  void forOperands(function_ref<void(Value)> keys, function_ref<void()> then,
                   function_ref<void(Value)> values);

  KernelContext &context;
  const ProblemFacts &facts;
  WsTmemPlanAttr plan;
  ImplicitLocOpBuilder &b;
  Control control;
  TileWalk walk;
  AttentionTile &tile;
  WsTmemMemory memory;
  /// This CTA of a cluster, i32; null without one.
  Value rank;
};

/// The program of the thread that loads Q, K and V.
void loadBlocks(WsTmemKernel &shared);
/// The program of the thread that multiplies.
void multiplyBlocks(WsTmemKernel &shared);
/// The program of the warpgroup with the rows of a tile.
void computeSoftmax(WsTmemKernel &shared, int64_t number);
/// The programs of the first two where a CTA has one tile, and that of the
/// warpgroup that stores its results.
void loadSlices(WsTmemKernel &shared);
void loadHalves(WsTmemKernel &shared);
void multiplySlices(WsTmemKernel &shared);
void storeResults(WsTmemKernel &shared);

/// The program of the warps that say which rows the keys of each block are,
/// where these lie apart.
void numberRows(WsTmemKernel &shared);

/// The program of the warpgroup that makes rows of 16 bits of 8-bit keys.
void widenKeys(WsTmemKernel &shared);

/// Calls `body` with `from`, i32, and so on by `step` up to `to`. Wide heads
/// have so many slots of a block that they are filled in a loop.
void forSlots(WsTmemKernel &shared, int64_t from, int64_t to, int64_t step,
              function_ref<void(Value)> body);
/// Returns the columns of values that are in a slot of one tile which may have
/// more; 0 if it does not.
int64_t getColumnsInSlot(WsTmemKernel &shared);

/// Waits for the next slot to be free, loads the rows of `head` from `first`
/// on, or `rows` if these lie apart, with columns from `column` on or all if it
/// is null, and hands the slot over. Of the slot's columns only boxes with the
/// first `columns` are loaded, all if it is 0.
void fillSlot(const TileWalk &walk, const Ring &ring, Pipe &pipe, Value head,
              Value first, Value column = {}, int64_t columns = 0,
              RowNumbers rows = {});

/// The loading thread's end of the channel of numbers of rows, if there is one.
class RowPipe {
public:
  explicit RowPipe(WsTmemKernel &shared);
  /// Waits for the numbers of the rows of a trip's block, calls `body` with
  /// them, null where rows follow each other, and hands them back.
  void take(Value trip, function_ref<void(RowNumbers)> body);

private:
  WsTmemKernel &shared;
  std::optional<Pipe> pipe;
};
/// Returns where this CTA's half begins, i32, of what each CTA of a pair has
/// `own` of.
Value getOwnHalf(WsTmemKernel &shared, int64_t own);
/// Keeps a loop whose body starts products from being unrolled: their thread
/// has no registers for the addresses and descriptors of several steps at once.
void keepRolled(Operation *loop);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSTMEM_WSTMEMKERNEL_H
