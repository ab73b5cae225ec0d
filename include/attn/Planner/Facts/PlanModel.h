//===- PlanModel.h - How plans of a schedule are compared -------*- C++ -*-===//
//
// A schedule says which plans are legal and emits them. Its model says which of
// them are worth comparing, whether registers hold them, and how long they
// take.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLANNER_FACTS_PLANMODEL_H
#define ATTN_PLANNER_FACTS_PLANMODEL_H

#include "attn/Planner/Facts/ProblemFacts.h"
#include "attn/Planner/Facts/ResourceSum.h"
#include "attn/Target/TargetTable.h"
#include <vector>

namespace mlir::attn {

/// Holds the expected resources and time of a plan on a target.
struct PlanEstimate {
  /// Bytes of shared memory of a CTA.
  ResourceSum sharedBytes;
  /// 32-bit registers of a thread.
  ResourceSum registers;
  /// CTAs that an SM holds at once.
  int64_t ctasPerSM = 0;
  /// Tiles of the launch, how many of them a CTA has, and how often all SMs are
  /// filled with CTAs. Dynamic extents count as getAssumedExtent().
  int64_t tiles = 0;
  int64_t ctaTiles = 1;
  double waves = 0;
  /// Blocks of keys of an average tile.
  double blocks = 0;
  /// Clocks of an SM for one tile without its blocks, and for one block.
  double tileClocks = 0;
  double blockClocks = 0;
  /// Clocks of an SM that one block takes on each resource.
  double tensorClocks = 0;
  double expClocks = 0;
  double issueClocks = 0;
  double sharedClocks = 0;
  /// Bytes of Q, K, V and the results, each counted once, and the microseconds
  /// that DRAM takes for them at its rate, and with what the plan keeps in
  /// flight. 0 where plans are not compared by them.
  double dramBytes = 0;
  double dramRoofMicroseconds = 0;
  double dramMicroseconds = 0;
  /// Microseconds that a tile's keys take when nobody else reads: what the
  /// longest sequence of a batch takes at least.
  double loneTileMicroseconds = 0;
  /// Microseconds of the whole problem on the target's reference board.
  double microseconds = 0;
  /// How many times as long as its own time a plan of another schedule has to
  /// take before this one comes first: above 1 where a schedule lost to others
  /// on a board, or was not timed beside them. Models leave it to rows of
  /// Data/margins.json.
  double margin = 1;
  /// Bounds the error of the results, as a multiple of the error with sums of
  /// f32. The bound is a factor of the calibration file.
  double errorFactor = 1;

  /// True if DRAM takes most of the time.
  bool isBoundByDram() const { return dramMicroseconds > 0.5 * microseconds; }
  /// The resource that a block takes longest on, "tensor", "exp", "issue" or
  /// "shared"; "dram" if that takes most of the time.
  llvm::StringRef getLimiter() const;
};

/// Stand for the extents that only the launch decides, in estimates of the
/// project's schedules: keys and queries, batch, heads.
inline constexpr int64_t kAssumedLength = 4096;
inline constexpr int64_t kAssumedBatch = 4;
inline constexpr int64_t kAssumedHeads = 16;

/// The extent that estimates take for one that only the launch decides.
inline int64_t getAssumedExtent(int64_t extent, int64_t assumed) {
  return ShapedType::isDynamic(extent) ? assumed : extent;
}

/// Compares the plans of one schedule.
class PlanModel {
public:
  virtual ~PlanModel() = default;

  /// Lists plans worth comparing on `target`, legal or not. None is a reason of
  /// its own, which names the schedule.
  virtual std::vector<PlanAttrInterface>
  getCandidates(const ProblemFacts &facts, const TargetRow &target) const = 0;

  /// Returns false where other schedules are known to do better, or this one is
  /// not trusted yet, so that only `schedule=` gets plans of it.
  virtual bool isOffered(const ProblemFacts &, const TargetRow &) const {
    return true;
  }

  /// Returns true if the registers of `plan` exceed what ptxas is known to
  /// hold.
  virtual bool isExpectedToSpill(const ProblemFacts &facts,
                                 PlanAttrInterface plan,
                                 const TargetRow &target) const = 0;

  /// Returns a plan that computes the same and has fewer registers at once,
  /// null if there is none. It stands in for one that is expected to spill.
  virtual PlanAttrInterface lighten(PlanAttrInterface) const { return {}; }

  /// Returns resources and time of `plan`, which belongs to the schedule.
  virtual PlanEstimate estimate(const ProblemFacts &facts,
                                PlanAttrInterface plan,
                                const TargetRow &target) const = 0;
};

} // namespace mlir::attn

#endif // ATTN_PLANNER_FACTS_PLANMODEL_H
