//===- EngineOps.h - What asynchronous engines share ---------------*- C++
//-*-===//

#ifndef ATTN_LIB_SIMULATOR_ASYNC_ENGINEOPS_H
#define ATTN_LIB_SIMULATOR_ASYNC_ENGINEOPS_H

#include "../Machine/Machine.h"

namespace mlir::attn::sim {

enum class AtomicOp : uint8_t {
  Add,
  Min,
  Max,
  And,
  Or,
  Xor,
  Exch,
  Cas,
  Inc,
  Dec
};

/// One atomic operation on a value of the given type.
uint64_t applyAtomic(AtomicOp op, Type type, uint64_t old, uint64_t value);
bool parseAtomicOp(llvm::StringRef name, AtomicOp &op);

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
