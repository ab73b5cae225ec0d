//===- PersistentTiles.h - CTAs that walk tiles -----------------*- C++ -*-===//
//
// Persistent CTAs walk the tiles of all heads and batches: which tile is the
// next one, where it is, and which blocks of keys it needs.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_TMA_PERSISTENTTILES_H
#define ATTN_LIB_SCHEDULE_TMA_PERSISTENTTILES_H

#include "../Core/AttentionEmitter.h"
#include "ClusterTile.h"
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
  /// Tiles of a CTA that stand side by side, each of partitions of its own,
  /// which make `place` the number of theirs. Not in clusters.
  int64_t tilesPerCTA = 1;
  /// Heads that are rows of their query, and runs of keys that each tile has.
  /// In order of rows; in clusters whose tiles are rows of one query.
  int64_t packedHeads = 1, runs = 1;
  /// Rows of a query, of which the heads are the first ones; 0 for as many.
  int64_t queryRows = 0;
  /// CTAs of a cluster that have the same tile.
  int64_t ctasPerTile = 1;

  /// Tiles that walk the same blocks of keys.
  int64_t getTogether() const { return cluster / ctasPerTile * tilesPerCTA; }
};

class PersistentTiles : public AttentionEmitter {
public:
  PersistentTiles(KernelContext &context, const TilePlan &tilePlan)
      : AttentionEmitter(context, tilePlan.blockM,
                         tilePlan.queryRows ? tilePlan.queryRows
                                            : tilePlan.packedHeads,
                         tilePlan.packedHeads),
        tilePlan(tilePlan) {
    rowsTogether = blockM * tilePlan.getTogether();
  }

  /// The number of tiles of a head, in a cluster's CTAs side by side, and of
  /// the heads of all batches; this CTA's rank in its cluster.
  void emitExtents();
  /// The loop over this CTA's tiles, which carries what `init` makes; `body` is
  /// called with that, after the tile was found. Null if the body failed.
  TileLoopOp
  emitTileLoop(function_ref<SmallVector<Value>()> init,
               function_ref<FailureOr<SmallVector<Value>>(ValueRange)> body);

  /// Calls `body` for each of this CTA's tiles that exists, after it was found,
  /// and `complete` with the loop.
  void forTiles(Control &control, function_ref<void()> body,
                function_ref<void(TileLoopOp)> complete = nullptr);

  const TilePlan tilePlan;
  /// `rank` is the tile's place among those that walk the same keys.
  Value tilesPerHead, tileHeads, allHeads, allTiles, rank;
  /// The blocks of keys that all CTAs of the cluster walk.
  ClusterTile walk;

private:
  /// Returns how tiles are dealt to CTAs.
  TileScheduler getScheduler() const;
  bool isLongestFirst() const {
    return tilePlan.order == TileOrder::LongestFirst;
  }
  /// Heads of a batch that have tiles of their own.
  Value emitTileHeads() {
    return group == 1 ? context.getHeads() : context.getKVHeads();
  }
  /// Finds tile `index`, its lengths and its blocks of keys.
  void emitTile(Value index);
  /// Which of the tiles that the cluster's CTAs have at turn `index` is this
  /// CTA's; null if it is alone.
  Value emitPlace(Value index);
  /// The body of a tile, unless the tile lies behind the end of its sequence;
  /// what the loop over tiles carries.
  FailureOr<SmallVector<Value>>
  emitIfThere(ValueRange carried,
              function_ref<FailureOr<SmallVector<Value>>(ValueRange)> body);
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_TMA_PERSISTENTTILES_H
