//===- BarrierOracle.h - Small kernels in every order -----------*- C++ -*-===//

#ifndef ATTN_UNITTESTS_ANALYSIS_BARRIERS_BARRIERORACLE_H
#define ATTN_UNITTESTS_ANALYSIS_BARRIERS_BARRIERORACLE_H

#include "mlir/Support/LLVM.h"
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace mlir::attn::oracle {

/// What a thread does next.
struct SmallOp {
  enum Kind {
    Wait,   ///< for the phase of `parity` of `barrier`
    Arrive, ///< at `barrier`
    Expect, ///< arrives and announces `bytes`
    Send,   ///< starts a copy to `word`, whose 4 bytes `barrier` counts
    Load,   ///< of `word`
    Store,  ///< to `word`
    Sync    ///< waits for all threads of the warp
  };
  Kind kind = Wait;
  unsigned barrier = 0;
  unsigned parity = 0;
  unsigned bytes = 4;
  unsigned word = 0;
  /// All threads of the warp do it: a wait, a load, or an arrival of one of
  /// them when all have come. Else the elected one does.
  bool isOfAll = false;
};

/// Warps without loops: a loop has its trips behind each other. Words that are
/// sent to are not stored to.
struct SmallKernel {
  std::vector<std::vector<SmallOp>> actors;
  /// Of each mbarrier the arrivals that it expects.
  std::vector<unsigned> counts;
};

/// A ring, a chain or anything, mostly with something changed in it. With
/// `lanes` not only elected threads do something.
SmallKernel makeKernel(std::mt19937 &rng, bool lanes);

/// The kernel at the barrier rung.
std::string print(const SmallKernel &kernel);

/// Executes the kernel in every order; `wrong` says what goes wrong in one.
/// False if there are too many.
bool explore(const SmallKernel &kernel, std::optional<std::string> &wrong);

} // namespace mlir::attn::oracle

#endif // ATTN_UNITTESTS_ANALYSIS_BARRIERS_BARRIERORACLE_H
