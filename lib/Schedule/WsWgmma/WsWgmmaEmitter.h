//===- WsWgmmaEmitter.h - What makes the kernel of ws_wgmma -----*- C++ -*-===//
//
// Both partitions walk the same tiles and, in each, the same blocks of keys
// from the last to the first; three channels (q, k, v) hand slots from the
// producer to the consumers. 8-bit values whose keys are not contiguous are
// transposed on the way by all warps of the producer's partition, since wgmma
// reads such operands with the contraction's index contiguous only: the channel
// v leads from its elected thread to its warps, and vt, which has as many slots
// as the plan gives V, from there to the consumers. 8-bit keys and values
// beside 16-bit queries are widened by a partition of their own: k and v lead
// to it, kw and vw, which hold f16 as the queries do then, from there to the
// consumers. Where a counter deals the tiles, the producer's thread takes them
// from it, in clusters that of the leader, and one more channel (tile) hands
// their indices on.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WSWGMMA_WSWGMMAEMITTER_H
#define ATTN_LIB_SCHEDULE_WSWGMMA_WSWGMMAEMITTER_H

#include "../Wgmma/WgmmaEmitter.h"
#include "../Wgmma/WgmmaFacts.h"
#include "WsWgmma.h"

namespace mlir::attn {

/// The roles. The last two are further roles of the producer's partition.
inline constexpr Role kConsumer{"consumer", "consumer"};
inline constexpr Role kProducer{"producer", "producer"};
/// Loads values where the plan has two loading warps.
inline constexpr Role kValueProducer{"value_producer", "value_producer"};
/// Widens keys and values of 8 bits.
inline constexpr Role kWidener{"widener", "widener"};
inline constexpr Role kTransposer{"transposer", "producer"};
inline constexpr Role kTileReader{"reader", "producer"};

/// What a partition's loop over tiles carries: its cursors.
struct TileCursors {
  /// Of the producer, or of a consumer: there `v` is what PV reads. Null in a
  /// producer that does not load values.
  Value q, k, v;
  /// Of the transposer, where there is one.
  Value source = Value(), dest = Value();

  TileCursors(Value q, Value k, Value v) : q(q), k(k), v(v) {}
  /// The cursors as the loop has them, in the order of list().
  explicit TileCursors(ValueRange carried);
  SmallVector<Value> list() const;
};

class WsWgmmaEmitter : WgmmaEmitter {
public:
  WsWgmmaEmitter(KernelContext &context, WsWgmmaPlanAttr plan)
      : WgmmaEmitter(
            context,
            {plan.getBlockM(), plan.getBlockN(), plan.getOrder(),
             plan.getGroupHeads(), plan.getCluster(), plan.getDynamic()},
            {plan.getQkAhead(), plan.getSoftmax(), plan.getKeyQuads()}),
        plan(plan),
        resultBuffer(getResultBuffer(context.facts, plan, context.target)) {}
  LogicalResult run();

private:
  using TileBody = function_ref<FailureOr<TileCursors>(TileCursors)>;

  bool hasValueProducer() const { return plan.getLoaders() > 1; }
  /// What consumers read K and V from.
  const Ring &keyOperands() const { return facts.hasNarrowKeys() ? kw : k; }
  const Ring &values() const {
    if (facts.hasNarrowKeys())
      return vw;
    return needsTransposer(facts) ? vt : v;
  }
  void makeRings();
  /// The rings of 8-bit keys or values, and of what is made of them.
  void makeWidenedRings(StringRef name, StringRef made, int64_t columns,
                        int64_t stages, Ring &source, Ring &dest);
  void makeDealer();
  /// Lets TMA store the results, if it can.
  void makeResults();
  /// The loop over this CTA's tiles in a partition, which carries its cursors.
  LogicalResult emitTiles(StringRef partition, TileBody body);
  TileCursors startCursors(StringRef partition);

  /// Hands `count` slots of K and of V back unread.
  void emitSkip(Value count, TileCursors &cursors);
  /// Lets each warpgroup end its loop at the first block that its own rows'
  /// window reaches; it hands the tile's other slots back unread.
  void narrowToWarpgroup();
  /// Tells the loop which keys of its first block are needed, if the lengths
  /// do.
  void setFirstBlock(KVLoopOp loop);
  /// The partitions, each with its program.
  LogicalResult emitPartitions();
  LogicalResult emitConsumer();
  FailureOr<TileCursors> emitConsumerTile(TileCursors cursors);
  LogicalResult emitProducer();
  TileCursors emitProducerTile(TileCursors cursors);
  /// The producer of values only.
  LogicalResult emitValueProducer();
  /// Loads the tile's blocks into rings, from the last to the first; the
  /// cursors behind them.
  SmallVector<Value> emitBlockLoads(ArrayRef<const Ring *> rings,
                                    ArrayRef<Value> cursors, StringRef role);
  /// The same for both rings, keys a block in front of values.
  TileCursors emitKeysAhead(TileCursors cursors);
  /// The producer of 8-bit operands, in all threads of its partition.
  LogicalResult emitTransposingProducer();
  /// A loop over trips that carries the cursors.
  TileCursors emitTrips(Value begin, Value end, TileCursors cursors,
                        llvm::function_ref<void(Value, TileCursors &)> body);
  TileCursors emitTransposingTile(TileCursors cursors);
  /// Copies a slot of v to one of vt.
  void emitTransposition(TileCursors &cursors);
  /// The partition that widens keys and values.
  LogicalResult emitWidener();
  /// Writes the next slot of `from` to the next one of `to` in wider elements,
  /// with `scales` of its rows beside it if there is a ring for them, else
  /// times these; moves the cursors. Both are null without scales.
  void emitWidening(const Ring &from, const Ring &to, Value scales,
                    Value scaleRing, Value &source, Value &dest);
  /// Scales of the rows of a block, from a view of one column.
  Value loadScales(Value view, Value block);
  /// Loops over the tile's blocks, with the cursors of emitWidener.
  SmallVector<Value> emitWideningTile(ValueRange cursors);
  /// The loads of the tile's queries, and of K and V of a block.
  void loadQueries(const TileCursors &cursors);
  void loadBlock(Value block, const TileCursors &cursors);
  /// Moves the cursors of K and V on.
  void advanceBlock(TileCursors &cursors) {
    cursors.k = advance(cursors.k, k);
    cursors.v = advance(cursors.v, v);
  }

  WsWgmmaPlanAttr plan;
  Ring q, k, v, vt, kw, vw;
  /// Scales of the rows in `kw`; null without.
  Value keyScales;
  TileDealer dealer;
  ResultBuffer resultBuffer;
  ResultMap resultMap;
  /// What PV reads probabilities from, unless from registers.
  Value probabilities;
  /// Results' own memory.
  Value resultMemory;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSWGMMA_WSWGMMAEMITTER_H
