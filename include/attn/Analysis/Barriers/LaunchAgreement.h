//===- LaunchAgreement.h - Does a kernel agree with its launch? -*- C++ -*-===//
//
// A kernel names its chip, its threads, its CTAs of a cluster and its
// arguments, and so does what launches it. What is shown of the kernel rests on
// both being the same.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_BARRIERS_LAUNCHAGREEMENT_H
#define ATTN_ANALYSIS_BARRIERS_LAUNCHAGREEMENT_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// How many threads a kernel has by what it does: those of its partitions, or
/// of the warps that share its tiles. Nothing if it says neither.
std::optional<int64_t> countThreads(gpu::GPUFuncOp kernel);

/// How a kernel contradicts its launch, or itself. Such a kernel is not to be
/// made.
std::optional<std::string> findUnlikeLaunch(gpu::GPUFuncOp kernel);

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_BARRIERS_LAUNCHAGREEMENT_H
