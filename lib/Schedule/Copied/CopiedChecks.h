//===- CopiedChecks.h - Which problems and plans cp.async takes -*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COPIED_COPIEDCHECKS_H
#define ATTN_LIB_SCHEDULE_COPIED_COPIEDCHECKS_H

#include "../Core/CommonChecks.h"
#include "CopiedPlan.h"
#include "attn/Schedule/Core/Schedule.h"

namespace mlir::attn {

/// Refuses problems that the emitter of copied blocks does not take, with what
/// the schedule's own `parts` can do.
llvm::Error checkCopied(llvm::StringRef schedule, const ProblemFacts &facts,
                        Parts parts = {});

/// Refuses plans that do not fit: shared memory, packed heads, the grid.
llvm::Error checkCopiedPlan(llvm::StringRef schedule, const ProblemFacts &facts,
                            const CopiedPlan &plan, const TargetRow &target);

/// Refuses runs of keys that are not of whole blocks of `blockN` keys.
llvm::Error checkRunKeys(const ProblemFacts &facts, int64_t blockN);

/// Whether an SM's shared memory holds so many CTAs of a plan.
llvm::Error checkCTAsFit(int64_t ctasPerSM, const ResourceSum &shared,
                         const TargetRow &target);

/// Says how a kernel whose blocks cp.async copies adds up what a row is made of
/// (Schedule::describeSums): by no more than what is said here.
std::string describeCopiedSums(const ProblemFacts &facts,
                               const CopiedPlan &plan);

/// Refuses `runs` that are dealt by lengths, unless it is 0, without lengths to
/// deal them by, or without partial results that nobody but attn.combine reads:
/// there are none of absent runs.
llvm::Error checkDealtRuns(const ProblemFacts &facts, int64_t runs);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COPIED_COPIEDCHECKS_H
