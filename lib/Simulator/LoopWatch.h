//===- LoopWatch.h - Loops that cannot end ----------------------*- C++ -*-===//
//
// A warp that comes back to a state in which it has been, with the same memory
// to read, stays in its loop for as long as nobody stores. When all warps that
// can run do that, nobody will. Of each warp the state at some turn is kept,
// and at later turns compared with; the turns at which it is kept are twice as
// many as before each time, so that every loop is found, whatever its length.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_LOOPWATCH_H
#define ATTN_LIB_SIMULATOR_LOOPWATCH_H

#include "Machine/Exec.h"

namespace mlir::attn::sim {

/// Watches clusters that read each other's memory, if any do.
class LoopWatch {
public:
  explicit LoopWatch(const Machine &machine) : machine(machine) {}

  /// The clusters that are there from now on.
  void add(Cluster &cluster);
  void remove(Cluster &cluster);
  /// A warp of the cluster has had a turn. True when all of them repeat what
  /// they have done before, and nothing has been stored between.
  bool repeats(Warp &warp);
  /// Something has happened that may let them go on: compares anew. False when
  /// that has been so too often.
  bool restart(bool isOnlyTry);
  llvm::ArrayRef<Cluster *> getClusters() const { return clusters; }
  /// Reports the loop that has been found; a warp of the cluster is in it.
  void report(Exec &x, const Warp &warp) const;
  /// What the clusters have executed between the last two turns at which their
  /// state was kept, as "lines 12 to 17". Empty when that is known already.
  std::string takeLines() { return std::exchange(lines, ""); }

private:
  /// Keeps the state of all warps.
  void open();
  /// What has been executed since then.
  std::string describeLines() const;
  bool isSame(const Warp &warp) const;
  bool comesBack(Warp &warp);
  /// How many times what has an effect was executed, and memory changed.
  uint64_t countEffects(Effect effect) const;
  bool allRepeat() const;

  const Machine &machine;
  llvm::SmallVector<Cluster *, 1> clusters;
  std::vector<std::vector<uint64_t>> executed; ///< by cluster, when kept
  uint64_t others = 0, meetings = 0;           ///< when the state was kept
  uint64_t turns = 0, opened = 0, nextOpening = 256;
  uint64_t comparisons = 0;
  bool isOpen = false;
  unsigned tries = 0; ///< restarts after which nothing was different
  std::string lines;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_LOOPWATCH_H
