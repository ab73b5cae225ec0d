//===- RingOracle.h - Small rings with several positions --------*- C++ -*-===//

#ifndef ATTN_UNITTESTS_ANALYSIS_BARRIERS_RINGORACLE_H
#define ATTN_UNITTESTS_ANALYSIS_BARRIERS_RINGORACLE_H

#include "BarrierOracle.h"

namespace mlir::attn::oracle {

/// A position of a ring in a trip: that of one of the warp's cursors, and so
/// many further on.
struct Position {
  unsigned cursor = 0;
  unsigned ahead = 0;
  /// What is added to the slot afterwards, without going around.
  unsigned added = 0;
};

/// An op, whose slot, parity and word need not be those of one position.
struct RingOp {
  SmallOp::Kind kind = SmallOp::Wait;
  /// Of the mbarriers: 0 that a slot is full, 1 that it is empty.
  unsigned array = 0;
  Position slot, parity, word;
};

/// A cursor that a warp takes along.
struct RingCursor {
  /// A lap ahead of the first slot, as one is that waits for empty slots.
  bool isLapAhead = false;
  /// Positions that it goes on by in a trip.
  unsigned advance = 1;
  /// It begins each tile where it began the first one.
  bool startsAnew = false;
};

struct RingActor {
  std::vector<RingCursor> cursors;
  std::vector<RingOp> body;
};

/// Warps that fill and empty slots of a ring, several of them in a trip, for
/// each of a row of tiles with so many trips, or in one loop with as many as
/// the launch says.
struct RingKernel {
  unsigned depth = 1;
  unsigned trips = 1;
  bool walksTiles = true;
  std::vector<RingActor> actors;
};

/// A ring that is right: a producer fills its slots by copies or by stores, and
/// a consumer reads them and gives them back.
RingKernel makeRing(unsigned depth, unsigned positions, unsigned trips,
                    bool sends);

/// A ring of 1 to 9 slots, of which a trip takes 1 to 3, mostly with something
/// changed in it.
RingKernel makeRingKernel(std::mt19937 &rng);

/// The kernel at the barrier rung. Its argument is the number of trips, if it
/// walks no tiles.
std::string print(const RingKernel &kernel);

/// The kernel for so many tiles, or trips, its ops behind each other; `wrong`
/// says if one lies outside of the ring.
SmallKernel unroll(const RingKernel &kernel, unsigned count,
                   std::optional<std::string> &wrong);

} // namespace mlir::attn::oracle

#endif // ATTN_UNITTESTS_ANALYSIS_BARRIERS_RINGORACLE_H
