//===- Clusters.h - How many clusters a chip holds --------------*- C++ -*-===//

#ifndef ATTN_TARGET_CLUSTERS_H
#define ATTN_TARGET_CLUSTERS_H

#include "attn/Target/TargetTable.h"

namespace mlir::attn {

/// SMs of the target's reference board that CTAs of clusters of `size` fill at
/// once, with one CTA on an SM. A cluster stays inside a part of the chip
/// (GPC), whose number of SMs need not be a multiple of `size`. 0 where it is
/// not known.
unsigned getClusteredSMs(const TargetRow &target, unsigned size);

} // namespace mlir::attn

#endif // ATTN_TARGET_CLUSTERS_H
