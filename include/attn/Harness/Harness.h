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

#include "attn/Cost/Estimate.h"
#include "attn/Harness/HarnessOptions.h"
#include "attn/Harness/HarnessReport.h"
#include "attn/Simulator/Simulator.h"

namespace mlir::attn::sim {

/// Runs the kernel of `record` in `program`. Errors: a program that does not
/// fit the record, sizes or inputs that are missing or contradict it, what
/// computeReference refuses, a launch that cannot start or does not fit into
/// memory, and StoppedError. What the kernel does wrong is in the report.
llvm::Expected<HarnessReport> runLaunch(const LaunchRecord &record,
                                        const Program &program,
                                        const HarnessOptions &options);

/// The deviation of O that is accepted for these types of q and o, and for the
/// types of sums that the problem states, if it is known.
double getDefaultTolerance(DType q, DType o,
                           const AttentionProblem *problem = nullptr);

/// The corners of the simulator as separate configurations: operand reads at
/// issue or completion, result writes at issue or completion, and schedules.
std::vector<LaunchConfig> getCorners(const LaunchConfig &base);

/// A short name of a configuration, such as "random, reads at issue, writes at
/// completion".
std::string describeConfig(const LaunchConfig &config);

} // namespace mlir::attn::sim

#endif // ATTN_HARNESS_HARNESS_H
