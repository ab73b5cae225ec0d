//===- Emitter.h - What makes the kernel of ws_wgmma ------------*- C++ -*-===//
//
// Both partitions walk the same tiles and, in each, the same blocks of keys
// from the last to the first; three channels (q, k, v) hand slots from the
// producer to the consumers. 8-bit values whose keys are not contiguous are
// transposed on the way by all warps of the producer's partition, since wgmma
// reads such operands with the contraction's index contiguous only: the channel
// v leads from its elected thread to its warps, and vt, which has as many slots
// as the plan gives V, from there to the consumers. Where a counter deals the
// tiles, the producer takes them from it and one more channel (tile) hands
// their indices on.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WSWGMMA_EMITTER_H
#define ATTN_LIB_SCHEDULE_WSWGMMA_EMITTER_H

#include "../AttentionEmitter.h"
#include "ClusterTile.h"
#include "WsWgmma.h"

namespace mlir::attn {

/// The roles. The last one is the second role of the producer's partition.
inline constexpr llvm::StringLiteral kConsumer("consumer");
inline constexpr llvm::StringLiteral kProducer("producer");
inline constexpr llvm::StringLiteral kTransposer("producer.transposer");

/// How the counter's tiles reach the consumers.
struct TileDealer {
  Value counter, channel, ring;
};

/// A ring of shared memory with its channel and the map that fills it.
struct Ring {
  Value buffer, channel, map;
  TensorMapView view = TensorMapView::Whole;
  BufferType slotType;
};

class WsWgmmaEmitter : AttentionEmitter {
public:
  WsWgmmaEmitter(KernelContext &context, WsWgmmaPlanAttr plan)
      : AttentionEmitter(context, plan.getBlockM()), plan(plan),
        resultBuffer(getResultBuffer(context.facts, plan, context.target)) {}
  LogicalResult run();

private:
  /// A channel between two roles.
  Value makeChannel(StringRef name, int64_t stages, StringRef from,
                    StringRef to, SignalKind signal);
  /// A ring between two roles, and its map if TMA fills it.
  Ring makeRing(StringRef name, int64_t stages, int64_t rows, int64_t columns,
                StringRef from, StringRef to,
                TensorMapView view = TensorMapView::Whole);
  /// The rings of a partition with its roles in them, in the order in which it
  /// carries their cursors.
  SmallVector<std::pair<const Ring *, StringRef>> getRings(StringRef partition);
  /// What consumers read V from.
  const Ring &values() const { return needsTransposer(facts) ? vt : v; }
  void makeDealer();
  /// Lets TMA store the results, if it can.
  void makeResultMap();
  bool isLongestFirst() const {
    return plan.getOrder() == TileOrder::LongestFirst;
  }
  /// The number of tiles of a head, in a cluster's CTAs side by side, and of
  /// the heads of all batches; this CTA's rank in its cluster.
  void emitExtents();
  /// Which of the tiles that the cluster's CTAs have at turn `index` is this
  /// CTA's; null if it is alone.
  Value emitPlace(Value index);
  /// Finds tile `index`, its lengths and its blocks of keys.
  void emitTile(Value index);
  /// The body of a tile, unless the tile lies behind the end of its sequence;
  /// the next cursors.
  FailureOr<SmallVector<Value>>
  emitIfThere(ValueRange cursors,
              function_ref<FailureOr<SmallVector<Value>>(ValueRange)> body);
  /// The loop over this CTA's tiles in one role, which carries its cursors.
  LogicalResult
  emitTileLoop(StringRef role,
               function_ref<FailureOr<SmallVector<Value>>(ValueRange)> body);
  SmallVector<Value> startCursors(StringRef partition);
  Value advance(OpBuilder &builder, Value cursor, const Ring &ring) {
    return CursorAdvanceOp::create(builder, b.getLoc(), cursor, ring.channel);
  }
  /// Waits for a slot; its view and token.
  std::pair<Value, Value> acquire(OpBuilder &builder, const Ring &ring,
                                  Value cursor, StringRef role);
  void release(OpBuilder &builder, const Ring &ring, Value token,
               StringRef role) {
    ChannelReleaseOp::create(builder, b.getLoc(), ring.channel, token, role);
  }
  /// Loads rows from `first` on into the next slot: those of a sequence, or in
  /// a transposed view all rows and the keys from `first` on.
  void load(const Ring &ring, Value cursor, Value head, Value first);

  /// Hands `count` slots of K and of V back unread; their next cursors.
  SmallVector<Value> emitSkip(Value count, ValueRange cursors);
  LogicalResult emitConsumer();
  FailureOr<SmallVector<Value>> emitConsumerTile(ValueRange cursors);
  LogicalResult emitProducer();
  FailureOr<SmallVector<Value>> emitProducerTile(ValueRange cursors);
  /// The producer of 8-bit operands, in all threads of its partition.
  LogicalResult emitTransposingProducer();
  FailureOr<SmallVector<Value>> emitTransposingTile(ValueRange cursors);
  /// Copies a slot of v to one of vt; the next cursors.
  SmallVector<Value> emitTransposition(OpBuilder &builder, ValueRange cursors);
  void prefetchMaps();
  /// In one thread, what `emit` makes.
  void elect(function_ref<void()> emit);
  /// The loads of K and V of a block.
  void loadBlock(Value block, ValueRange cursors);
  /// Row `index` of a sequence that starts at row `start`, if that is there.
  Value emitRowOf(Value start, Value index);
  /// The probabilities as operand of PV, and what its other operand is.
  Value emitOperandA(OpBuilder &builder, Value p);
  Value emitOperandB(OpBuilder &builder, Value slot);

  WsWgmmaPlanAttr plan;
  Ring q, k, v, vt;
  TileDealer dealer;
  ResultBuffer resultBuffer;
  ResultMap resultMap;
  /// Results' own memory.
  Value resultMemory;
  Value tilesPerHead, allHeads, rank;
  /// The blocks of keys that all CTAs of the cluster walk.
  ClusterTile walk;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSWGMMA_EMITTER_H
