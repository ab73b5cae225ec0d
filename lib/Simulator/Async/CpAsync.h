//===- CpAsync.h - cp.async in flight ---------------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_ASYNC_CPASYNC_H
#define ATTN_LIB_SIMULATOR_ASYNC_CPASYNC_H

#include "../Machine/Exec.h"

namespace mlir::attn::sim {

/// Finishes the oldest of the warp's cp.async operations in flight.
void completeCpAsync(Exec &x, Warp &warp);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_ASYNC_CPASYNC_H
