//===- WarpReplay.h - An order of warps that somebody states ----*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_WARPREPLAY_H
#define ATTN_LIB_SIMULATOR_WARPREPLAY_H

#include "Machine/Cluster.h"

namespace mlir::attn::sim {

/// Finishes an engine operation whose stream has no earlier one.
bool completeEngineOp(Cluster &cluster, bool random);

/// Runs the warp of the cluster's next turn until it cannot go on; false if it
/// ends elsewhere than the turn says, which RunReport::diverged describes.
bool replayTurn(Machine &machine, Cluster &cluster);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_WARPREPLAY_H
