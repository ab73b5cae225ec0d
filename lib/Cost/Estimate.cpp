//===- Estimate.cpp - The time of a launch --------------------------------===//

#include "attn/Cost/Timeline.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::Expected;

/// Start and end of a CTA, in cycles (fitted on an H200, docs/CycleModel.md).
static constexpr double launchCycles = 300;
/// Relative errors on the launches of docs/CycleModel.md that were not used for
/// fitting.
static constexpr double meanError = 0.20, largestError = 0.55;

LaunchShape mlir::attn::sim::getShape(const LaunchConfig &config,
                                      const KernelInfo &kernel) {
  LaunchShape shape;
  shape.ctas = uint64_t(config.grid[0]) * config.grid[1] * config.grid[2];
  shape.threads = config.block[0] * config.block[1] * config.block[2];
  shape.sharedBytes = uint64_t(kernel.staticShared) + config.dynamicShared;
  return shape;
}

unsigned mlir::attn::sim::getResidentCtas(const TargetRow &target,
                                          const LaunchShape &shape,
                                          std::string &limit) {
  unsigned warps = llvm::divideCeil(shape.threads, 32u);
  uint64_t registers =
      uint64_t(llvm::alignTo(shape.registers, target.registerAllocationUnit)) *
      32 * warps;
  uint64_t shared = shape.sharedBytes + target.sharedBytesReserved;
  struct Bound {
    uint64_t ctas;
    const char *name;
  } bounds[] = {
      {target.maxCTAsPerSM, "CTAs"},
      {target.maxWarpsPerSM / warps, "warps"},
      {target.registersPerSM / std::max<uint64_t>(registers, 1), "registers"},
      {target.sharedBytesPerSM / std::max<uint64_t>(shared, 1),
       "shared memory"}};
  uint64_t fit = ~0ull;
  for (const Bound &bound : bounds)
    if (bound.ctas < fit) {
      fit = bound.ctas;
      limit = bound.name;
    }
  return std::max<uint64_t>(fit, 1);
}

unsigned mlir::attn::sim::getTracedCtas(const TargetRow &target,
                                        const LaunchShape &shape) {
  std::string limit;
  uint64_t resident = getResidentCtas(target, shape, limit);
  uint64_t perSM = llvm::divideCeil(shape.ctas, uint64_t(target.smCount));
  // Two rounds show what a full SM does; more take longer and say the same.
  return std::min({perSM, 2 * resident, uint64_t(16)});
}

Trace mlir::attn::sim::selectCtas(const Trace &trace, unsigned count) {
  std::vector<uint32_t> clusters;
  for (const CtaTrace &cta : trace.ctas)
    if (clusters.empty() || clusters.back() != cta.cluster)
      clusters.push_back(cta.cluster);
  size_t size = trace.ctas.size() / std::max<size_t>(clusters.size(), 1);
  size_t wanted = llvm::divideCeil(count, std::max<size_t>(size, 1));
  if (wanted >= clusters.size())
    return trace;
  Trace result;
  result.instructions = trace.instructions;
  result.operations = trace.operations;
  result.tokens = trace.tokens;
  result.dropped = trace.dropped;
  std::vector<uint32_t> places(trace.ctas.size(), 0);
  for (size_t i = 0; i < wanted; ++i) {
    size_t first = i * clusters.size() / wanted * size;
    for (size_t j = first; j < first + size; ++j) {
      places[j] = result.ctas.size();
      result.ctas.push_back(trace.ctas[j]);
    }
  }
  for (TraceOperation &operation : result.operations)
    operation.cta = places[operation.cta];
  return result;
}

Expected<Estimate> mlir::attn::sim::estimate(const Trace &all,
                                             const TargetRow &target,
                                             const LaunchShape &shape) {
  Trace trace = selectCtas(all, getTracedCtas(target, shape));
  Estimate result;
  result.registers = shape.registers;
  unsigned resident = getResidentCtas(target, shape, result.limit);
  uint64_t perSM = llvm::divideCeil(shape.ctas, uint64_t(target.smCount));
  result.ctasPerSM = std::min<uint64_t>(resident, perSM);
  Expected<Timeline> timeline = replay(trace, target, resident);
  if (!timeline)
    return timeline.takeError();
  result.busy = timeline->busy;
  result.stalls = timeline->stalls;
  // The traced CTAs stand for those of the busiest SM.
  uint64_t traced = 0;
  for (const CtaTrace &cta : trace.ctas)
    for (const WarpTrace &warp : cta.warps)
      for (const TraceEvent &event : warp.events)
        traced += event.kind == TraceEvent::Execute;
  double mean = double(shape.instructions) / std::max<uint64_t>(shape.ctas, 1);
  double share = perSM * mean / std::max<double>(traced, 1);
  if (trace.ctas.size() == perSM)
    share = 1;
  result.cycles = launchCycles + timeline->cycles * std::max(share, 1.0);
  result.microseconds = result.cycles / target.clockMHz;
  result.meanError = meanError;
  result.largestError = largestError;
  return result;
}

llvm::json::Value Estimate::toJSON() const {
  auto table = [](const std::map<std::string, double> &values) {
    llvm::json::Object object;
    for (const auto &[name, value] : values)
      object[name] = value;
    return object;
  };
  return llvm::json::Object{
      {"ctas_per_sm", ctasPerSM},      {"limit", limit},
      {"registers", registers},        {"cycles", cycles},
      {"microseconds", microseconds},  {"mean_error", meanError},
      {"largest_error", largestError}, {"busy", table(busy)},
      {"stalls", table(stalls)}};
}

void Estimate::print(llvm::raw_ostream &os) const {
  os << llvm::formatv(
      "estimate:        {0:F0} cycles, {1:F1} us; on an H200 kernels that the "
      "model was not fitted to were off by {2:F0} % in the mean and {3:F0} % "
      "at most\n",
      cycles, microseconds, 100 * meanError, 100 * largestError);
  os << llvm::formatv("residency:       {0} CTAs per SM, bounded by {1}, {2} "
                      "registers a thread\n",
                      ctasPerSM, limit, registers);
  os << "busy cycles:    ";
  for (const auto &[name, value] : busy)
    os << llvm::formatv(" {0} {1:F0}", name, value);
  os << "\nwarp stalls:    ";
  for (const auto &[name, value] : stalls)
    os << llvm::formatv(" {0} {1:F0}", name, value);
  os << "\n";
}
