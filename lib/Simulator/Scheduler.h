//===- Scheduler.h - In which order a launch advances -----------*- C++ -*-===//
//
// Clusters that cannot talk to each other run on several host threads;
// everything inside a cluster is single-threaded and depends on the seed only.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_SCHEDULER_H
#define ATTN_LIB_SIMULATOR_SCHEDULER_H

#include "Machine/Machine.h"
#include <atomic>
#include <thread>

namespace mlir::attn::sim {

class DroppedLoads;
class LoopWatch;

/// Runs one launch.
class Scheduler {
public:
  explicit Scheduler(Machine &machine);
  ~Scheduler();
  RunReport run();

private:
  Machine &machine;
  std::thread::id caller = std::this_thread::get_id();
  /// Null where a launch is strict.
  std::unique_ptr<DroppedLoads> droppedLoads;
  std::atomic<uint64_t> storedBytes{0};
  std::atomic<uint64_t> finishedClusters{0};

  void runParallel(uint32_t total, unsigned threads);
  void runInOrder(uint32_t total);
  void runInterleaved(uint32_t total);
  /// The cluster of LaunchConfig::replay alone.
  void runReplay();
  /// Returns how many clusters run.
  uint32_t countClusters() const;
  /// Makes the cluster of that number among those that run.
  std::unique_ptr<Cluster> makeCluster(uint32_t linear);
  /// Advances one warp or engine operation; false when all is done.
  bool step(Cluster &cluster, LoopWatch &watch);
  /// The whole cluster, by itself.
  void runToEnd(Cluster &cluster);
  /// All warps that can run are in loops that do not end by themselves: does
  /// what may end them. False when there is nothing left.
  bool endLoops(LoopWatch &watch, Cluster &cluster, Warp &warp);
  void finish(Cluster &cluster);
  /// Looks whether the launch is to stop, and says how far it is.
  void tick(Cluster &cluster, LoopWatch &watch);
  double getFraction() const;
  /// Forgets all accesses of global memory, but those of the launch before.
  void startShadow();
  /// Lists what the launch has touched, in its report.
  void listTouched();
  void resetDroppedLoads();
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_SCHEDULER_H
