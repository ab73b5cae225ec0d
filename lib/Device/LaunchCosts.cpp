//===- LaunchCosts.cpp - What launches are estimated to take --------------===//

#include "attn/Device/LaunchCosts.h"
#include "attn/Cost/CostReport.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::device;
using namespace mlir::attn;
using llvm::Expected;

/// Returns what the kinds of a module's launches begin with.
static std::string makePrefix(const std::string &ptx) {
  return llvm::formatv("{0} ", static_cast<const void *>(ptx.data()));
}

/// Returns a launch's kind, which is unique among the modules that are loaded.
static std::string makeKey(const std::string &ptx,
                           const sim::LaunchConfig &config) {
  auto join = [](const std::array<uint32_t, 3> &sizes) {
    return llvm::formatv("{0}x{1}x{2}", sizes[0], sizes[1], sizes[2]).str();
  };
  return makePrefix(ptx) + llvm::formatv("{0} {1} {2} {3} {4}", config.kernel,
                                         join(config.grid), join(config.block),
                                         join(config.cluster),
                                         config.dynamicShared)
                               .str();
}

void LaunchCosts::forget(const std::string &ptx) {
  std::string prefix = makePrefix(ptx);
  auto it = known.lower_bound(prefix);
  while (it != known.end() && llvm::StringRef(it->first).starts_with(prefix))
    it = known.erase(it);
}

void LaunchCosts::prepare(const std::string &ptx,
                          sim::LaunchConfig &config) const {
  if (known.count(makeKey(ptx, config)))
    return;
  sim::CostOptions options;
  options.estimate = true;
  options.apply(config);
}

LaunchCost LaunchCosts::take(const std::string &ptx,
                             const sim::KernelInfo &kernel,
                             const sim::LaunchConfig &config,
                             const sim::RunReport &report) {
  auto [it, isNew] = known.insert({makeKey(ptx, config), {}});
  if (!isNew || !report.trace)
    return it->second;
  sim::CostOptions options;
  options.estimate = true;
  sim::MeasuredLaunch launch{kernel.name, chip, sim::getShape(config, kernel),
                             report};
  Expected<sim::CostReport> costs = sim::computeCosts(launch, ptx, options);
  if (!costs) {
    it->second.refusal = llvm::toString(costs.takeError());
    return it->second;
  }
  const std::map<std::string, double> &busy = costs->estimate->busy;
  auto longest = llvm::max_element(busy, llvm::less_second());
  it->second = {costs->getMicroseconds(),
                longest == busy.end() ? "" : longest->first,
                {}};
  return it->second;
}
