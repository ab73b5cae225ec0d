//===- ClusterWait.h - Waits for signals of a cluster -----------*- C++ -*-===//
//
// attn-instrument writes the loop of a wait itself, but which scope the wait
// has is an option of attn-lower-tiles.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_CLUSTERWAIT_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_CLUSTERWAIT_H

#include "llvm/ADT/StringRef.h"

namespace mlir::attn {

/// On an `nvvm.mbarrier.try_wait`: that it comes from an `attn.mbarrier.wait`
/// with `cluster`.
inline constexpr llvm::StringLiteral kClusterWaitAttr = "attn.cluster_wait";

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_CLUSTERWAIT_H
