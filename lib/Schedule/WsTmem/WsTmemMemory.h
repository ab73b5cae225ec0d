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
// The products of the thread that multiplies, for a block j, QK(i, j) and
// PV(i, j) being those of tile i:
//
//   P over S:    PV(0, j)  QK(0, j + 1)  PV(1, j)  QK(1, j + 1)
//   P beside S:  QK(0, j + 1)  QK(1, j + 1)  PV(0, j)  PV(1, j)
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
inline constexpr Role kSoftmaxes[kTmemTiles] = {{"softmax0", "softmax0"},
                                                {"softmax1", "softmax1"}};

/// Keys of a block whose probabilities are handed on by themselves.
struct KeyPart {
  /// The channel's name for them; empty if these are all keys of a block.
  StringRef name;
  int64_t first, count;
};

/// The tensor memory of a tile and the channels that guard it.
struct TensorTile {
  /// Guards all of it, or the scores alone.
  Value channel;
  /// Guards probabilities and results where these have columns of their own;
  /// else null.
  Value resultChannel;
  Value scores, probabilities, results;
  /// Whose turn it is with the queries' memory where results take it, the
  /// loader's or the softmax's; else null.
  Value queryChannel;
};

/// All that the roles share.
struct WsTmemMemory {
  /// K and V may share a ring.
  Ring q, k, v;
  TensorTile tiles[kTmemTiles];
  /// The parts in which probabilities are handed on, in order.
  SmallVector<KeyPart> parts;
  TileDealer dealer;
  ResultBuffer resultBuffer;
  /// Where TMA stores results; else null.
  Value resultMap;

  bool sharesRing() const { return k.channel == v.channel; }
};

WsTmemMemory makeMemory(const TileWalk &walk, WsTmemPlanAttr plan);

/// Returns the type of a buffer in tensor memory.
BufferType getTensorType(ArrayRef<int64_t> shape, Type elementType);

/// The ends of a role of the channels of K and V.
class KeyPipes {
public:
  KeyPipes(Control &control, const WsTmemMemory &memory, StringRef role)
      : key(control, memory.k.channel, role) {
    if (!memory.sharesRing())
      apart.emplace(control, memory.v.channel, role);
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
  void acquire(const KeyPart &part);
  /// Waits for all of that slot.
  void acquire();
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
