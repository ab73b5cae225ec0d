//===- ProxyFences.h - Generic accesses before asynchronous ones -*- C++ -*-==//
//
// TMA and wgmma access shared memory through the async proxy. An access through
// the generic proxy to the same bytes comes before one of theirs only if its
// thread executes a fence.proxy.async behind it and before the release that
// leads to the other one (PTX ISA, Async proxy).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_MEMORY_PROXYFENCES_H
#define ATTN_ANALYSIS_MEMORY_PROXYFENCES_H

#include "attn/Analysis/Memory/SharedHazards.h"

namespace mlir::attn {

/// The ops before which an attn.fence.proxy_async is missing: releases
/// (barriers, arrivals) and asynchronous accesses behind a generic access to
/// bytes that the async proxy touches anywhere in the kernel. Copies by
/// cp.async count from their wait on. An error at an op that the analysis does
/// not know.
FailureOr<SmallVector<Operation *>>
findMissingProxyFences(gpu::GPUFuncOp kernel, SharedAccessCache &cache);

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_MEMORY_PROXYFENCES_H
