//===- EngineOps.h - What asynchronous engines share ------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_ASYNC_ENGINEOPS_H
#define ATTN_LIB_SIMULATOR_ASYNC_ENGINEOPS_H

#include "../Machine/Exec.h"

namespace mlir::attn::sim {

/// Whether something happens at once under this timing.
bool decideNow(Cluster &cluster, AsyncTiming timing);

/// The stream of signals of a warp to a CTA, which arrive in order.
inline uint64_t signalStream(const Warp &from, const Cta &to) {
  return uint64_t(to.rank + 1) << 32 | (from.index + 1);
}

/// Signals bytes on an mbarrier when an operation completes; reports a barrier
/// or a CTA that is gone.
void signalBytes(Cluster &cluster, EngineOp &op, Cta *cta, uint32_t barrier,
                 int64_t bytes);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_ASYNC_ENGINEOPS_H
