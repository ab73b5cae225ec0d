//===- SelfLoad.h - The schedule self_load ----------------------*- C++ -*-===//
//
// A CTA is one warpgroup of 64 query rows, which multiplies with wgmma and
// loads for itself: one of its threads starts the copies by TMA. Several CTAs
// share an SM and hide each other's latencies; all walk the tiles of the whole
// problem.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_SELFLOAD_SELFLOAD_H
#define ATTN_LIB_SCHEDULE_SELFLOAD_SELFLOAD_H

#include "attn/Schedule/Core/Schedule.h"

namespace mlir::attn {

struct TilePlan;

/// Query rows of a CTA: those of a warpgroup.
inline constexpr int64_t kSelfLoadRows = 64;

/// Registers that a thread has: its part of the file, at most 256.
int64_t getThreadRegisters(SelfLoadPlanAttr plan);

/// True if TMA stores the results: the plan says so, and a tensor map tells
/// where their rows end and how they lie.
bool storesByTma(const ProblemFacts &facts, SelfLoadPlanAttr plan);
/// True if results pass through memory of their own.
bool hasResultMemory(const ProblemFacts &facts, SelfLoadPlanAttr plan);

/// How many blocks further on the values are that a block's refill loads: slots
/// are free when PV or, before it, the transposition has read them.
int64_t getValuesAhead(const ProblemFacts &facts, SelfLoadPlanAttr plan);

/// Bytes of the queries, of the rings, of transposed values, of mbarriers, and
/// of results.
ResourceSum getSharedBytes(const ProblemFacts &facts, SelfLoadPlanAttr plan);

/// True if as many CTAs as the plan says fit an SM.
bool fitsShared(const ProblemFacts &facts, SelfLoadPlanAttr plan,
                const TargetRow &target);

/// Returns which tiles CTAs walk under a plan.
TilePlan getTilePlan(SelfLoadPlanAttr plan);

/// Emits the kernel of a plan in tile IR.
LogicalResult emitSelfLoad(KernelContext &context, SelfLoadPlanAttr plan);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_SELFLOAD_SELFLOAD_H
