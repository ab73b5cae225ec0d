//===- Estimate.cpp - The time of a launch --------------------------------===//

#include "attn/Cost/Estimate.h"
#include "CornerReplay.h"
#include "OrderInstructions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

LaunchShape mlir::attn::sim::getShape(const LaunchConfig &config,
                                      const KernelInfo &kernel) {
  LaunchShape shape;
  shape.ctas = uint64_t(config.grid[0]) * config.grid[1] * config.grid[2];
  shape.threads = config.block[0] * config.block[1] * config.block[2];
  shape.clusterSize =
      std::max(1u, config.cluster[0] * config.cluster[1] * config.cluster[2]);
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

/// CTAs of the busiest SM.
static uint64_t getCtasPerSM(const TargetRow &target,
                             const LaunchShape &shape) {
  // Clusters may leave SMs without a CTA.
  unsigned sms = target.getClusteredSMs(shape.clusterSize);
  return llvm::divideCeil(shape.ctas, uint64_t(sms ? sms : target.smCount));
}

unsigned mlir::attn::sim::getTracedCtas(const TargetRow &target,
                                        const LaunchShape &shape) {
  std::string limit;
  uint64_t resident = getResidentCtas(target, shape, limit);
  // Two rounds show what a full SM does; more take longer and say the same.
  return std::min({getCtasPerSM(target, shape), 2 * resident, uint64_t(16)});
}

Trace mlir::attn::sim::selectCtas(const Trace &trace, unsigned count) {
  size_t size = trace.getClusterSize(), clusters = trace.ctas.size() / size;
  if (count >= clusters)
    return trace;
  Trace result;
  result.instructions = trace.instructions;
  result.operations = trace.operations;
  result.tokens = trace.tokens;
  result.dropped = trace.dropped;
  std::vector<uint32_t> places(trace.ctas.size(), 0);
  for (size_t i = 0; i < count; ++i) {
    size_t first = i * clusters / count * size;
    for (size_t j = first; j < first + size; ++j) {
      places[j] = result.ctas.size();
      result.ctas.push_back(trace.ctas[j]);
    }
  }
  for (TraceOperation &operation : result.operations)
    operation.cta = places[operation.cta];
  for (TraceToken &token : result.tokens)
    if (token.cta >= 0)
      token.cta = places[token.cta];
  return result;
}

Trace mlir::attn::sim::prepareTrace(const Trace &trace, const TargetRow &target,
                                    const LaunchShape &shape) {
  Trace prepared = selectCtas(trace, getTracedCtas(target, shape));
  if (target.has(Capability::Tcgen05))
    orderInstructions(prepared);
  return prepared;
}

/// That the chip has the instructions of the trace that the model would have no
/// number for.
static Error checkInstructions(const Trace &trace, const TargetRow &target) {
  for (const TraceInstruction &inst : trace.instructions) {
    StringRef text = inst.text;
    std::optional<Capability> needed;
    if (text.starts_with("tcgen05."))
      needed = Capability::Tcgen05;
    else if (text.split(' ').first.contains(".f32x2"))
      needed = Capability::F32x2;
    if (needed && !target.has(*needed))
      return createStringError(
          llvm::formatv("line {0}: expected a chip with {1} ({2}) for an "
                        "estimate of \"{3}\", got {4}",
                        inst.line, getCapabilityName(*needed),
                        getCapabilityChips(*needed), text, target.chip));
  }
  return Error::success();
}

/// Timelines of the traced CTAs stand for those of the busiest SM; by how much
/// longer they take.
static double getShare(const Trace &trace, const TargetRow &target,
                       const LaunchShape &shape) {
  uint64_t perSM = getCtasPerSM(target, shape);
  uint64_t size = trace.getClusterSize(), traced = 0;
  if (trace.ctas.size() == perSM * size)
    return 1;
  for (const CtaTrace &cta : trace.ctas)
    for (const WarpTrace &warp : cta.warps)
      for (const TraceEvent &event : warp.events)
        traced += event.kind == TraceEvent::Execute;
  double mean = double(shape.instructions) / std::max<uint64_t>(shape.ctas, 1);
  double share = perSM * mean / std::max(double(traced) / size, 1.0);
  return std::max(share, 1.0);
}

Expected<Estimate> mlir::attn::sim::estimate(const Trace &all,
                                             const TargetRow &target,
                                             const LaunchShape &shape,
                                             bool wantsCorners) {
  if (Error error = checkInstructions(all, target))
    return std::move(error);
  Trace trace = prepareTrace(all, target, shape);
  const CycleTable &table = getCycleTable(target);
  Estimate result;
  result.chip = target.chip.str();
  result.registers = shape.registers;
  unsigned resident = getResidentCtas(target, shape, result.limit);
  result.ctasPerSM = std::min<uint64_t>(resident, getCtasPerSM(target, shape));
  CornerReplay corners(trace, table, resident, getShare(trace, target, shape));
  Expected<Timeline> timeline = corners.getNominal();
  if (!timeline)
    return timeline.takeError();
  result.busy = timeline->busy;
  result.stalls = timeline->stalls;
  result.counts = timeline->counts;
  result.cycles = corners.getCycles(table.getNominal(), *timeline);
  result.microseconds = result.cycles / target.clockMHz;
  for (unsigned i = 0; i < result.evidence.size(); ++i)
    result.evidence[i] = table.count(Evidence(i));
  if (const ModelError *error = getModelError(target))
    result.error = *error;
  if (!result.error || wantsCorners)
    result.range = corners.getRange();
  if (wantsCorners)
    result.corners = corners.getAll();
  return std::move(result);
}

llvm::json::Value Estimate::toJSON() const {
  auto table = [](const std::map<std::string, double> &values) {
    llvm::json::Object object;
    for (const auto &[name, value] : values)
      object[name] = value;
    return object;
  };
  llvm::json::Object numbers;
  for (unsigned i = 0; i < evidence.size(); ++i)
    numbers[getEvidenceName(Evidence(i))] = evidence[i];
  llvm::json::Object object{{"chip", chip},
                            {"ctas_per_sm", ctasPerSM},
                            {"limit", limit},
                            {"registers", registers},
                            {"registers_from", registersFrom},
                            {"cycles", cycles},
                            {"microseconds", microseconds},
                            {"busy", table(busy)},
                            {"stalls", table(stalls)},
                            {"counts", table(counts)},
                            {"is_measured", error.has_value()},
                            {"numbers", std::move(numbers)}};
  if (error) {
    object["mean_error"] = error->mean;
    object["largest_error"] = error->largest;
  }
  if (range)
    object["range"] = llvm::json::Object{{"low", range->low},
                                         {"high", range->high},
                                         {"low_corner", range->lowCorner},
                                         {"high_corner", range->highCorner}};
  if (corners)
    object["corners"] = corners->toJSON();
  return object;
}

void Estimate::print(llvm::raw_ostream &os) const {
  os << llvm::formatv("estimate:        {0:F0} cycles, {1:F1} us; ", cycles,
                      microseconds);
  if (error)
    os << llvm::formatv("on {0} kernels that the model was not fitted to were "
                        "off by {1:F0} % in the mean and {2:F0} % at most\n",
                        error->board, 100 * error->mean, 100 * error->largest);
  else
    os << llvm::formatv("not measured on this chip: the figures rest on {0} "
                        "numbers that are published, {1} measured elsewhere "
                        "and {2} believed\n",
                        evidence[unsigned(Evidence::Published)],
                        evidence[unsigned(Evidence::Measured)],
                        evidence[unsigned(Evidence::Believed)]);
  if (range)
    os << llvm::formatv("range:           {0:F0} to {1:F0} cycles over the "
                        "believed numbers (least: {2}; most: {3})\n",
                        range->low, range->high, range->lowCorner,
                        range->highCorner);
  std::string from = registersFrom.empty() ? "" : " (" + registersFrom + ")";
  os << llvm::formatv("residency:       {0} CTAs per SM, bounded by {1}, {2} "
                      "registers a thread{3}\n",
                      ctasPerSM, limit, registers, from);
  auto list = [&](StringRef title,
                  const std::map<std::string, double> &values) {
    os << title;
    for (const auto &[name, value] : values)
      os << llvm::formatv(" {0} {1:F0}", name, value);
    os << "\n";
  };
  list("busy cycles:    ", busy);
  list("warp stalls:    ", stalls);
  list("counts of an SM:", counts);
  if (corners)
    corners->print(os);
}
