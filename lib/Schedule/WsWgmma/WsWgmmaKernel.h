//===- WsWgmmaKernel.h - The kernel of ws_wgmma -----------------*- C++ -*-===//
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

#ifndef ATTN_LIB_SCHEDULE_WSWGMMA_WSWGMMAKERNEL_H
#define ATTN_LIB_SCHEDULE_WSWGMMA_WSWGMMAKERNEL_H

#include "../Kernel/Pipe.h"
#include "../Tma/TileDealer.h"
#include "../Wgmma/SlicedProducts.h"
#include "../Wgmma/WgmmaFacts.h"
#include "../Wgmma/WgmmaOperands.h"
#include "WsWgmma.h"
#include "attn/Schedule/Kernel/Scores.h"
#include "attn/Schedule/Kernel/StoreResults.h"

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

/// The rings of a kernel, and what goes with their slots.
struct WsWgmmaRings {
  /// Slots that the loads fill.
  Ring q, k, v;
  /// Transposed values, and widened keys and values; empty without.
  Ring vt, kw, vw;
  /// Scales of the rows in `kw`; null without.
  Value keyScales;
};

/// Puts widened keys and values in the place of what `rings` have in 8 bits:
/// the program of the partition that does so.
void widenKeys(TileWalk &walk, Control &control, const WsWgmmaRings &rings,
               function_ref<void(TileLoopOp)> complete);

class WsWgmmaKernel {
public:
  WsWgmmaKernel(KernelContext &context, WsWgmmaPlanAttr plan);
  LogicalResult run();

private:
  bool hasValueProducer() const { return plan.getLoaders() > 1; }
  /// Returns what consumers read K and V from.
  const Ring &getKeyOperands() const {
    return facts.hasNarrowKeys() ? rings.kw : rings.k;
  }
  const Ring &getValueOperands() const {
    if (facts.hasNarrowKeys())
      return rings.vw;
    return needsTransposer(facts) ? rings.vt : rings.v;
  }
  void makeRings();
  /// Makes the rings of 8-bit keys or values, and of what is made of them.
  void makeWidenedRings(StringRef name, StringRef made, int64_t columns,
                        int64_t stages, Ring &source, Ring &dest);
  void makeDealer();
  /// Lets TMA store the results, if it can.
  void makeResults();
  /// Calls `body` for each tile of this CTA.
  void forTiles(function_ref<void()> body);

  /// The programs of the partitions.
  void load();
  void loadTogether();
  void loadValues();
  void loadAndTranspose();
  void compute();
  SmallVector<Partition> listPartitions();

  /// Waits for a free slot, loads the rows of `head` from `first` on, and hands
  /// the slot over.
  void fill(const Ring &ring, Pipe &pipe, Value head, Value first);
  /// Returns how many blocks the tile's loads walk.
  Value countTrips();
  Value getLastBlock();
  /// Returns the block number `trip`, counted from `last`.
  Value getBlock(Value last, Value trip);
  Value getFirstKey(Value block);

  /// Hands `count` slots of K and of V back unread; none if that is null.
  void skip(Value count, Pipe &keys, Pipe &values);
  /// True if each warpgroup ends its loop at the first block that its own rows'
  /// window reaches; it hands the tile's other slots back unread.
  bool narrowsToWarpgroup() const;
  void reportNarrowing();
  /// Returns the tile's blocks, or those of the warpgroup.
  BlockBounds getBlocks();
  /// Calls `body` with the first key of each of `blocks`, as the plan says.
  void forBlocks(const BlockBounds &blocks, function_ref<void(Value)> body);
  /// Tells the loop which keys of its first block are needed, if the lengths
  /// do.
  void setFirstBlock(KVLoopOp loop);
  /// Returns scores times the scales of the keys of a slot.
  Value multiplyScales(Value s, Value scales);
  /// Changes products to scores and these to probabilities and the state of
  /// their rows, in which `o` is rescaled; null after a diagnostic.
  Value softmax(Value scale, Value key, Value s, Var &m, Var &l, Var &o);
  /// Stores the tile's results, through the slot of its queries if the plan
  /// has them there, which then is handed back.
  void store(RunningState running, Slot queries, Value queryTile);

  KernelContext &context;
  const ProblemFacts &facts;
  WsWgmmaPlanAttr plan;
  ImplicitLocOpBuilder &b;
  Control control;
  TileWalk walk;
  AttentionTile &tile;
  WsWgmmaRings rings;
  TileDealer dealer;
  ResultBuffer resultBuffer;
  ResultMap resultMap;
  /// Memory that results have to themselves.
  Value resultMemory;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSWGMMA_WSWGMMAKERNEL_H
