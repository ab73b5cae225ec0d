//===- Cluster.cpp - CTAs, clusters, and operations in flight -------------===//

#include "Cluster.h"

using namespace mlir::attn::sim;

bool Cluster::done() const {
  for (const Warp *warp : warps)
    if (!warp->done())
      return false;
  return true;
}

uint32_t Cluster::newPhaseIndex() {
  return warps.size() * (2 + ctas.size()) + nextPhaseIndex++;
}

void mlir::attn::sim::wake(Cluster &cluster, Cta *cta, BlockKind kind,
                           uint64_t arg, uint64_t generation) {
  for (Warp *warp : cluster.warps) {
    if (cta && warp->cta != cta)
      continue;
    for (Split &s : warp->splits)
      if (s.block == kind && s.arg == arg && s.generation <= generation)
        s.block = BlockKind::None;
  }
}
