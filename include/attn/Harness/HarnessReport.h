//===- HarnessReport.h - What came out of a launch --------------*- C++ -*-===//

#ifndef ATTN_HARNESS_HARNESSREPORT_H
#define ATTN_HARNESS_HARNESSREPORT_H

#include "attn/Cost/CostReport.h"
#include "attn/Harness/HarnessTensor.h"
#include "attn/Simulator/Machine/Report.h"
#include <optional>

namespace mlir::attn::sim {

/// What came out of the run whose inputs lose bets.
struct LostBets {
  uint64_t warpInstructions = 0;
  Deviation output;
  std::optional<Deviation> lse;
};

/// How numbers of 8 or 4 bits lie to those that the reference rounds to, in
/// units of the scales that the kernel has stored.
struct RoundedNumbers {
  int64_t count = 0, different = 0;
  /// The most numbers of the type from one to the other.
  int64_t mostSteps = 0;
};

/// A result that was compared with an array.
struct ComparedResult {
  std::string name;
  Deviation deviation;
  double tolerance = 0;
};

/// One kernel of a launch.
struct HarnessStep {
  std::string kernel;
  std::array<uint32_t, 3> grid = {0, 0, 0};
  /// What the cycle model needs; registers and instructions are not filled in.
  LaunchShape shape;
  /// The first run's report; no counters when the grid is empty or a step in
  /// front of it did not complete.
  RunReport run;
};

/// What came of a witness, or of a skeleton.
struct ReplayVerdict {
  /// The same was found: of its kind and by the same warps or at the same ops;
  /// or all warps do what is proved.
  bool isSame = false;
  /// A sentence.
  std::string text;
};

/// What came out of a launch.
struct HarnessReport {
  std::string chip;
  std::vector<HarnessStep> steps;
  std::vector<HarnessTensor> tensors;
  /// The first run's report: the findings of all steps, which name their step
  /// where there are several, and the sums of their counters.
  RunReport run;
  /// What the harness itself found wrong, one sentence each.
  std::vector<std::string> problems;
  /// With `verify`; the second where the kernel has an lse tensor.
  std::optional<Deviation> output, lse;
  double outputTolerance = 0, lseTolerance = 0;
  /// With `verify`, of results of 8 and 4 bits.
  std::optional<RoundedNumbers> rounded;
  /// Other results, by name.
  std::vector<ComparedResult> results;
  /// The second run with `verify`; what was wrong in it is among `problems`.
  std::optional<LostBets> lostBets;
  /// With `sampledCTAs`: what ran and was compared, as a sentence.
  std::string sample;
  /// The second run was left out because the first took too long.
  bool isSecondRunLeftOut = false;
  /// With `replay`.
  std::optional<ReplayVerdict> replay;
  /// With `skeleton`.
  std::optional<ReplayVerdict> skeleton;
  /// Runs made on the first inputs: 1, or more with `corners`.
  unsigned runs = 0;

  /// Nothing wrong: clean runs, no problem, deviations within tolerance.
  bool hasPassed() const;
  /// Returns true if something was held against what it should be: results
  /// against others, or the kernel against a proof or witness.
  bool isCompared() const;
  const HarnessTensor *findTensor(llvm::StringRef name) const;
  /// The steps as computeCosts takes them; they refer to this report.
  std::vector<MeasuredLaunch> getMeasured() const;
  llvm::json::Value toJSON() const;
  /// Prints the report; `file` names the PTX in findings.
  void print(llvm::raw_ostream &os, llvm::StringRef file) const;
};

} // namespace mlir::attn::sim

#endif // ATTN_HARNESS_HARNESSREPORT_H
