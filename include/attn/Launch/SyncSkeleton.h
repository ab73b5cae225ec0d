//===- SyncSkeleton.h - What a proof says each warp does --------*- C++ -*-===//
//
// What the check of barriers writes of a kernel that it has proved, and the
// simulator holds against the kernel's PTX (attn-sim --skeleton). The JSON form
// is described in docs/BarrierCheck.md; reading is strict.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAUNCH_SYNCSKELETON_H
#define ATTN_LAUNCH_SYNCSKELETON_H

#include "attn/Support/SyncStep.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <array>

namespace mlir::attn {

/// A run of one cluster.
struct SyncRun {
  /// The first CTA of the cluster.
  std::array<int64_t, 3> block = {0, 0, 0};
  /// Of the warps of the first CTA, then of the second one.
  std::vector<std::vector<SyncStep>> warps;
};

struct SyncSkeleton {
  static constexpr int64_t version = 1;

  std::string kernel;
  /// The cluster does all tiles; then there is one run.
  bool runsAllTiles = false;
  /// Ops of the proof, with their places in the file that was read.
  std::vector<std::string> sites;
  /// One for each kind of block.
  std::vector<SyncRun> runs;
};

llvm::json::Value toJSON(const SyncSkeleton &skeleton);

/// Errors are of the form `skeleton: runs[0].warps[3]: expected ..., got ...`.
llvm::Expected<SyncSkeleton> parseSkeleton(llvm::StringRef json);

} // namespace mlir::attn

#endif // ATTN_LAUNCH_SYNCSKELETON_H
