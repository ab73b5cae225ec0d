//===- WarpSync.h - Instructions that need several lanes --------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_INSTRUCTIONS_WARPSYNC_H
#define ATTN_LIB_SIMULATOR_INSTRUCTIONS_WARPSYNC_H

#include "../Machine/Exec.h"

namespace mlir::attn::sim {

/// Waits until all live lanes of the member mask are here. False when the
/// instruction has blocked or faulted.
bool gatherLanes(Exec &x, const Operand &mask, uint32_t &members);

/// The same for `.aligned` instructions, which all lanes of the warp execute.
bool gatherWarp(Exec &x);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_INSTRUCTIONS_WARPSYNC_H
