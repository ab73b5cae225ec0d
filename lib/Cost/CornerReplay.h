//===- CornerReplay.h - A launch under other numbers ------------*- C++ -*-===//

#ifndef ATTN_LIB_COST_CORNERREPLAY_H
#define ATTN_LIB_COST_CORNERREPLAY_H

#include "attn/Cost/Corners.h"
#include "attn/Cost/Timeline.h"

namespace mlir::attn::sim {

/// Replays one trace under the values that the numbers of a chip may have.
class CornerReplay {
public:
  /// `share` is how much longer the busiest SM takes than the traced CTAs.
  CornerReplay(const Trace &trace, const CycleTable &table, unsigned resident,
               double share)
      : trace(trace), table(table), resident(resident), share(share) {}

  /// With the numbers that we take. Has to come first.
  llvm::Expected<Timeline> getNominal();
  /// The launch's cycles, from a timeline with these numbers.
  double getCycles(const CycleNumbers &numbers, const Timeline &timeline) const;
  CycleRange getRange();
  Corners getAll();

private:
  /// Numbers that change something, and what each value alone makes of it.
  void findAxes();
  double replayWith(const CycleNumbers &numbers) const;

  const Trace &trace;
  const CycleTable &table;
  unsigned resident;
  double share;
  Timeline nominal;
  struct Effect {
    CornerAxis axis;
    std::vector<double> cycles; ///< by value
  };
  std::optional<std::vector<Effect>> effects;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_COST_CORNERREPLAY_H
