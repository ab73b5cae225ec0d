//===- HarnessOptions.h - How to run and judge a launch ---------*- C++ -*-===//

#ifndef ATTN_HARNESS_HARNESSOPTIONS_H
#define ATTN_HARNESS_HARNESSOPTIONS_H

#include "attn/Harness/Npy.h"
#include "attn/Harness/Reference.h"
#include "attn/Launch/SyncSkeleton.h"
#include "attn/Launch/SyncWitness.h"
#include "attn/Simulator/Machine/LaunchConfig.h"
#include "attn/Support/Progress.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace mlir::attn::sim {

/// How to run and judge a launch.
struct HarnessOptions {
  /// Input arrays by tensor name, with the tensor's shape. Inputs without one
  /// get normally distributed elements; cumulative lengths get a random split.
  llvm::StringMap<NpyArray> inputs;
  /// The arrays that tensors are compared with after the launch, by name: of
  /// the tensor's type, f32 or f64.
  llvm::StringMap<NpyArray> expected;
  /// Sizes and strides that the record leaves open, by `q.dim2` or `q.stride1`.
  /// A size that follows from another one (o.dim2 from q.dim2) may be left out;
  /// a stride that is left out makes the tensor row-major.
  llvm::StringMap<int64_t> sizes;
  /// Values of scalar parameters.
  llvm::StringMap<double> scalars;
  /// Seed of random inputs.
  uint64_t seed = 0;

  /// Schedule, corner, profile, limits. Kernel, geometry and parameters are
  /// filled in by the harness.
  LaunchConfig config;
  /// Runs every corner of the simulator after the first run and compares the
  /// outputs, which may differ only when the kernel has a race.
  bool corners = false;

  /// Compares with the reference.
  bool verify = false;
  /// With `verify`: runs this many CTAs, drawn by the seed, and compares the
  /// rows that they write. 0 runs all, and so do launches whose CTAs need each
  /// other.
  unsigned sampledCTAs = 0;
  /// With `verify`, where q and k are made up: runs the kernel a second time on
  /// scores whose maximum grows from block to block, so that the paths that
  /// bets on it rarely take are executed. Without a value where the first run
  /// took at most `kMostForSecondRun` warp instructions.
  std::optional<bool> losesBets;
  /// The problem's modifications, where it has some.
  ScoreMod scoreMod;
  MaskMod maskMod;
  OutMod outMod;
  /// Largest accepted deviations; negative takes the default, for O by the
  /// coarsest type of q and o (f16 and f32 2e-3, bf16 1.6e-2, fp8 8e-2), and
  /// 1e-3 for LSE.
  double outputTolerance = -1;
  double lseTolerance = -1;

  /// Another grid than the record's, for a kernel whose CTAs share the work
  /// whatever their number: on one cluster, each of its CTAs does all of its
  /// tiles.
  std::optional<std::array<uint32_t, 3>> grid;

  /// What somebody says is wrong with a kernel: its order of warps is run, in
  /// place of what `config` and `grid` say, and nothing else.
  std::optional<SyncWitness> replay;

  /// What is proved of the kernel, which its PTX is held against.
  std::optional<SyncSkeleton> skeleton;

  /// Hears how far the run is: phases "inputs", "reference", "simulation" and
  /// "corner I of N". The first call has an estimate for the whole.
  ProgressFn progress;
};

/// The CTAs of a quick verification.
inline constexpr unsigned kSampledCTAs = 64;

/// The largest first run that a second one follows without being asked for.
inline constexpr uint64_t kMostForSecondRun = 1000000;

} // namespace mlir::attn::sim

#endif // ATTN_HARNESS_HARNESSOPTIONS_H
