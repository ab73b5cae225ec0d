//===- ReplayTurn.h - An order of warps to run again ------------*- C++ -*-===//

#ifndef ATTN_SUPPORT_REPLAYTURN_H
#define ATTN_SUPPORT_REPLAYTURN_H

#include <cstdint>

namespace mlir::attn {

/// Why a warp's turn ends.
enum class TurnEnd {
  Mbarrier,       ///< waits for the mbarrier at `place`
  Barrier,        ///< waits at barrier `place` of the CTA; 0 is gpu.barrier
  ClusterBarrier, ///< waits at the cluster's barrier
  Exit,           ///< has exited
  Fault           ///< does what is wrong
};

/// A warp goes on until it cannot.
struct ReplayTurn {
  unsigned cta = 0;  ///< in the cluster
  unsigned warp = 0; ///< in the CTA
  TurnEnd end = TurnEnd::Fault;
  /// Bytes from the start of shared memory, or the barrier's number.
  int64_t place = 0;
};

} // namespace mlir::attn

#endif // ATTN_SUPPORT_REPLAYTURN_H
