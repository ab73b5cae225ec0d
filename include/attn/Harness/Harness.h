//===- Harness.h - run a launch record on the simulator ---------*- C++ -*-===//
//
// Takes a kernel and its launch record, makes the tensors, runs the kernel on
// the simulator, and judges the result: findings of the sanitizer, elements
// that were never written, writes outside the elements, and the deviation from
// the float64 reference.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_HARNESS_HARNESS_H
#define ATTN_HARNESS_HARNESS_H

#include "attn/Cost/Timeline.h"
#include "attn/Harness/Npy.h"
#include "attn/Harness/Reference.h"
#include "attn/Simulator/Simulator.h"
#include "attn/Target/LaunchBinding.h"
#include "attn/Target/LaunchRecord.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace mlir::attn::sim {

/// How to run and judge a launch.
struct HarnessOptions {
  /// Input arrays by tensor name, with the tensor's shape. Inputs without one
  /// get normally distributed elements; cumulative lengths get a random split.
  llvm::StringMap<NpyArray> inputs;
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
  /// With `verify`, where q and k are made up: runs the kernel a second time on
  /// scores whose maximum grows from block to block, so that the paths that
  /// bets on it rarely take are executed. Without a value where the first run
  /// took at most `kMostForSecondRun` warp instructions.
  std::optional<bool> losesBets;
  /// The problem's modifications, where it has some.
  ScoreMod scoreMod;
  MaskMod maskMod;
  /// Largest accepted deviations; negative takes the default, for O by the
  /// coarsest type of q and o (f16 and f32 2e-3, bf16 1.6e-2, fp8 8e-2), and
  /// 1e-3 for LSE.
  double outputTolerance = -1;
  double lseTolerance = -1;

  /// Hears how far the run is: phases "inputs", "reference", "simulation" and
  /// "corner I of N". The first call has an estimate for the whole.
  ProgressFn progress;
};

/// One tensor of a launch with its contents.
struct HarnessTensor {
  TensorArgument argument;
  TensorAccess access = TensorAccess::Read;
  /// The strided extent, before the launch for inputs and after it for outputs.
  std::vector<uint8_t> bytes;

  TensorView getView() const;
  /// The elements alone, row-major.
  std::vector<uint8_t> getElements() const;
};

/// The largest first run that a second one follows without being asked for.
inline constexpr uint64_t kMostForSecondRun = 1000000;

/// What came out of the run whose inputs lose bets.
struct LostBets {
  uint64_t warpInstructions = 0;
  Deviation output;
  std::optional<Deviation> lse;
};

/// What came out of a launch.
struct HarnessReport {
  std::string kernel, chip;
  std::array<uint32_t, 3> grid = {0, 0, 0};
  std::vector<HarnessTensor> tensors;
  /// What the cycle model needs; registers and instructions are not filled in.
  LaunchShape shape;
  /// The first run's report; no counters when the grid is empty.
  RunReport run;
  /// What the harness itself found wrong, one sentence each.
  std::vector<std::string> problems;
  /// With `verify`; the second where the kernel has an lse tensor.
  std::optional<Deviation> output, lse;
  double outputTolerance = 0, lseTolerance = 0;
  /// The second run with `verify`; what was wrong in it is among `problems`.
  std::optional<LostBets> lostBets;
  /// The second run was left out because the first took too long.
  bool isSecondRunLeftOut = false;
  /// Runs made on the first inputs: 1, or more with `corners`.
  unsigned runs = 0;

  /// Nothing wrong: clean runs, no problem, deviations within tolerance.
  bool hasPassed() const;
  const HarnessTensor *findTensor(llvm::StringRef name) const;
  llvm::json::Value toJSON() const;
  /// Prints the report; `file` names the PTX in findings.
  void print(llvm::raw_ostream &os, llvm::StringRef file) const;
};

/// Runs the kernel of `record` in `program`. Errors: a program that does not
/// fit the record, sizes or inputs that are missing or contradict it, what
/// computeReference refuses, a launch that cannot start or does not fit into
/// memory, and StoppedError. What the kernel does wrong is in the report.
llvm::Expected<HarnessReport> runLaunch(const LaunchRecord &record,
                                        const Program &program,
                                        const HarnessOptions &options);

/// Checks that parameters at these places are what the kernel declares.
llvm::Error checkParameters(const KernelInfo &kernel,
                            llvm::ArrayRef<ParameterSlot> slots);

/// The deviation of O that is accepted for these types of q and o.
double getDefaultTolerance(DType q, DType o);

/// The corners of the simulator as separate configurations: operand reads at
/// issue or completion, result writes at issue or completion, and schedules.
std::vector<LaunchConfig> getCorners(const LaunchConfig &base);

/// A short name of a configuration, such as "random, reads at issue, writes at
/// completion".
std::string describeConfig(const LaunchConfig &config);

} // namespace mlir::attn::sim

#endif // ATTN_HARNESS_HARNESS_H
