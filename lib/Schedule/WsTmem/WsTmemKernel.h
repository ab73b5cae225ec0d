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

  /// Calls `body` for each tile of the CTA, as the tile with number `rank`
  /// among those that walk the same keys.
  void forTiles(int64_t rank, function_ref<void()> body);
  /// Tells, i1, if the tiles' walk has a block.
  Value hasBlocks();
  /// Calls `body` if it has one.
  void ifBlocks(function_ref<void()> body);
  /// Returns the number of the last trip of the walk. Trips go from the last
  /// block to the first one.
  Value getLastTrip();
  /// Returns the first key of the block of a trip.
  Value getFirstKey(Value trip);

  KernelContext &context;
  const ProblemFacts &facts;
  WsTmemPlanAttr plan;
  ImplicitLocOpBuilder &b;
  Control control;
  TileWalk walk;
  AttentionTile &tile;
  WsTmemMemory memory;
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
void multiplySlices(WsTmemKernel &shared);
void storeResults(WsTmemKernel &shared);

/// Waits for the next slot to be free, loads the rows of `head` from `first`
/// on, with columns from `column` on or all if it is null, and hands the slot
/// over.
void fillSlot(const TileWalk &walk, const Ring &ring, Pipe &pipe, Value head,
              Value first, Value column = {});
/// Keeps a loop whose body starts products from being unrolled: their thread
/// has no registers for the addresses and descriptors of several steps at once.
void keepRolled(Operation *loop);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSTMEM_WSTMEMKERNEL_H
