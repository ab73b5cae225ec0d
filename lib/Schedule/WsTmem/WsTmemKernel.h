//===- WsTmemKernel.h - The kernel of ws_tmem -------------------*- C++ -*-===//
//
// Each program of a partition stands in a file of its own: WsTmemLoader.cpp,
// WsTmemMultiplier.cpp and WsTmemSoftmax.cpp.
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
  /// Calls `body` if the tiles' walk has a block.
  void ifBlocks(function_ref<void()> body);
  /// Returns the number of the last trip of the walk. Trips go from the last
  /// block to the first one.
  Value getLastTrip();

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

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSTMEM_WSTMEMKERNEL_H
