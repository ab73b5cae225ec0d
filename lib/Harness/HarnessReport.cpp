//===- HarnessReport.cpp - what came out of a launch ----------------------===//
#include "attn/Harness/HarnessReport.h"
#include "attn/Harness/HarnessOptions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/WithColor.h"
#include <cmath>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::StringRef;
namespace json = llvm::json;

bool HarnessReport::hasPassed() const {
  return run.isClean() && problems.empty() &&
         (!output || output->error <= outputTolerance) &&
         (!lse || lse->error <= lseTolerance) &&
         llvm::all_of(results,
                      [](const ComparedResult &result) {
                        return result.deviation.error <= result.tolerance;
                      }) &&
         (!skeleton || skeleton->isSame);
}

bool HarnessReport::isCompared() const {
  return output || lse || !results.empty() || skeleton || replay || runs > 1;
}

const HarnessTensor *HarnessReport::findTensor(StringRef name) const {
  auto found = llvm::find_if(tensors, [&](const HarnessTensor &tensor) {
    return tensor.argument.name == name;
  });
  return found == tensors.end() ? nullptr : &*found;
}

std::vector<MeasuredLaunch> HarnessReport::getMeasured() const {
  std::vector<MeasuredLaunch> measured;
  for (const HarnessStep &step : steps)
    measured.push_back({step.kernel, chip, step.shape, step.run});
  return measured;
}

/// JSON has no infinity and no NaN.
static json::Value toNumber(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value > 0 ? "inf" : "-inf";
  return value;
}

static json::Value toJSON(const Deviation &deviation, double tolerance) {
  return json::Object{{"error", toNumber(deviation.error)},
                      {"tolerance", tolerance},
                      {"worst", json::Array(deviation.worst)},
                      {"out", toNumber(deviation.out)},
                      {"ref", toNumber(deviation.ref)}};
}

json::Value HarnessReport::toJSON() const {
  json::Array shapes;
  for (const HarnessTensor &tensor : tensors)
    shapes.push_back(
        json::Object{{"name", tensor.argument.name},
                     {"dtype", stringifyDType(tensor.argument.dtype)},
                     {"shape", json::Array(tensor.argument.shape)},
                     {"strides", json::Array(tensor.argument.strides)}});
  json::Object object{{"kernel", steps.front().kernel},
                      {"chip", chip},
                      {"grid", json::Array(steps.front().grid)},
                      {"tensors", std::move(shapes)},
                      {"passed", hasPassed()},
                      {"compared", isCompared()},
                      {"problems", json::Array(problems)},
                      {"runs", runs},
                      {"run", run.toJSON()}};
  if (steps.size() > 1) {
    json::Array list;
    for (const HarnessStep &step : steps)
      list.push_back(json::Object{{"kernel", step.kernel},
                                  {"grid", json::Array(step.grid)},
                                  {"run", step.run.toJSON()}});
    object["steps"] = std::move(list);
  }
  if (!sample.empty())
    object["sample"] = sample;
  if (output)
    object["output"] = ::toJSON(*output, outputTolerance);
  if (lse)
    object["lse"] = ::toJSON(*lse, lseTolerance);
  if (rounded)
    object["rounded"] = json::Object{{"count", rounded->count},
                                     {"different", rounded->different},
                                     {"most_steps", rounded->mostSteps}};
  if (!results.empty()) {
    json::Array list;
    for (const ComparedResult &result : results) {
      json::Value entry = ::toJSON(result.deviation, result.tolerance);
      (*entry.getAsObject())["name"] = result.name;
      list.push_back(std::move(entry));
    }
    object["results"] = std::move(list);
  }
  if (skeleton)
    object["skeleton"] =
        json::Object{{"same", skeleton->isSame}, {"text", skeleton->text}};
  if (replay)
    object["replay"] =
        json::Object{{"same", replay->isSame}, {"text", replay->text}};
  if (lostBets) {
    json::Object second{
        {"warp_instructions", lostBets->warpInstructions},
        {"output", ::toJSON(lostBets->output, outputTolerance)}};
    if (lostBets->lse)
      second["lse"] = ::toJSON(*lostBets->lse, lseTolerance);
    object["lost_bets"] = std::move(second);
  }
  return object;
}

static void printDeviation(llvm::raw_ostream &os, const std::string &name,
                           const Deviation &deviation, double tolerance) {
  os << llvm::formatv("{0,-17}{1:e2}, accepted {2:e2}", name, deviation.error,
                      tolerance);
  if (!deviation.worst.empty()) {
    os << "; largest at [";
    llvm::interleaveComma(deviation.worst, os);
    os << llvm::formatv("]: expected {0:f6}, got {1:f6}", deviation.ref,
                        deviation.out);
  }
  os << "\n";
}

/// What the kernel did, in a few lines.
static void printCounters(llvm::raw_ostream &os, const Counters &counters) {
  os << llvm::formatv("{0,-17}{1} warp instructions, {2} MMA, {3} barriers\n",
                      "executed:", counters.warpInstructions,
                      counters.mmaInstructions, counters.barriers);
  os << llvm::formatv(
      "{0,-17}{1} bytes loaded, {2} bytes stored\n",
      "global memory:", counters.globalLoadBytes + counters.bulkLoadBytes,
      counters.globalStoreBytes + counters.bulkStoreBytes);
  for (const auto &[name, traffic] : counters.shared)
    os << llvm::formatv("{0,-17}{1} instructions, {2} wavefronts, {3} bank "
                        "conflicts\n",
                        name + ":", traffic.instructions, traffic.wavefronts,
                        traffic.conflicts);
}

void HarnessReport::print(llvm::raw_ostream &os, StringRef file) const {
  for (auto [index, step] : llvm::enumerate(steps)) {
    if (steps.size() > 1)
      os << llvm::formatv("step {0} of {1}: ", index + 1, steps.size());
    os << llvm::formatv("kernel {0} for {1}, grid {2} x {3} x {4}\n",
                        step.kernel, chip, step.grid[0], step.grid[1],
                        step.grid[2]);
  }
  for (const std::string &problem : problems)
    llvm::WithColor::error(os) << problem << "\n";
  run.print(os, file);
  if (run.findings.empty())
    os << llvm::formatv("{0,-17}none\n", "findings:");
  printCounters(os, run.counters);
  if (!sample.empty())
    os << llvm::formatv("{0,-17}{1}\n", "sample:", sample);
  if (output)
    printDeviation(os, "relative error:", *output, outputTolerance);
  if (lse)
    printDeviation(os, "LSE error:", *lse, lseTolerance);
  if (rounded)
    os << llvm::formatv(
        "{0,-17}{1:P} of {2} numbers differ from what the reference rounds to, "
        "by {3} {4} at most\n",
        "rounded:",
        double(rounded->different) /
            double(std::max<int64_t>(1, rounded->count)),
        rounded->count, rounded->mostSteps,
        rounded->mostSteps == 1 ? "step" : "steps");
  for (const ComparedResult &result : results)
    printDeviation(os, "error of " + result.name + ": ", result.deviation,
                   result.tolerance);
  if (runs > 1)
    os << llvm::formatv("{0,-17}{1}\n", "corners:", runs - 1);
  if (lostBets) {
    os << llvm::formatv("{0,-17}{1} warp instructions, relative error {2:e2}",
                        "growing scores:", lostBets->warpInstructions,
                        lostBets->output.error);
    if (lostBets->lse)
      os << llvm::formatv(", LSE error {0:e2}", lostBets->lse->error);
    os << "\n";
  }
  if (isSecondRunLeftOut)
    os << llvm::formatv("{0,-17}not run, since the first run took more than "
                        "{1} warp instructions; --lose-bets runs them\n",
                        "growing scores:", kMostForSecondRun);
  if (replay)
    os << llvm::formatv("{0,-17}{1}\n", "replay:", replay->text);
  if (skeleton)
    os << llvm::formatv("{0,-17}{1}\n", "skeleton:", skeleton->text);
  if (!hasPassed())
    llvm::WithColor(os, llvm::HighlightColor::Error) << "FAILED";
  else if (isCompared())
    os << "passed";
  else
    os << "no error found; no result was compared";
  os << "\n";
}
