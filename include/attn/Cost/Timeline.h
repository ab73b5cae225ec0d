//===- Timeline.h - Times for a recorded launch -----------------*- C++ -*-===//
//
// Replays a trace on a simple pipelined model of one SM: warps issue in order
// on four schedulers, wait for their registers, share the units of their
// scheduler and those of the SM; engines run beside them. docs/CycleModel.md
// describes the model, what it leaves out, and how far it is from hardware.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_COST_TIMELINE_H
#define ATTN_COST_TIMELINE_H

#include "attn/Simulator/Machine/Trace.h"
#include "attn/Simulator/Simulator.h"
#include "attn/Target/TargetTable.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

namespace mlir::attn::sim {

/// What a warp or an engine does.
enum class Activity : uint8_t {
  Compute, ///< arithmetic, moves and control
  Special, ///< exponentials and their like
  Tensor,
  Shared,
  Global,
  Copy, ///< bulk and asynchronous copies
  Wait, ///< for a barrier or an asynchronous operation
};
inline constexpr unsigned numActivities = unsigned(Activity::Wait) + 1;
/// "compute", "special", ...
llvm::StringRef stringifyActivity(Activity activity);

/// A stretch of time, in SM cycles.
struct TimelineSpan {
  Activity activity = Activity::Compute;
  double begin = 0, end = 0;
  uint32_t instruction = 0; ///< the first one
};

/// A row of a timeline: a warp, or the operations that a CTA has started.
struct TimelineRow {
  uint32_t cta = 0; ///< index in Timeline::ctas
  int warp = -1;    ///< -1: asynchronous operations
  std::vector<TimelineSpan> spans;
};

/// A completed phase of a barrier.
struct TimelineBarrier {
  std::string name;
  uint32_t cta = 0;
  double time = 0;
};

struct Timeline {
  double cycles = 0;
  std::vector<std::array<uint32_t, 3>> ctas;
  std::vector<TimelineRow> rows;
  std::vector<TimelineBarrier> barriers;
  std::vector<unsigned> lines; ///< PTX line by instruction
  std::vector<std::string> texts;

  /// Cycles in which a unit of the SM was busy, as a mean over its copies.
  std::map<std::string, double> busy;
  /// Warp cycles spent waiting, by what for: barriers and operations.
  std::map<std::string, double> stalls;

  /// Chrome's trace format, which Perfetto reads; one microsecond is a cycle.
  llvm::json::Value toChromeTrace() const;
  /// A page that needs nothing else.
  void printHTML(llvm::raw_ostream &os, llvm::StringRef title) const;
};

/// Gives times to all CTAs of the trace, which are on one SM together, at most
/// `resident` of them at once. Errors: a trace that was cut off, or one whose
/// waits cannot all end.
llvm::Expected<Timeline> replay(const Trace &trace, const TargetRow &target,
                                unsigned resident);

/// The time of a launch.
struct Estimate {
  unsigned ctasPerSM = 0; ///< resident ones
  std::string limit;      ///< what bounds them
  unsigned registers = 0; ///< of a thread
  double cycles = 0;
  double microseconds = 0; ///< at the clock of the target table's board
  /// Mean and largest relative error on the validation kernels.
  double meanError = 0, largestError = 0;
  /// Of the SM that was modelled.
  std::map<std::string, double> busy, stalls;

  llvm::json::Value toJSON() const;
  void print(llvm::raw_ostream &os) const;
};

/// What the estimate needs to know about a launch.
struct LaunchShape {
  uint64_t ctas = 1;
  unsigned threads = 1;
  uint64_t sharedBytes = 0;  ///< of a CTA
  unsigned registers = 128;  ///< of a thread
  uint64_t instructions = 0; ///< warp instructions of all CTAs
};

/// What a launch says itself: not the registers and the instructions.
LaunchShape getShape(const LaunchConfig &config, const KernelInfo &kernel);

/// CTAs that fit on one SM, at least 1; `limit` says what bounds them.
unsigned getResidentCtas(const TargetRow &target, const LaunchShape &shape,
                         std::string &limit);
/// How many CTAs a trace should have for an estimate.
unsigned getTracedCtas(const TargetRow &target, const LaunchShape &shape);

/// At least `count` CTAs of the trace, whole clusters spread over it.
Trace selectCtas(const Trace &trace, unsigned count);

/// Estimates a launch from a trace of some of its CTAs.
llvm::Expected<Estimate> estimate(const Trace &all, const TargetRow &target,
                                  const LaunchShape &shape);

} // namespace mlir::attn::sim

#endif // ATTN_COST_TIMELINE_H
