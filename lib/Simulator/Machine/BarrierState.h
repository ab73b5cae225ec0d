//===- BarrierState.h - Barriers of CTAs and clusters -----------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_MACHINE_BARRIERSTATE_H
#define ATTN_LIB_SIMULATOR_MACHINE_BARRIERSTATE_H

#include "../Clocks/Clock.h"

namespace mlir::attn::sim {

/// Who arrives at a CTA or cluster barrier: the last arrival of each warp in
/// the open generation and in the one before.
struct BarrierArrivals {
  struct Arrival {
    uint32_t warp, epoch, inst;
  };
  llvm::SmallVector<Arrival, 0> open, previous;

  void complete() {
    previous = std::move(open);
    open.clear();
  }
};

struct NamedBarrier {
  uint32_t arrived = 0;  ///< threads
  uint32_t expected = 0; ///< 0: nobody arrived in this generation
  uint64_t generation = 0;
  bool countGiven = false;
  Knowledge gathering, published;
  /// Lanes of each warp that have arrived while others of it have not.
  std::array<uint32_t, 32> partial{};
  uint32_t votes = 0, trues = 0;
  uint32_t resultVotes = 0, resultTrues = 0;
  uint32_t firstInst = 0;
  BarrierArrivals arrivals;
};

/// A wait or a signal at an mbarrier.
struct PhaseEvent {
  enum Kind : uint8_t { Arrive, Commit, Copy };
  Kind kind = Arrive;
  bool fromOther = false; ///< signals: from another CTA
  uint32_t warp = 0;      ///< index in the cluster
  uint32_t epoch = 0;
  uint32_t inst = 0;
  int64_t phase = 0; ///< that the wait was for, or the signal counted in
};

struct Mbarrier {
  uint64_t phase = 0; ///< number of completed phases
  int32_t pending = 0, expected = 0;
  int64_t tx = 0;
  uint16_t actor = 0; ///< stamps the operations that signal here
  /// The same for operations that other CTAs issue: without assumption A4
  /// only waits of cluster scope learn of them.
  uint16_t remoteActor = 0;
  Knowledge gathering, published;
  /// From signals of cluster scope by other CTAs (unused under A4).
  Knowledge remoteGathering, remotePublished;
  uint32_t phaseIndex = 0; ///< in control clocks
  /// The last wait of each warp; signals of this phase, of the one before and
  /// of the one before that.
  llvm::SmallVector<PhaseEvent, 4> waits, signals, previous, earlier;
  uint32_t initInst = 0;
  uint32_t rank = 0; ///< of the CTA that has it
};

struct ClusterBarrier {
  uint64_t generation = 0;
  Knowledge gathering, published;
  BarrierArrivals arrivals;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_MACHINE_BARRIERSTATE_H
