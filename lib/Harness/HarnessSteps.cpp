//===- HarnessSteps.cpp - the kernels of a launch, in order ---------------===//
//
// Steps run one after the other on one memory, whose initialised bits stay: a
// step that reads what none in front of it has written is a finding, as within
// one kernel. A programmatic step that awaits the one in front of it before it
// touches memory cannot tell the difference; others are refused.
//
//===----------------------------------------------------------------------===//
#include "HarnessSteps.h"

#include "HarnessInputs.h"
#include "KernelReports.h"
#include "SampledRun.h"
#include "attn/Support/ReportLayout.h"
#include "attn/Target/TargetTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

Error sim::checkParameters(const KernelInfo &kernel,
                           ArrayRef<ParameterSlot> slots) {
  if (kernel.params.size() != slots.size())
    return createStringError(
        "kernel \"" + kernel.name + "\" has " + Twine(kernel.params.size()) +
        " parameters, the launch record gives " + Twine(slots.size()));
  for (auto [index, pair] : llvm::enumerate(llvm::zip(kernel.params, slots))) {
    auto [declared, given] = pair;
    if (declared.offset != given.offset || declared.size != given.size)
      return createStringError(
          llvm::formatv("args[{0}]: expected {1} bytes at offset {2}, as "
                        "kernel \"{3}\" declares \"{4}\", got {5} bytes at "
                        "offset {6}",
                        index, declared.size, declared.offset, kernel.name,
                        declared.name, given.size, given.offset)
              .str());
  }
  return Error::success();
}

Error sim::overrideGrid(const LaunchRecord &record,
                        std::array<uint32_t, 3> grid,
                        ResolvedLaunch &resolved) {
  if (record.steps.size() != 1)
    return createStringError("grid: expected a launch of one step, got " +
                             Twine(record.steps.size()));
  for (unsigned axis : {0, 1, 2})
    if (uint32_t cluster = record.steps.front().cluster[axis];
        grid[axis] == 0 || grid[axis] % cluster)
      return createStringError(
          "grid[" + Twine(axis) +
          "]: expected a positive multiple of the cluster's " + Twine(cluster) +
          ", got " + Twine(grid[axis]));
  // Without tiles a launch stays empty.
  if (!llvm::is_contained(resolved.steps.front().grid, 0u))
    resolved.steps.front().grid = grid;
  return Error::success();
}

/// How a step runs: what the record says about it.
static LaunchConfig makeStepConfig(const LaunchStep &step,
                                   const ResolvedStep &resolved,
                                   LaunchConfig config) {
  config.kernel = step.kernel;
  config.grid = resolved.grid;
  for (unsigned axis : {0, 1, 2}) {
    config.block[axis] = step.block[axis];
    config.cluster[axis] = step.cluster[axis];
  }
  config.dynamicShared = step.sharedBytes;
  config.watched = {reports::kReportsName.str(), reports::kSitesName.str()};
  return config;
}

/// The bound is that of shared memory, threads and CTAs: how many registers a
/// thread takes is not known here.
static Error checkCooperative(const LaunchRecord &record, unsigned index,
                              const ResolvedStep &resolved,
                              const KernelInfo &kernel) {
  Expected<const TargetRow &> target = lookupTarget(record.chip);
  if (!target)
    return target.takeError();
  LaunchShape shape = getShape(
      makeStepConfig(record.steps[index], resolved, LaunchConfig()), kernel);
  shape.registers = 1;
  std::string limit;
  unsigned perSM = getResidentCtas(*target, shape, limit);
  uint64_t most = uint64_t(perSM) * target->smCount;
  if (shape.ctas <= most)
    return Error::success();
  return createStringError(
      llvm::formatv("{0} is cooperative: expected at most {1} CTAs, as {2} "
                    "multiprocessors of {3} hold {4} each by their {5}, got "
                    "{6}",
                    record.describeStep(index), most, target->smCount,
                    record.chip, perSM, limit, shape.ctas));
}

Error sim::checkProgram(const LaunchRecord &record,
                        const ResolvedLaunch &resolved,
                        const Program &program) {
  for (auto [index, step] : llvm::enumerate(record.steps)) {
    const KernelInfo *kernel = program.findKernel(step.kernel);
    if (!kernel)
      return createStringError(program.getName() + ": expected a kernel \"" +
                               step.kernel +
                               "\" as in the launch record, got none");
    if (program.getTarget() != record.chip)
      return createStringError(program.getName() + ": expected target " +
                               record.chip + " as in the launch record, got " +
                               program.getTarget());
    if (Error error =
            checkParameters(*kernel, resolved.steps[index].parameters))
      return error;
    if (step.programmatic && kernel->unawaitedLine)
      return createStringError(
          program.getName() + ":" + Twine(kernel->unawaitedLine) + ": " +
          record.describeStep(index) +
          " is programmatic, which is simulated only for kernels that begin "
          "with griddepcontrol.wait: expected it before this instruction");
    if (step.cooperative)
      if (Error error =
              checkCooperative(record, index, resolved.steps[index], *kernel))
        return error;
  }
  return Error::success();
}

Error sim::placeWorkspaces(const LaunchRecord &record,
                           const ResolvedLaunch &resolved,
                           LaunchMemory &memory) {
  for (auto [index, bytes] : llvm::enumerate(resolved.workspaceBytes)) {
    const LaunchWorkspace &workspace = record.workspaces[index];
    memory.workspaces.push_back(memory.memory.allocate(
        bytes, workspace.name.empty() ? ("workspace" + Twine(index)).str()
                                      : workspace.name));
    if (workspace.zeroed && bytes)
      if (Error error = memory.memory.fill(memory.workspaces.back(), bytes, 0))
        return error;
  }
  return Error::success();
}

/// Bytes of the elements alone.
static uint64_t getElementBytes(const TensorArgument &argument) {
  uint64_t bytes = getByteWidth(argument.dtype);
  for (int64_t extent : argument.shape)
    bytes *= uint64_t(extent);
  return bytes;
}

/// Bytes that a step stores into tensors that the caller of the launch has.
static uint64_t getExpectedStores(const LaunchRecord &record,
                                  const LaunchStep &step,
                                  const LaunchMemory &memory) {
  uint64_t bytes = 0;
  for (unsigned index = 0; index < memory.tensors.size(); ++index) {
    bool isPassed = llvm::any_of(step.args, [&](const LaunchArg &arg) {
      return (arg.kind == ArgKind::Pointer || arg.kind == ArgKind::TensorMap) &&
             arg.tensor == index;
    });
    if (isPassed && isWritten(record.tensors[index].access))
      bytes += getElementBytes(memory.tensors[index]);
  }
  return bytes;
}

Expected<std::vector<HarnessStep>>
sim::runSteps(const LaunchRecord &record, const ResolvedLaunch &resolved,
              const Program &program, const LaunchConfig &config,
              const llvm::StringMap<double> &scalars, LaunchMemory &memory,
              unsigned sampledCTAs) {
  std::vector<HarnessStep> steps;
  bool isStopped = false;
  for (auto [index, step] : llvm::enumerate(record.steps)) {
    const ResolvedStep &layout = resolved.steps[index];
    HarnessStep result;
    result.kernel = step.kernel;
    result.grid = layout.grid;
    result.run.completed = !isStopped;
    Expected<BoundParameters> bound = bindParameters(
        record, resolved, index, memory.tensors, scalars, memory.workspaces);
    if (!bound)
      return bound.takeError();
    for (const TensorMapParameter &map : bound->tensorMaps)
      if (Error error = writeTensorMap(map, bound->bytes))
        return std::move(error);
    bool isEmpty = llvm::is_contained(layout.grid, 0u);
    if (!isEmpty && !isStopped) {
      LaunchConfig own = makeStepConfig(step, layout, config);
      own.params = std::move(bound->bytes);
      own.expectedStores = getExpectedStores(record, step, memory);
      if (const KernelInfo *kernel = program.findKernel(step.kernel))
        result.shape = getShape(own, *kernel);
      Expected<RunReport> run =
          sampledCTAs ? runSample(program, memory.memory, own, sampledCTAs)
                      : sim::run(program, memory.memory, own);
      if (!run)
        return run.takeError();
      result.run = std::move(*run);
      isStopped = !result.run.completed;
    }
    steps.push_back(std::move(result));
  }
  return std::move(steps);
}

RunReport sim::joinReports(llvm::ArrayRef<HarnessStep> steps) {
  if (steps.size() == 1)
    return steps.front().run;
  RunReport joined;
  joined.completed = true;
  for (auto [index, step] : llvm::enumerate(steps)) {
    const RunReport &run = step.run;
    size_t known = joined.findings.size();
    addRun(joined, run);
    for (Finding &finding : llvm::drop_begin(joined.findings, known))
      finding.message = llvm::formatv("in step {0}, kernel \"{1}\": {2}",
                                      index + 1, step.kernel, finding.message);
  }
  return joined;
}
