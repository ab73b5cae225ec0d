//===- Machine.h - State of a running launch --------------------*- C++ -*-===//
//
// A Machine is one launch: its memory, its geometry, what was found. The
// scheduler makes its clusters and advances them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_MACHINE_MACHINE_H
#define ATTN_LIB_SIMULATOR_MACHINE_MACHINE_H

#include "../Clocks/Shadow.h"
#include "../PTX/ProgramImpl.h"
#include "attn/Simulator/Machine/GlobalMemory.h"
#include "attn/Simulator/Machine/LaunchConfig.h"
#include "attn/Simulator/Machine/Report.h"
#include "attn/Support/WarpNames.h"
#include <atomic>
#include <set>

namespace mlir::attn::sim {

struct Cluster;

/// One launch.
class Machine {
public:
  Machine(const ProgramImpl &program, Memory &memory,
          const LaunchConfig &config, const KernelInfo &kernel)
      : program(program), memory(memory), config(config), kernel(kernel) {}

  const ProgramImpl &program;
  Memory &memory;
  const LaunchConfig &config;
  const KernelInfo &kernel;
  uint32_t entry = 0;
  std::array<uint32_t, 3> clusters{};
  uint32_t threadsPerCta = 0, warpsPerCta = 0;
  uint64_t memoryLimit = 0;              ///< bytes of host memory
  std::vector<uint64_t> globalAddresses; ///< of module variables
  std::vector<uint8_t> params;
  GlobalShadow globalShadow;
  std::atomic<bool> stop{false};
  /// Clusters run on several host threads: the first thing that is found ends
  /// that, since what is found next would depend on the host's timing.
  bool parallel = false;
  std::atomic<bool> repeat{false};

  /// Executions by instruction, of all clusters.
  std::vector<uint64_t> execCount;

  /// What clusters have printed, by number.
  std::map<uint32_t, std::string> printed;

  /// Synchronisation variables in memory: what was published to an address for
  /// one CTA, cluster or GPU.
  std::mutex syncMutex;
  std::map<std::pair<uint64_t, uint64_t>, Knowledge> syncVariables;

  uint32_t nextCluster = 0; ///< of interleaved launches
  RunReport result;

  uint32_t countClusters() const {
    return clusters[0] * clusters[1] * clusters[2];
  }
  /// Adds a finding, or counts it where the same is known.
  void report(Finding finding);
  /// Says of each finding who it occurred to.
  void nameActors();
  /// Begins from the start, as if nothing had run.
  void forgetFindings();
  /// Adds what a cluster has executed.
  void count(Cluster &cluster);
  /// Takes the next cluster that has not been launched, if there is one.
  bool claimCluster(std::array<uint32_t, 3> &id);

private:
  std::mutex reportMutex;
  std::map<std::string, size_t> seen;
  std::vector<std::set<WarpName>> actors; ///< of each finding
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_MACHINE_MACHINE_H
