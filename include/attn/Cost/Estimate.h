//===- Estimate.h - The time of a launch ------------------------*- C++ -*-===//
//
// From the recording of some CTAs to the time of the whole launch, with what is
// known about the numbers behind it: a believed number has other values that it
// may have, and the estimate says what each of them would change.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_COST_ESTIMATE_H
#define ATTN_COST_ESTIMATE_H

#include "attn/Cost/Corners.h"
#include "attn/Cost/Timeline.h"
#include "attn/Simulator/Simulator.h"

namespace mlir::attn::sim {

/// What the estimate needs to know about a launch.
struct LaunchShape {
  uint64_t ctas = 1;
  unsigned threads = 1;
  unsigned clusterSize = 1;  ///< CTAs
  uint64_t sharedBytes = 0;  ///< of a CTA
  unsigned registers = 128;  ///< of a thread
  uint64_t instructions = 0; ///< warp instructions of all CTAs
};

/// What a launch says itself: not the registers and the instructions.
LaunchShape getShape(const LaunchConfig &config, const KernelInfo &kernel);

/// CTAs that fit on one SM, at least 1; `limit` says what bounds them.
unsigned getResidentCtas(const TargetRow &target, const LaunchShape &shape,
                         std::string &limit);
/// How many CTAs of each SM a trace should have for an estimate; of a launch
/// with clusters, how many clusters.
unsigned getTracedCtas(const TargetRow &target, const LaunchShape &shape);

/// `count` clusters of the trace, spread over it.
Trace selectCtas(const Trace &trace, unsigned count);
/// The part of a trace that an estimate for the chip replays. On chips with
/// tensor memory its arithmetic is behind the stores and signals that do not
/// need it, as ptxas puts it; the figures of the others rest on the order of
/// the PTX.
Trace prepareTrace(const Trace &trace, const TargetRow &target,
                   const LaunchShape &shape);

/// The time of a launch.
struct Estimate {
  std::string chip;
  unsigned ctasPerSM = 0;    ///< resident ones
  std::string limit;         ///< what bounds them
  unsigned registers = 0;    ///< of a thread
  std::string registersFrom; ///< who says so; empty where nobody was asked
  double cycles = 0;
  double microseconds = 0; ///< at the clock of the target table's board
  /// On a chip where the model was compared with hardware.
  std::optional<ModelError> error;
  /// How many numbers of the chip's table are known how, by Evidence.
  std::array<unsigned, 3> evidence{};
  /// On other chips, or where it was asked for: over each believed number's
  /// other values alone, and over all that are slower or faster at once.
  std::optional<CycleRange> range;
  std::optional<Corners> corners;
  /// Of the SM that was modelled.
  std::map<std::string, double> busy, stalls, counts;

  llvm::json::Value toJSON() const;
  void print(llvm::raw_ostream &os) const;
};

/// Estimates a launch from a trace of some of its CTAs. `wantsCorners` replays
/// it for every choice of values of the believed numbers that matter to it.
/// Errors: those of replay; instructions that the chip does not have.
llvm::Expected<Estimate> estimate(const Trace &all, const TargetRow &target,
                                  const LaunchShape &shape,
                                  bool wantsCorners = false);

/// What two estimates with corners, as JSON, say of each other: which launch
/// takes fewer cycles in all corners, or which corner decides. The names are
/// those of their files. Errors: what is no such estimate, estimates of
/// different chips.
llvm::Error compareEstimates(llvm::StringRef firstName, llvm::StringRef first,
                             llvm::StringRef secondName, llvm::StringRef second,
                             llvm::raw_ostream &os);

} // namespace mlir::attn::sim

#endif // ATTN_COST_ESTIMATE_H
