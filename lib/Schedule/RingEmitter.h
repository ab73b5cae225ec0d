//===- RingEmitter.h - What schedules with rings and wgmma emit -*- C++ -*-===//
//
// The parts of a kernel whose operands TMA loads into rings of shared memory
// and wgmma multiplies, whoever loads: rings and their channels, which tile a
// CTA computes next, and the products of a block with the softmax between them.
// Persistent CTAs walk tiles of all heads and batches and, in each, blocks of
// keys from the last to the first.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_RINGEMITTER_H
#define ATTN_LIB_SCHEDULE_RINGEMITTER_H

#include "AttentionEmitter.h"
#include "ClusterTile.h"

namespace mlir::attn {

/// What the plans of schedules with rings have in common.
struct RingPlan {
  int64_t blockM, blockN;
  bool qkAhead = false;
  SoftmaxPolicy softmax;
  TileOrder order;
  int64_t groupHeads;
  int64_t cluster = 1;
  /// The rows of K are loaded in the order of quads (attn.apply_mask).
  bool keyQuads = false;
  /// A counter deals the tiles.
  bool dynamic = false;
};

/// A ring of shared memory with its channel and the map that fills it.
struct Ring {
  /// Of the tensor that fills it.
  StringRef name;
  Value buffer, channel, map;
  TensorMapView view = TensorMapView::Whole;
  BufferType slotType;
};

/// What the loop over the blocks of a tile reads.
struct BlockOperands {
  /// The role that computes.
  StringRef role;
  const Ring &keys, &values;
  /// The slot of the queries, and the exponents of two of a unit of score.
  Value queries, scale;
  /// Where probabilities go for PV to read them; null if it reads registers.
  Value probabilities = Value();
  /// Where the partition itself transposes each slot of the values to, as the
  /// role `transposer`; null if PV reads their slots.
  Value transposed = Value();
  StringRef transposer = {};
};

class RingEmitter : protected AttentionEmitter {
protected:
  RingEmitter(KernelContext &context, const RingPlan &ringPlan)
      : AttentionEmitter(context, ringPlan.blockM), ringPlan(ringPlan) {}

  /// A channel between roles.
  Value makeChannel(StringRef name, int64_t stages,
                    ArrayRef<std::pair<StringRef, SignalKind>> roles);
  /// A ring between two roles, and its map if TMA fills it.
  Ring makeRing(StringRef name, int64_t stages, int64_t rows, int64_t columns,
                StringRef from, StringRef to, bool isLoaded = true,
                TensorMapView view = TensorMapView::Whole);
  /// The ring of values as they lie in memory: keys x columns, or columns x
  /// keys where the keys are contiguous.
  Ring makeValueRing(int64_t stages, StringRef from, StringRef to);
  /// A map by which TMA stores the rows of one warpgroup.
  Value makeResultMap();
  /// Memory for a tile of results.
  Value allocResults();

  /// The number of tiles of a head, in a cluster's CTAs side by side, and of
  /// the heads of all batches; this CTA's rank in its cluster.
  void emitExtents();
  /// Finds tile `index`, its lengths and its blocks of keys.
  void emitTile(Value index);
  /// The loop over this CTA's tiles, which carries what `init` makes; `body` is
  /// called with that, after the tile was found. Null if the body failed.
  TileLoopOp
  emitTileLoop(function_ref<SmallVector<Value>()> init,
               function_ref<FailureOr<SmallVector<Value>>(ValueRange)> body);

  Value advance(Value cursor, const Ring &ring) {
    return CursorAdvanceOp::create(b, cursor, ring.channel);
  }
  /// Waits for a slot; its view and token.
  std::pair<Value, Value> acquire(const Ring &ring, Value cursor,
                                  StringRef role);
  void release(const Ring &ring, Value token, StringRef role) {
    ChannelReleaseOp::create(b, ring.channel, token, role);
  }
  /// Loads the rows of the tile's sequence from `first` on into the next slot,
  /// zeros for rows behind its end; in a transposed view all rows and the keys
  /// from `first` on. Stands in one thread.
  void load(const Ring &ring, Value cursor, StringRef role, Value head,
            Value first);
  void prefetchMaps(ArrayRef<Value> maps);
  /// In one thread, what `emit` makes.
  void elect(function_ref<void()> emit);

  /// The loop over the blocks of the tile. It carries m, l, o, the cursors of
  /// who reads K and V, and what follows them in `inits`: for that
  /// `between`, called between softmax and PV with the first key, returns the
  /// next values. Null after a diagnostic.
  KVLoopOp emitBlocks(
      const BlockOperands &operands, ValueRange inits,
      function_ref<SmallVector<Value>(Value, ValueRange)> between = nullptr);

  const RingPlan ringPlan;
  Value tilesPerHead, allHeads, allTiles, rank;
  /// The blocks of keys that all CTAs of the cluster walk.
  ClusterTile walk;

private:
  /// The first element of the box in a map of a ring's view.
  SmallVector<Value> emitBoxStart(const Ring &ring, Value head, Value first);
  bool isLongestFirst() const {
    return ringPlan.order == TileOrder::LongestFirst;
  }
  /// Which of the tiles that the cluster's CTAs have at turn `index` is this
  /// CTA's; null if it is alone.
  Value emitPlace(Value index);
  /// The body of a tile, unless the tile lies behind the end of its sequence;
  /// what the loop over tiles carries.
  FailureOr<SmallVector<Value>>
  emitIfThere(ValueRange carried,
              function_ref<FailureOr<SmallVector<Value>>(ValueRange)> body);
  /// The probabilities as operand of PV, and what its other operand is.
  Value emitOperandA(Value p);
  Value emitOperandB(Value slot);
  /// Copies the slot of the values at `cursor` to where PV reads them.
  void emitTransposition(const BlockOperands &operands, Value cursor);
  /// One block; what the loop carries.
  FailureOr<SmallVector<Value>>
  emitBlock(const BlockOperands &operands, Value key, ValueRange carried,
            function_ref<SmallVector<Value>(Value, ValueRange)> between);
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_RINGEMITTER_H
