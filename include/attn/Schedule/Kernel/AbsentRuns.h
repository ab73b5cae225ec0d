//===- AbsentRuns.h - Runs that a sequence does not have --------*- C++ -*-===//

#ifndef ATTN_SCHEDULE_KERNEL_ABSENTRUNS_H
#define ATTN_SCHEDULE_KERNEL_ABSENTRUNS_H

#include "attn/Schedule/Kernel/AttentionTile.h"

namespace mlir::attn {

/// Threads that store something together.
struct StoringThreads {
  /// The number of this one among them, i32, and how many they are.
  Value number;
  int64_t count;
};

/// Stores that the tile's sequence has no run beyond those that were dealt to
/// it: an LSE of -inf. The tile of run 0 does it, by the threads that
/// `emitThreads` says. With `areKept` the stores are of the kind that another
/// CTA soon reads.
void storeAbsentRuns(const AttentionTile &tile,
                     llvm::function_ref<StoringThreads()> emitThreads,
                     bool areKept = false);

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_KERNEL_ABSENTRUNS_H
