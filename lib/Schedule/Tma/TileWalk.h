//===- TileWalk.h - CTAs that walk tiles ------------------------*- C++ -*-===//
//
// Persistent CTAs walk the tiles of all heads and batches: which tile is the
// next one, where it is, and which blocks of keys it needs.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_TMA_TILEWALK_H
#define ATTN_LIB_SCHEDULE_TMA_TILEWALK_H

#include "ClusterTile.h"
#include "attn/Schedule/Kernel/AttentionTile.h"
#include "attn/Schedule/Kernel/Control.h"

namespace mlir::attn {

/// Sizes of tiles and blocks, and who gets which tile.
struct TilePlan {
  int64_t blockM, blockN;
  TileOrder order;
  int64_t groupHeads;
  int64_t cluster = 1;
  /// A counter deals the tiles.
  bool dynamic = false;
  /// The grid has a CTA or cluster for each tile, and they take each other
  /// over.
  bool clc = false;
  /// Tiles of a CTA that walk the same keys, each of partitions of its own,
  /// which make `place` the number of theirs: in a cluster among the tiles of
  /// all CTAs.
  int64_t tilesPerCTA = 1;
  /// Heads that are rows of their query, and runs of keys that each tile has.
  /// In order of rows; in clusters whose tiles are rows of one query.
  int64_t packedHeads = 1, runs = 1;
  /// Rows of a query, of which the heads are the first ones; 0 for as many.
  int64_t queryRows = 0;
  /// CTAs of a cluster that have the same tile.
  int64_t ctasPerTile = 1;
  /// Equal runs that records of a kernel in front tell (attn.plan_pieces), one
  /// for each CTA or cluster of those that have the rows of a query; 0 where
  /// tiles have their own places. For one key head.
  int64_t equalRuns = 0;
  /// Runs that all sequences have together, which records of a kernel in front
  /// tell (attn.plan_work); 0 where each sequence has `runs`.
  int64_t dealtRuns = 0;
  /// Tiles are those of a list that a kernel in front makes (attn.plan_tiles),
  /// in the order longest_first. Their blocks of keys begin at multiples of so
  /// many of a batch: 1 if they begin with documents.
  bool listed = false;
  int64_t align = 1;
  /// The cluster's CTAs multiply together, so that they walk the same blocks of
  /// a run.
  bool isPair = false;
  /// Each of the CTA's two tiles has products of its own blocks alone. A slot
  /// is handed back by a commit, which orders what products have read. The keys
  /// of a block that neither tile multiplies would be ordered by nothing, so
  /// that the first tile takes such blocks, too.
  bool hasOwnProducts = false;

  /// Sets the runs of a problem, and the rows of its queries where the heads of
  /// a group are rows of their query.
  void setRuns(const ProblemFacts &facts, bool packHeads);
  /// Returns how many tiles walk the same blocks of keys.
  int64_t getTogether() const { return cluster / ctasPerTile * tilesPerCTA; }
};

/// Returns the tiles that CTAs deal among themselves, the runs of each and
/// those that a cluster's CTAs have side by side as one: the numbers of a walk
/// are below it.
SizeExpr countDealtTiles(const ProblemFacts &facts, const TilePlan &plan);

/// The tiles that a CTA walks, and the one that it has.
struct TileWalk {
  TileWalk(KernelContext &context, const TilePlan &plan);

  /// Computes how many tiles there are, and the CTA's rank in its cluster: once
  /// in a kernel, before its partitions.
  void emitExtents();
  /// Calls `body` for each of the CTA's tiles that exists, after it was found,
  /// and `complete` with the loop.
  void forTiles(Control &control, function_ref<void()> body,
                function_ref<void(TileLoopOp)> complete = nullptr);

  /// Emits the tile at `place` of those that walk the same keys, which begin at
  /// row `firstRow`, and the blocks of its run; of `neighbours` above 1 as many
  /// tiles side by side as one, and `place` counts these.
  ClusterTile emitPart(Value firstRow, Value place, int64_t neighbours = 1);
  /// Returns whether the tile has all keys of its sequence, i1, where tiles are
  /// pieces of equal runs.
  Value isWhole();

  KernelContext &context;
  const TilePlan plan;
  /// The tile that the CTA has.
  AttentionTile tile;
  /// Tiles of a head, in a cluster's CTAs side by side; heads of a batch that
  /// have tiles of their own, and those of all batches and runs; all tiles.
  Value tilesPerHead, tileHeads, allHeads, allTiles;
  /// The tile's place among those that walk the same keys; null if it is alone.
  Value rank;
  /// True of equal runs, i1, if the CTA has no tile after this one.
  Value isLast;
  /// The CTA's part of the tiles that its cluster has: its first row, and the
  /// blocks of keys that all of the CTAs walk.
  ClusterTile cluster;

private:
  /// Calls `body` for each piece of the CTA's run.
  void forPieces(Control &control, function_ref<void()> body);
  /// Finds tile `index` of the list.
  void findListed(Value index);
  /// Finds tile `number` of all pieces; the CTA's run has records up to `end`.
  void findPiece(Value number, Value end);
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_TMA_TILEWALK_H
