//===- SharedHazards.h - Accesses that lack a barrier -----------*- C++ -*-===//
//
// Two accesses to the same bytes of shared memory, at least one a write, made
// by different threads, need a barrier of the CTA between them on every path.
// An asynchronous copy is a write that lasts until its thread has waited for
// its group; a barrier makes it visible to others only behind that wait.
//
// At this rung all control flow is the same for all threads of a CTA.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_MEMORY_SHAREDHAZARDS_H
#define ATTN_ANALYSIS_MEMORY_SHAREDHAZARDS_H

#include "attn/Analysis/Memory/SharedAccess.h"

namespace mlir::attn {

/// A pair of accesses that are not ordered.
struct SharedHazard {
  enum class Kind {
    /// A barrier between the two is missing.
    NeedsBarrier,
    /// The first is a copy that is not awaited: no barrier helps.
    NotAwaited
  };
  Kind kind = Kind::NeedsBarrier;
  SharedAccess first;
  SharedAccess second;
  /// A barrier before this op separates the two, and as many other pairs as
  /// possible: the latest place that is executed no more often than the second
  /// access, outside of branches and loops that both pairs are outside of.
  Operation *insertBefore = nullptr;
  /// A barrier of each warpgroup is enough: none touches another one's rows.
  bool eachWarpgroup = false;
  /// They are slots of one ring, of which nothing says that they are two.
  bool areUnknownSlots = false;
};

/// The accesses of ops that have been looked at. They stay valid while buffers
/// and layouts do: inserting and removing barriers does not change them.
using SharedAccessCache =
    llvm::DenseMap<Operation *, SmallVector<SharedAccess, 2>>;

/// The first hazard of a kernel, loops before what enters them; none if all
/// accesses are ordered. An error at an op that the analysis does not know.
FailureOr<std::optional<SharedHazard>>
findSharedHazard(gpu::GPUFuncOp kernel, SharedAccessCache &cache);

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_MEMORY_SHAREDHAZARDS_H
