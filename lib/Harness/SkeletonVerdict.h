//===- SkeletonVerdict.h - Does PTX do what is proved? ----------*- C++ -*-===//

#ifndef ATTN_LIB_HARNESS_SKELETONVERDICT_H
#define ATTN_LIB_HARNESS_SKELETONVERDICT_H

#include "attn/Harness/HarnessOptions.h"
#include "attn/Harness/HarnessReport.h"

namespace mlir::attn::sim {

/// Takes what a skeleton needs into the options. Error: a skeleton of another
/// kernel.
llvm::Error takeSkeleton(const LaunchRecord &record, HarnessOptions &options);

/// Holds what the warps did against the skeleton.
ReplayVerdict judgeSkeleton(const SyncSkeleton &skeleton, const RunReport &run);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_HARNESS_SKELETONVERDICT_H
