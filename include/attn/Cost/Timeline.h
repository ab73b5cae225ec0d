//===- Timeline.h - Times for a recorded launch -----------------*- C++ -*-===//
//
// Replays a trace on a simple pipelined model of an SM, or of one for each CTA
// of a cluster: warps issue in order on four schedulers, wait for their
// registers, share the units of their scheduler and those of the SM; engines
// run beside them. docs/CycleModel.md describes the model, what it leaves out,
// and how far it is from hardware.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_COST_TIMELINE_H
#define ATTN_COST_TIMELINE_H

#include "attn/Simulator/Machine/Trace.h"
#include "attn/Simulator/Simulator.h"
#include "attn/Target/CycleTable.h"
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
  /// What each SM did, in the mean: warp instructions ("issue"), of them those
  /// of units ("mufu", "fma", "alu"), products of the tensor core, wavefronts
  /// and bytes of shared memory, bytes of tensor memory, waits of warps.
  std::map<std::string, double> counts;

  /// Chrome's trace format, which Perfetto reads; one microsecond is a cycle.
  llvm::json::Value toChromeTrace() const;
  /// A page that needs nothing else.
  void printHTML(llvm::raw_ostream &os, llvm::StringRef title) const;
};

/// Gives times to all CTAs of the trace, at most `resident` of them on an SM at
/// once: all on one SM, or those of a cluster on one each. Errors: a trace that
/// was cut off, or one whose waits cannot all end.
llvm::Expected<Timeline> replay(const Trace &trace, const CycleNumbers &numbers,
                                unsigned resident);
/// The same with the numbers that we take for the chip.
llvm::Expected<Timeline> replay(const Trace &trace, const TargetRow &target,
                                unsigned resident);

} // namespace mlir::attn::sim

#endif // ATTN_COST_TIMELINE_H
