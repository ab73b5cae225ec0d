//===- CopiedKernel.h - Kernels whose blocks cp.async copies ----*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COPIED_COPIEDKERNEL_H
#define ATTN_LIB_SCHEDULE_COPIED_COPIEDKERNEL_H

#include "CopiedMemory.h"
#include "CopiedResults.h"
#include "CopiedRows.h"
#include "GridTiles.h"

namespace mlir::attn {

/// Emits the kernel of a plan in tile IR.
LogicalResult emitCopied(KernelContext &context, const CopiedPlan &plan);

class CopiedKernel {
public:
  CopiedKernel(KernelContext &context, const CopiedPlan &plan);
  LogicalResult run();

private:
  /// Computes and stores the tile: the program of the kernel.
  void computeTile();
  /// Does so for 8-bit keys whose groups of columns have rings of their own
  /// (CopiedGroups.cpp).
  void computeGroupedTile();

  /// Loads the queries straight to registers.
  SmallVector<Value> loadQueries();
  /// Starts the copies of the queries to shared memory.
  void copyQueries();
  /// Returns the queries' columns `i`, which lie in shared memory, in
  /// registers.
  Value readQuery(size_t i);
  SmallVector<Value> readQueries();
  /// Puts the queries of groups where products with 8-bit keys read them.
  SmallVector<Value> placeGroupedQueries();
  /// Returns `queries` in the memory of columns `i`, as fragments beside 8-bit
  /// keys want them.
  Value keepInQuads(Value queries, size_t i);

  /// Finds the blocks of keys of the tile, of its run and of the team.
  void findBlocks();
  /// Calls `body` with the first key of each block.
  void forBlocks(function_ref<void(Value)> body);
  /// Returns the first key of a part of the block at `key`.
  Value getPart(Value key, int64_t part);

  /// Returns q k^T + sum, scores of type `type`. By wgmma it is in flight, and
  /// `sum` may be null.
  Value multiplyKeys(RankedTensorType type, Value queries, Value keys,
                     Value sum);
  /// Returns p v + sum, where v are the results' columns from `first` on. By
  /// wgmma it is in flight.
  Value multiplyValues(Value p, Value values, Value sum, int64_t first);
  /// Waits for a product of type `type` if it is in flight, as those of wgmma
  /// are; products of mma.sync are returned as they are.
  Value await(RankedTensorType type, Value product);
  /// Returns zeros of `type` to add products to; null if wgmma adds to nothing.
  Value makeNoScores(RankedTensorType type);
  /// Returns scores of f32 from sums of products, of all parts of the depth.
  Value addDepthParts(Value sums);
  /// Returns a tile times the scales, of group `group`, of the keys in `slot`,
  /// which are its columns.
  Value multiplyScales(Value values, Value slot, int64_t group = 0);
  Value loadScales(Value values, Value slot, int64_t group);
  /// Returns `sum`, null for 0, and a group's product times its scales.
  Value addScaled(Value sum, Value product, Value slot, int64_t group);
  /// Returns which of a row's scales a group has.
  int64_t getScale(int64_t group) const;
  /// Returns the type of the sums of groups' products.
  RankedTensorType getGroupedScores();
  /// Applies masks and the like, and lets all warps that share rows know the
  /// scores that their plan exchanges. Null after a diagnostic.
  Value finishScores(Value products, Value key);
  /// Returns the values of latent keys in `slot`.
  Value getLatentValues(Value slot);

  /// Finishes the tile's rows and stores them.
  void finish(const CopiedRows &rows);
  /// Moves to the place where a tile exists, if not all CTAs have one.
  void skipAbsentTile();

  KernelContext &context;
  const ProblemFacts &facts;
  const CopiedPlan plan;
  const CopiedExtents extents;
  const CopiedLayouts layouts;
  ImplicitLocOpBuilder &b;
  Control control;
  AttentionTile tile;
  CopiedMemory memory;
  CopiedSoftmax softmax;
  CopiedResults results;
  /// The loop over blocks keeps nothing for the results.
  const bool isTight;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COPIED_COPIEDKERNEL_H
