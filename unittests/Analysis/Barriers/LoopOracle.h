//===- LoopOracle.h - Small kernels with an unknown bound -------*- C++ -*-===//

#ifndef ATTN_UNITTESTS_ANALYSIS_BARRIERS_LOOPORACLE_H
#define ATTN_UNITTESTS_ANALYSIS_BARRIERS_LOOPORACLE_H

#include "BarrierOracle.h"

namespace mlir::attn::oracle {

/// In which trips of a tile an op is executed: in all, the first, all but the
/// first, the last, all but the last, or from the third or the eighth one on.
enum class When { Always, First, NotFirst, Last, NotLast, Third, Eighth };

/// An op of a loop, or behind it.
struct LoopOp {
  SmallOp::Kind kind = SmallOp::Wait;
  /// Which of the kernel's mbarriers: those that a slot is full, those that it
  /// is empty, and one behind the loops.
  unsigned array = 0;
  /// Of a wait: added to the lap around the ring.
  unsigned parity = 0;
  unsigned bytes = 4;
  /// At the ring's first slot, and not at that of the cursor.
  bool isAtFirst = false;
  /// Only of kernels that walk tiles.
  When when = When::Always;
};

/// Which of a tile's trips a loop takes: all, or of two parts one.
enum class Part { All, First, Second };

/// The trips of a tile, and how many of them are in the first part.
struct TileTrips {
  unsigned all = 0, first = 0;
};

/// A warp that goes around a ring as often as the launch says.
struct LoopActor {
  std::vector<LoopOp> body, after;
  /// The loops of a tile, one behind the other, all with this body.
  std::vector<Part> parts = {Part::All};
  /// Trips more than the others', in the last loop.
  int more = 0;
};

/// Warps that fill and empty slots of a ring in loops of one bound.
struct LoopKernel {
  unsigned depth = 1;
  /// They do so for each of a row of tiles, with a bound of its own, and where
  /// the first part of it ends.
  bool walksTiles = false;
  std::vector<LoopActor> actors;
  /// Of each array the arrivals that its mbarriers expect.
  std::vector<unsigned> counts;
};

/// A ring, mostly with something changed in it.
LoopKernel makeLoopKernel(std::mt19937 &rng, bool walksTiles = false);

/// The kernel at the barrier rung; its argument is the bound, or where those of
/// tiles are.
std::string print(const LoopKernel &kernel);

/// The kernel with bounds, its trips behind each other.
SmallKernel unroll(const LoopKernel &kernel, llvm::ArrayRef<TileTrips> tiles);

} // namespace mlir::attn::oracle

#endif // ATTN_UNITTESTS_ANALYSIS_BARRIERS_LOOPORACLE_H
