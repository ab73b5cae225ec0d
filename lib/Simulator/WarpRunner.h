//===- WarpRunner.h - Running one warp --------------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_WARPRUNNER_H
#define ATTN_LIB_SIMULATOR_WARPRUNNER_H

#include "Machine/Exec.h"

namespace mlir::attn::sim {

/// Executes up to `quantum` instructions of a warp, fewer when nothing of it
/// can run.
void runWarp(Exec &x, Warp &warp, uint32_t quantum);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_WARPRUNNER_H
