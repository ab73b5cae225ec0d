//===- Ordering.h - What warps publish and learn ----------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_SANITIZER_ORDERING_H
#define ATTN_LIB_SIMULATOR_SANITIZER_ORDERING_H

#include "../Machine/Exec.h"

namespace mlir::attn::sim {

/// What the active lanes publish now; starts a new epoch. With the scope of the
/// cluster or the GPU, what the CTA has loaded so far has been read.
Knowledge release(Exec &x, SyncScope scope = SyncScope::Cta);
/// The same for a relaxed signal: only what has been executed.
Knowledge releaseControl(Exec &x);
/// The executing warp learns what was published.
void acquire(Exec &x, const Knowledge &from);
/// `lanes` of the warp learn what others of them have published.
void acquireOwn(Exec &x, const Knowledge &from, uint32_t lanes);
/// All lanes of the executing warp have synchronised with each other.
void warpSynchronised(Exec &x);
/// The same two for any warp, whoever runs.
void acquireInto(Warp &warp, const Knowledge &from);
void synchroniseLanes(Warp &warp);
/// Retires tensor-memory loads whose registers have been used (A3).
void retireUsedLoads(Exec &x);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_SANITIZER_ORDERING_H
