//===- CpAsync.h - cp.async in flight ---------------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_ASYNC_CPASYNC_H
#define ATTN_LIB_SIMULATOR_ASYNC_CPASYNC_H

#include "../Machine/Exec.h"

namespace mlir::attn::sim {

/// Finishes cp.async operations of the warp, in order, up to this one.
void completeCpAsync(Exec &x, Warp &warp, CpAsyncOp &last);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_ASYNC_CPASYNC_H
