//===- LaunchCosts.h - What launches are estimated to take ------*- C++ -*-===//

#ifndef ATTN_DEVICE_LAUNCHCOSTS_H
#define ATTN_DEVICE_LAUNCHCOSTS_H

#include "attn/Simulator/Simulator.h"
#include <map>

namespace mlir::attn::device {

/// The cycle model's word on a launch.
struct LaunchCost {
  double microseconds = 0;
  std::string limiter; ///< the unit that is busy longest
  std::string refusal; ///< why the model says nothing of the kernel, if so
};

/// Estimates launches (docs/CycleModel.md), each kernel once for each shape.
class LaunchCosts {
public:
  explicit LaunchCosts(llvm::StringRef chip) : chip(chip) {}

  /// Lets a launch record what an estimate needs, if there is none of its kind.
  void prepare(const std::string &ptx, sim::LaunchConfig &config) const;
  /// Returns the estimate of a launch that has run.
  LaunchCost take(const std::string &ptx, const sim::KernelInfo &kernel,
                  const sim::LaunchConfig &config,
                  const sim::RunReport &report);
  /// Forgets the launches of a module that ends.
  void forget(const std::string &ptx);

private:
  std::string chip;
  /// By module, kernel and shape.
  std::map<std::string, LaunchCost> known;
};

} // namespace mlir::attn::device

#endif // ATTN_DEVICE_LAUNCHCOSTS_H
