//===- KernelReports.h - What instrumented kernels report -------*- C++ -*-===//
#ifndef ATTN_LIB_HARNESS_KERNELREPORTS_H
#define ATTN_LIB_HARNESS_KERNELREPORTS_H

#include "attn/Simulator/Machine/Report.h"
#include <string>
#include <vector>

namespace mlir::attn::sim {

/// What the checks inside a kernel found, a sentence each, in the order of the
/// program.
std::vector<std::string> readKernelReports(const RunReport &run);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_HARNESS_KERNELREPORTS_H
