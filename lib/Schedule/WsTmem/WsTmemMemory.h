//===- WsTmemMemory.h - Memory and channels of ws_tmem ----------*- C++ -*-===//
//
// The CTA's two tiles of 128 queries walk the blocks that one of them needs. A
// channel t0 or t1 guards the tensor memory of a tile: its scores S, its
// probabilities P, which take the second half of the scores' columns, and its
// results O. The thread that multiplies hands it on when S of a block is there;
// since it has started PV of the block before ahead of that QK, and commits
// cover all that was started, O is then at rest as well. The tile's warpgroup
// reads S, rescales O where a maximum has grown, writes P and hands it back. So
// n blocks are n + 1 rounds: the last one hands over O alone.
//
// Where P has columns of its own, a channel s0 or s1 guards S, and p0 or p1
// guards P and O.
//
// With one tile there are two slots of S, each with P over its second half,
// which the channel t0 guards: n blocks are n + 2 rounds. The channel o0 guards
// O from block to block: the softmax hands it on as soon as it has rescaled it.
// The channel o hands O of the whole tile to the warpgroup that stores it, and
// factor what its rows are multiplied by.
//
// Probabilities of half tiles have one buffer of shared memory, which that
// channel guards as well: a block's are written behind the wait for the results
// of the block before, whose products have read the ones before.
//
// The products of the thread that multiplies, for a block j, QK(i, j) and
// PV(i, j) being those of tile i:
//
//   P over S:    PV(0, j)  QK(0, j + 1)  PV(1, j)  QK(1, j + 1)
//   P beside S:  QK(0, j + 1)  QK(1, j + 1)  PV(0, j)  PV(1, j)
//   one tile:    PV(0, j)  QK(0, j + 2)
//
// That QK of a block may overwrite what PV of the block before still reads as P
// rests on products of one thread being executed in their order
// (attn.tcgen05.mma).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WSTMEM_WSTMEMMEMORY_H
#define ATTN_LIB_SCHEDULE_WSTMEM_WSTMEMMEMORY_H

#include "../Kernel/Pipe.h"
#include "../Tma/TileDealer.h"
#include "WsTmem.h"

namespace mlir::attn {

inline constexpr Role kLoader{"load", "load"};
inline constexpr Role kMultiplier{"mma", "mma"};
inline constexpr Role kSoftmaxes[kMostTmemTiles] = {{"softmax0", "softmax0"},
                                                    {"softmax1", "softmax1"}};
/// The role that says which rows the keys of a block are, where these lie
/// apart.
inline constexpr Role kNumberer{"rows", "rows"};
/// The role that makes rows of 16 bits of 8-bit keys.
inline constexpr Role kTmemWidener{"widen", "widen"};
/// The role that stores results with one tile.
inline constexpr Role kStorer{"results", "results"};
/// The role by which the threads that load read which tile is dealt, where they
/// do not know it.
inline constexpr Role kDealtReader{"reader", "load"};

/// Returns which tiles CTAs walk under a plan.
TilePlan getTilePlan(const ProblemFacts &facts, WsTmemPlanAttr plan);

/// Keys of a block whose probabilities are handed on by themselves.
struct KeyPart {
  /// The channel's name for them; empty if these are all keys of a block.
  StringRef name;
  int64_t first, count;
};

/// The tensor memory of a tile and the channels that guard it.
struct TensorTile {
  /// Guards all of it, or the scores and what lies over them.
  Value channel;
  /// Guards results where these may change while scores do not, and
  /// probabilities that have columns of their own; else null.
  Value resultChannel;
  Value scores, probabilities, results;
  /// The slots of scores where there are several, each with a field for them
  /// and one for probabilities; else null, and the views above are of all.
  Value scoreRing;
  BufferType scoreType, probabilityType;
  /// Probabilities in shared memory as parts of a block's keys, as many as a
  /// slot of values has; else null.
  Value probabilityParts;
  /// Whose turn it is with the queries' memory where results take it, the
  /// loader's or the softmax's; else null.
  Value queryChannel;

  /// Return the scores and probabilities of a slot of the scores.
  Value getScores(ImplicitLocOpBuilder &b, const Slot &slot) const;
  Value getProbabilities(ImplicitLocOpBuilder &b, const Slot &slot) const;
};

/// All that the roles share.
struct WsTmemMemory {
  /// K and V may share a ring.
  Ring q, k, v;
  /// Those of 8-bit keys and values, which fill the ones above; else without.
  Ring rawK, rawV;
  /// Those of q and k with the maps of rotated columns, where these are tensors
  /// of their own; else without.
  Ring qRope, kRope;
  SmallVector<TensorTile, kMostTmemTiles> tiles;
  /// The parts in which probabilities are handed on, in order.
  SmallVector<KeyPart> parts;
  TileDealer dealer;
  ResultBuffer resultBuffer;
  /// Where TMA stores results; else null.
  Value resultMap;
  /// With one tile the channel of the whole tile's results, and that of what
  /// their rows are multiplied by with its memory; else null. Beside it the
  /// weights of results that rows go on from, if they do.
  Value resultChannel, factorChannel, factors, initWeights;

  /// The channel of numbers of a block's rows, and their ring, where rows lie
  /// apart; else null.
  Value rowChannel, rowNumbers;

  /// Return the rings of keys and values that are loaded.
  const Ring &getLoadedKeys() const { return rawK.channel ? rawK : k; }
  const Ring &getLoadedValues() const { return rawK.channel ? rawV : v; }
  /// Returns the numbers in a slot.
  Value getRowNumbers(ImplicitLocOpBuilder &b, const Slot &slot) const;
};

WsTmemMemory makeMemory(const TileWalk &walk, WsTmemPlanAttr plan);

/// Returns the type of a buffer in tensor memory.
BufferType getTensorType(ArrayRef<int64_t> shape, Type elementType);
/// Returns that of scores or results, of half tiles if there are 64 rows.
BufferType getAccumulatorType(MLIRContext *context, ArrayRef<int64_t> shape);

/// Returns `columns` columns of a buffer in tensor memory from `first` on.
Value sliceTensor(ImplicitLocOpBuilder &b, Value buffer, int64_t first,
                  int64_t columns);
/// Returns what is in these columns, a row in each thread of a warpgroup.
Value loadTensor(const AttentionTile &tile, Value buffer, int64_t first,
                 int64_t columns);

/// The ends of a role of the channels of K and V, which may be one.
class KeyPipes {
public:
  KeyPipes(Control &control, const Ring &k, const Ring &v, StringRef role)
      : key(control, k.channel, role) {
    if (k.channel != v.channel)
      apart.emplace(control, v.channel, role);
  }

  Pipe &keys() { return key; }
  Pipe &values() { return apart ? *apart : key; }

private:
  Pipe key;
  std::optional<Pipe> apart;
};

/// The multiplying thread's end of a channel on which a softmax may hand slots
/// on in parts. A release also moves to the next slot.
class PartedPipe {
public:
  PartedPipe(Control &control, Value channel, ArrayRef<KeyPart> parts)
      : pipe(control, channel, kMultiplier), parts(parts) {}

  /// Waits for a part of the slot at the cursor.
  Slot acquire(const KeyPart &part);
  /// Waits for all of that slot.
  Slot acquire();
  /// Hands the slot on, all parts of which were acquired, and moves to the next
  /// one.
  void release();

private:
  Pipe pipe;
  ArrayRef<KeyPart> parts;
  SmallVector<Slot> acquired;
};

/// The multiplying thread's ends of the channels of a tile.
class TilePipes {
public:
  TilePipes(Control &control, const TensorTile &tile, ArrayRef<KeyPart> parts);

  PartedPipe &scores() { return scorePipe; }
  /// Returns the end that guards probabilities and results.
  PartedPipe &probabilities() { return resultPipe ? *resultPipe : scorePipe; }

private:
  PartedPipe scorePipe;
  std::optional<PartedPipe> resultPipe;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSTMEM_WSTMEMMEMORY_H
