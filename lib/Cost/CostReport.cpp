//===- CostReport.cpp - What a launch costs -------------------------------===//

#include "attn/Cost/CostReport.h"
#include "attn/Cost/Registers.h"
#include "attn/Support/Files.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

void CostOptions::apply(LaunchConfig &config) const {
  // More than the model asks for on any chip: which one is known afterwards.
  if (needsTrace())
    config.tracedClusters = 16;
}

static Error writeTimelines(const Trace &trace, const TargetRow &target,
                            const LaunchShape &shape,
                            const CostOptions &options, StringRef title) {
  std::string limit;
  Expected<Timeline> timeline =
      replay(prepareTrace(trace, target, shape), target,
             getResidentCtas(target, shape, limit));
  if (!timeline)
    return timeline.takeError();
  if (!options.trace.empty())
    if (Error error = writeFile(options.trace, [&](llvm::raw_ostream &os) {
          os << timeline->toChromeTrace() << "\n";
        }))
      return error;
  if (options.timeline.empty())
    return Error::success();
  return writeFile(options.timeline, [&](llvm::raw_ostream &os) {
    timeline->printHTML(os, title);
  });
}

/// What is known about one kernel.
static Expected<CostReport> computeStep(const MeasuredLaunch &launch,
                                        StringRef ptx,
                                        const CostOptions &options) {
  CostReport costs;
  if (!options.sass && !options.needsTrace())
    return std::move(costs);
  StringRef chip = options.chip.empty() ? launch.chip : StringRef(options.chip);
  Expected<const TargetRow &> target = lookupTarget(chip);
  if (!target)
    return target.takeError();
  if (options.sass) {
    Expected<SassCounts> sass =
        countSass(ptx, launch.kernel, chip, launch.run.lines);
    if (!sass)
      return sass.takeError();
    costs.sass = std::move(*sass);
  }
  if (!options.needsTrace() || !launch.run.trace)
    return std::move(costs);
  LaunchShape shape = launch.shape;
  shape.instructions = launch.run.counters.warpInstructions;
  RegisterCount registers = {options.registers, "the option registers"};
  if (!registers.count && costs.sass)
    registers = {costs.sass->registers, "ptxas"};
  if (!registers.count) {
    Expected<RegisterCount> found = findRegisters(ptx, launch.kernel, *target);
    if (!found)
      return found.takeError();
    registers = std::move(*found);
  }
  shape.registers = registers.count;
  if (options.estimate || options.vary) {
    Expected<Estimate> cycles =
        estimate(*launch.run.trace, *target, shape, options.vary);
    if (!cycles)
      return cycles.takeError();
    costs.estimate = std::move(*cycles);
    costs.estimate->registersFrom = registers.source;
  }
  if (!options.trace.empty() || !options.timeline.empty())
    if (Error error = writeTimelines(*launch.run.trace, *target, shape, options,
                                     (launch.kernel + " on " + chip).str()))
      return std::move(error);
  return std::move(costs);
}

Expected<CostReport>
mlir::attn::sim::computeCosts(llvm::ArrayRef<MeasuredLaunch> steps,
                              StringRef ptx, const CostOptions &options) {
  if (steps.size() == 1)
    return computeStep(steps.front(), ptx, options);
  if (!options.trace.empty() || !options.timeline.empty())
    return createStringError("expected a launch of one kernel for a timeline, "
                             "got " +
                             llvm::Twine(steps.size()));
  CostReport costs;
  for (const MeasuredLaunch &step : steps) {
    Expected<CostReport> found = computeStep(step, ptx, options);
    if (!found)
      return found.takeError();
    found->kernel = step.kernel.str();
    costs.steps.push_back(std::move(*found));
  }
  return std::move(costs);
}

double CostReport::getMicroseconds() const {
  double sum = estimate ? estimate->microseconds : 0;
  for (const CostReport &step : steps)
    sum += step.getMicroseconds();
  return sum;
}

void CostReport::addTo(llvm::json::Value &report) const {
  llvm::json::Object &object = *report.getAsObject();
  if (sass)
    object["sass"] = sass->toJSON();
  if (estimate)
    object["estimate"] = estimate->toJSON();
  llvm::json::Array counts, estimates;
  for (const CostReport &step : steps) {
    if (step.sass)
      counts.push_back(step.sass->toJSON());
    if (step.estimate)
      estimates.push_back(step.estimate->toJSON());
  }
  if (!counts.empty())
    object["sass"] = llvm::json::Object{{"steps", std::move(counts)}};
  if (!estimates.empty())
    object["estimate"] = llvm::json::Object{{"microseconds", getMicroseconds()},
                                            {"steps", std::move(estimates)}};
}

void CostReport::print(llvm::raw_ostream &os) const {
  if (sass)
    sass->print(os);
  if (estimate)
    estimate->print(os);
  for (const CostReport &step : steps) {
    if (step.sass || step.estimate)
      os << "kernel " << step.kernel << ":\n";
    step.print(os);
  }
}
