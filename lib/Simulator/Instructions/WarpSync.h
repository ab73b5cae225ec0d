//===- WarpSync.h - Instructions that need several lanes --------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_INSTRUCTIONS_WARPSYNC_H
#define ATTN_LIB_SIMULATOR_INSTRUCTIONS_WARPSYNC_H

#include "../Machine/Exec.h"

namespace mlir::attn::sim {

/// Waits until all live lanes of the member masks are here, then executes
/// `body` for each group of lanes with a mask of their own, which are the
/// active ones there. Executes nothing when the instruction has blocked or
/// faulted.
void forEachGroup(Exec &x, const Operand &mask,
                  llvm::function_ref<void(uint32_t members)> body);

/// The same for `.aligned` instructions, which all lanes of the warp execute.
bool gatherWarp(Exec &x);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_INSTRUCTIONS_WARPSYNC_H
