//===- Deadlock.h - What every warp waits for -------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_DEADLOCK_H
#define ATTN_LIB_SIMULATOR_DEADLOCK_H

namespace mlir::attn::sim {

struct Cluster;

/// Reports that no thread of the cluster can advance, with the state of what
/// each waits for.
void reportDeadlock(Cluster &cluster);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_DEADLOCK_H
