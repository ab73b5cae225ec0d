//===- ClusterSetup.h - The state in which warps start ----------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_MACHINE_CLUSTERSETUP_H
#define ATTN_LIB_SIMULATOR_MACHINE_CLUSTERSETUP_H

#include <cstdint>
#include <memory>

namespace mlir::attn::sim {

struct Cluster;
class Machine;

/// The cluster of this number in the grid, before its first instruction.
std::unique_ptr<Cluster> createCluster(Machine &m, uint32_t linear);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_MACHINE_CLUSTERSETUP_H
