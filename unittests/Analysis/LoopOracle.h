//===- LoopOracle.h - Small kernels with an unknown bound -------*- C++ -*-===//

#ifndef ATTN_UNITTESTS_ANALYSIS_LOOPORACLE_H
#define ATTN_UNITTESTS_ANALYSIS_LOOPORACLE_H

#include "BarrierOracle.h"

namespace mlir::attn::oracle {

/// An op of a loop, or behind it.
struct LoopOp {
  SmallOp::Kind kind = SmallOp::Wait;
  /// Which of the kernel's mbarriers: those that a slot is full, those that it
  /// is empty, and one behind the loops.
  unsigned array = 0;
  /// Of a wait: added to the lap around the ring.
  unsigned parity = 0;
  unsigned bytes = 4;
};

/// A warp that goes around a ring as often as the launch says.
struct LoopActor {
  std::vector<LoopOp> body, after;
  /// Trips more than the others'.
  int more = 0;
};

/// Warps that fill and empty slots of a ring in loops of one bound.
struct LoopKernel {
  unsigned depth = 1;
  std::vector<LoopActor> actors;
  /// Of each array the arrivals that its mbarriers expect.
  std::vector<unsigned> counts;
};

/// A ring, mostly with something changed in it.
LoopKernel makeLoopKernel(std::mt19937 &rng);

/// The kernel at the barrier rung; its argument is the bound.
std::string print(const LoopKernel &kernel);

/// The kernel with a bound, its trips behind each other.
SmallKernel unroll(const LoopKernel &kernel, unsigned bound);

} // namespace mlir::attn::oracle

#endif // ATTN_UNITTESTS_ANALYSIS_LOOPORACLE_H
