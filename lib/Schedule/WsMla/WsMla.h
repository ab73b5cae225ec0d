//===- WsMla.h - The schedule ws_mla ----------------------------*- C++ -*-===//
//
// Latent attention in its absorbed form, by warps of unlike roles in code for
// sm_80: 4 copy keys, 4 multiply them with the queries, 2 compute the softmax
// and 8 hold the results. What the roles hand each other lies in shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WSMLA_WSMLA_H
#define ATTN_LIB_SCHEDULE_WSMLA_WSMLA_H

#include "attn/Schedule/Core/Schedule.h"

namespace mlir::attn {

struct TilePlan;

/// Warps of each role.
inline constexpr int64_t kRoleLoadWarps = 4, kRoleScoreWarps = 4,
                         kRoleSoftmaxWarps = 2, kRoleResultWarps = 8;

/// Rows and columns of the grid in which the warps of the scores, or of the
/// softmax, have them.
std::array<int64_t, 2> getScoreGrid(WsMlaPlanAttr plan);
std::array<int64_t, 2> getSoftmaxGrid(WsMlaPlanAttr plan);

/// Columns of the buffers of queries and keys: the head dimension in k-steps.
int64_t getRoleKeyColumns(const ProblemFacts &facts);

/// Registers that each thread has: its part of the file.
int64_t getRoleRegisters(WsMlaPlanAttr plan);

/// Bytes of the queries, of the ring of keys, of what the roles hand each other
/// and of mbarriers.
ResourceSum getRoleSharedBytes(const ProblemFacts &facts, WsMlaPlanAttr plan);

/// Returns which tiles CTAs walk under a plan, whose rows are the heads of
/// queries.
TilePlan getTilePlan(const ProblemFacts &facts, WsMlaPlanAttr plan);

/// Emits the kernel of a plan in tile IR.
LogicalResult emitWsMla(KernelContext &context, WsMlaPlanAttr plan);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSMLA_WSMLA_H
