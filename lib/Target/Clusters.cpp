//===- Clusters.cpp - How many clusters a chip holds ----------------------===//

#include "attn/Target/Clusters.h"

using namespace mlir;
using namespace mlir::attn;

unsigned attn::getClusteredSMs(const TargetRow &target, unsigned size) {
  if (size == 1)
    return target.smCount;
  if (target.chip != "sm_90a")
    return 0;
  // cuOccupancyMaxActiveClusters on an H200, which has the H100's 132 SMs: 66
  // clusters of 2, 30 of 4.
  switch (size) {
  case 2:
    return 132;
  case 4:
    return 120;
  default:
    return 0;
  }
}
