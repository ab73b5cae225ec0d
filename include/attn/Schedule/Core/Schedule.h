//===- Schedule.h - How an attention is computed ----------------*- C++ -*-===//
//
// A schedule knows one way to compute an attention: which plans are legal, what
// they cost, and how to emit the kernel in tile IR. All schedules are listed in
// one place, getSchedules(), to which programs that embed the compiler add
// their own; attn-plan chooses among them and attn-expand emits what was
// chosen.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_CORE_SCHEDULE_H
#define ATTN_SCHEDULE_CORE_SCHEDULE_H

#include "attn/Schedule/Core/KernelContext.h"
#include "attn/Schedule/Problem/ProblemFacts.h"
#include "attn/Target/TargetTable.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mlir::attn {

/// A resource as a sum of named parts, printed in remarks and errors:
/// "98304 (q 32768 + k 2 x 16384 + v 2 x 16384)".
class ResourceSum {
public:
  /// Adds `count` pieces of `size`; nothing if either is 0.
  void add(llvm::StringRef name, int64_t size, int64_t count = 1);
  int64_t getTotal() const { return total; }
  std::string str() const;

private:
  struct Part {
    std::string name;
    int64_t size;
    int64_t count;
  };
  std::vector<Part> parts;
  int64_t total = 0;
};

/// What a plan is expected to take on a target.
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
  /// on a board, or was not timed beside them.
  double margin = 1;
  /// How many times as large as those of sums of f32 errors of the results were
  /// seen to be at most (docs/Rationale/Schedules.md).
  double errorFactor = 1;

  /// True if DRAM takes most of the time.
  bool isBoundByDram() const { return dramMicroseconds > 0.5 * microseconds; }
  /// The resource that a block takes longest on, "tensor", "exp", "issue" or
  /// "shared"; "dram" if that takes most of the time.
  llvm::StringRef getLimiter() const;
};

/// What estimates of the project's schedules take for the extents that only the
/// launch decides: keys and queries, batch, heads.
inline constexpr int64_t kAssumedLength = 4096;
inline constexpr int64_t kAssumedBatch = 4;
inline constexpr int64_t kAssumedHeads = 16;

/// The extent that estimates take for one that only the launch decides.
inline int64_t getAssumedExtent(int64_t extent, int64_t assumed) {
  return ShapedType::isDynamic(extent) ? assumed : extent;
}

/// One way to compute an attention.
class Schedule {
public:
  virtual ~Schedule() = default;

  /// The registered name, as `schedule=` and plans give it.
  virtual llvm::StringRef getName() const = 0;

  /// The plan that has the default of each parameter.
  virtual PlanAttrInterface getDefaultPlan(MLIRContext *context) const = 0;

  /// Plans worth comparing on `target`, legal or not. None is a reason of its
  /// own, which names the schedule.
  virtual std::vector<PlanAttrInterface>
  getCandidates(const ProblemFacts &facts, const TargetRow &target) const = 0;

  /// Success if the schedule can compute the problem at all, whatever the plan;
  /// else the reason, which starts with the schedule's name.
  virtual llvm::Error isApplicable(const ProblemFacts &facts,
                                   const TargetRow &target) const = 0;

  /// Success if `plan` computes the problem on `target`; else the reason: what
  /// isApplicable or checkPlan says.
  llvm::Error isLegal(const ProblemFacts &facts, PlanAttrInterface plan,
                      const TargetRow &target) const;

  /// Success if `plan` computes a problem that the schedule can compute; else
  /// the reason. A resource that does not fit is a reason that shows the sum.
  virtual llvm::Error checkPlan(const ProblemFacts &facts,
                                PlanAttrInterface plan,
                                const TargetRow &target) const = 0;

  /// False where other schedules are known to do better, or this one is not
  /// trusted yet, so that only `schedule=` gets plans of it.
  virtual bool isOffered(const ProblemFacts &, const TargetRow &) const {
    return true;
  }

  /// True if the registers of `plan` exceed what ptxas is known to hold.
  virtual bool isExpectedToSpill(const ProblemFacts &facts,
                                 PlanAttrInterface plan,
                                 const TargetRow &target) const = 0;

  /// Resources and time of `plan`, which belongs to this schedule.
  virtual PlanEstimate estimate(const ProblemFacts &facts,
                                PlanAttrInterface plan,
                                const TargetRow &target) const = 0;

  /// `plan` with parameters replaced. Unknown names and values are diagnostics
  /// of `emitError` that list what there is. A schedule in which one choice
  /// rules out another may drop choices of `plan` that nobody named.
  virtual FailureOr<PlanAttrInterface>
  setParameters(llvm::function_ref<InFlightDiagnostic()> emitError,
                PlanAttrInterface plan,
                llvm::ArrayRef<PlanParameter> parameters) const;

  /// Groups of a row's columns that leave one after the other, so that partial
  /// results of f16 have units of their own in each.
  virtual int64_t countUnitGroups(const ProblemFacts &,
                                  PlanAttrInterface) const {
    return 1;
  }

  /// Grid, block and grid of warps of the kernel on `target`. A grid or threads
  /// that are not given are an error that names the schedule.
  virtual KernelShape getKernelShape(const ProblemFacts &facts,
                                     PlanAttrInterface plan,
                                     const TargetRow &target) const = 0;

  /// Emits the kernel's body in tile IR at the context's builder. Fails with a
  /// diagnostic; without one, whoever called names the schedule.
  virtual LogicalResult emit(KernelContext &context,
                             PlanAttrInterface plan) const = 0;
};

/// The base of schedules whose plans are attributes of the type `PlanAttr`, a
/// child of `Attn_Plan` (attn/Dialect/Attn/IR/PlanBase.td).
template <typename PlanAttr>
class ScheduleOf : public Schedule {
public:
  llvm::StringRef getName() const final {
    return PlanAttr::getSyntax().schedule;
  }
  PlanAttrInterface getDefaultPlan(MLIRContext *context) const final {
    return PlanAttr::get(context, {});
  }
};

/// All schedules: those of this project, then registered ones in their order.
llvm::SmallVector<const Schedule *> getSchedules();

/// Adds a schedule, which lives as long as the process. From then on attn-plan
/// compares its plans with the others and `schedule=` selects it. An error if
/// the name is taken. May be called from any thread; a compilation that is
/// running need not see it.
llvm::Error registerSchedule(const Schedule &schedule);

/// The schedule called `name`, or an error that lists the schedules there are.
llvm::Expected<const Schedule &> lookupSchedule(llvm::StringRef name);

/// The project's schedules, such as getSplitQSchedule(): Schedules.def.
#define ATTN_SCHEDULE(name) const Schedule &get##name##Schedule();
#include "attn/Schedule/Core/Schedules.def"
#undef ATTN_SCHEDULE

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_CORE_SCHEDULE_H
