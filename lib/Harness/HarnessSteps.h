//===- HarnessSteps.h - the kernels of a launch, in order -------*- C++ -*-===//

#ifndef ATTN_LIB_HARNESS_HARNESSSTEPS_H
#define ATTN_LIB_HARNESS_HARNESSSTEPS_H

#include "attn/Harness/HarnessReport.h"
#include "attn/Simulator/Simulator.h"

namespace mlir::attn::sim {

/// Checks that parameters at these places are what the kernel declares.
llvm::Error checkParameters(const KernelInfo &kernel,
                            llvm::ArrayRef<ParameterSlot> slots);

/// Takes `grid` in place of what follows from the record, where its CTAs are
/// whole clusters.
llvm::Error overrideGrid(const LaunchRecord &record,
                         std::array<uint32_t, 3> grid,
                         ResolvedLaunch &resolved);

/// Fails where the program lacks a step's kernel or is for another chip, where
/// parameters do not fit, and where a step asks for what the simulator cannot
/// give: more CTAs of a cooperative launch than the chip holds at once, or a
/// programmatic launch whose kernel touches memory before it has awaited the
/// step in front of it.
llvm::Error checkProgram(const LaunchRecord &record,
                         const ResolvedLaunch &resolved,
                         const Program &program);

/// Where the tensors and workspaces of a launch are in simulated memory.
struct LaunchMemory {
  Memory memory;
  std::vector<TensorArgument> tensors;
  std::vector<uint64_t> workspaces;
};

/// Allocates the workspaces, those that have to be with zeros in them.
llvm::Error placeWorkspaces(const LaunchRecord &record,
                            const ResolvedLaunch &resolved,
                            LaunchMemory &memory);

/// Runs the steps in order on one memory, up to the first one that does not
/// complete. `config` says how; of each step `sampledCTAs` run if they are not
/// 0 (SampledRun.h).
llvm::Expected<std::vector<HarnessStep>>
runSteps(const LaunchRecord &record, const ResolvedLaunch &resolved,
         const Program &program, const LaunchConfig &config,
         const llvm::StringMap<double> &scalars, LaunchMemory &memory,
         unsigned sampledCTAs = 0);

/// What the steps did together; findings name the step if there are several.
RunReport joinReports(llvm::ArrayRef<HarnessStep> steps);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_HARNESS_HARNESSSTEPS_H
