//===- CostReport.h - What a launch costs -----------------------*- C++ -*-===//
//
// Machine instructions, estimated time and timelines of a launch that ran on
// the simulator.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_COST_COSTREPORT_H
#define ATTN_COST_COSTREPORT_H

#include "attn/Cost/Estimate.h"
#include "attn/Cost/SassCounts.h"

namespace mlir::attn::sim {

/// What to find out about a launch.
struct CostOptions {
  bool estimate = false, sass = false;
  /// Estimate for each choice of values of the believed numbers; implies
  /// `estimate`.
  bool vary = false;
  /// Files to write; empty writes none.
  std::string trace, timeline;
  /// Chip of the model; that of the launch when empty.
  std::string chip;
  /// Registers of a thread; 0 asks ptxas, then the kernel's directives.
  unsigned registers = 0;

  bool needsTrace() const {
    return estimate || vary || !trace.empty() || !timeline.empty();
  }
  /// Makes the run record what computeCosts needs.
  void apply(LaunchConfig &config) const;
};

/// What was found out.
struct CostReport {
  std::optional<SassCounts> sass;
  std::optional<Estimate> estimate;
  /// Of a launch of several kernels: what was found out about each. The other
  /// members are empty then.
  std::vector<CostReport> steps;
  /// The kernel that such a step runs.
  std::string kernel;

  /// Microseconds of all steps.
  double getMicroseconds() const;
  /// Adds "sass" and "estimate" to the JSON form of a report.
  void addTo(llvm::json::Value &report) const;
  void print(llvm::raw_ostream &os) const;
};

/// A launch that has run on the simulator.
struct MeasuredLaunch {
  llvm::StringRef kernel, chip;
  LaunchShape shape; ///< registers and instructions are not filled in
  const RunReport &run;
};

/// Computes it for the kernels of a launch of `ptx`, and writes the files.
/// Errors: an unknown chip, ptxas or nvdisasm that are needed and missing, a
/// file that cannot be written, a timeline of several kernels, what replay
/// refuses.
llvm::Expected<CostReport> computeCosts(llvm::ArrayRef<MeasuredLaunch> steps,
                                        llvm::StringRef ptx,
                                        const CostOptions &options);

} // namespace mlir::attn::sim

#endif // ATTN_COST_COSTREPORT_H
