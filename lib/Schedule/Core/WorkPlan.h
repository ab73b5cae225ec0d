//===- WorkPlan.h - Runs that a kernel in front deals -----------*- C++ -*-===//
//
// A kernel in front of the one that attends writes down which run each CTA has
// (attn.plan_work). It reads lengths only, so that its records serve every
// launch on the same lengths.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_CORE_WORKPLAN_H
#define ATTN_LIB_SCHEDULE_CORE_WORKPLAN_H

#include "attn/Schedule/Core/KernelContext.h"

namespace mlir::attn {

/// Keys of a sequence that its queries see at most.
int64_t getSeenKeys(const ProblemFacts &facts);

/// Gives `facts` memory for `runs` records, a workspace of the launch.
void makeWorkPlan(ProblemFacts &facts, int64_t runs);

/// The kernel that writes the records of `facts.work`.
class WorkPlanFrame : public KernelFrame {
public:
  WorkPlanFrame(const ProblemFacts &facts, const TargetRow &target);
  KernelShape getShape() const;
  void emit();

private:
  int64_t getRuns() const { return facts.work.shape.front(); }

  const ProblemFacts &facts;
};

/// A record, i32 each: a sequence, its run, how many runs it has, its keys.
struct WorkRecord {
  Value sequence, run, runs, keys;
};

/// Loads record `index`, i32.
WorkRecord loadWorkRecord(KernelContext &context, Value index);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_WORKPLAN_H
