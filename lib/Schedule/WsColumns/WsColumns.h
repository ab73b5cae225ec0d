//===- WsColumns.h - The schedule ws_columns --------------------*- C++ -*-===//
//
// For heads whose results are too wide for the registers of one warpgroup: a
// tile of 64 query rows is shared by two. The first one computes scores and
// probabilities, and the first columns of the results; the second one the other
// columns, of probabilities that it is handed through shared memory. Three
// threads load slices of the rows of Q, K and V by TMA. One CTA for each SM
// walks the tiles of the whole problem.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WSCOLUMNS_WSCOLUMNS_H
#define ATTN_LIB_SCHEDULE_WSCOLUMNS_WSCOLUMNS_H

#include "../Core/RoleRegisters.h"
#include "attn/Planner/Facts/RegisterLimit.h"
#include "attn/Schedule/Core/Schedule.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::attn {

struct TilePlan;

/// Rows of a tile: those of a product of one warpgroup.
inline constexpr int64_t kColumnsRows = 64;

/// Registers that a thread asks for that loads, and one of the other two
/// warpgroups.
inline constexpr RegisterLimit kLoaderRegisters{"ws_columns.loader_registers"};
inline int64_t getColumnsRegisters(WsColumnsPlanAttr plan) {
  return divideRegisters(plan.getThreads(), kLoaderRegisters, 2);
}

/// Columns of a slot of Q, K and V.
inline constexpr int64_t kColumnsSlice = 64;

/// Returns the slices of rows of `columns` elements.
inline int64_t countSlices(int64_t columns) {
  return llvm::divideCeil(columns, kColumnsSlice);
}

/// Slices of the rows of Q and K that a CTA multiplies: of the whole depth, or
/// as many for each of those that divide it.
inline int64_t countKeySlices(const ProblemFacts &facts,
                              WsColumnsPlanAttr plan) {
  return llvm::divideCeil(countSlices(facts.headDim), plan.getDepthCtas());
}

/// Columns of the results of a CTA.
inline int64_t getOwnColumns(const ProblemFacts &facts,
                             WsColumnsPlanAttr plan) {
  return facts.valueDim / plan.getDepthCtas();
}

/// Bytes of the rings and of their mbarriers, and of what the warpgroups hand
/// over.
ResourceSum getColumnsSharedBytes(const ProblemFacts &facts,
                                  WsColumnsPlanAttr plan);

/// Most columns of results of the second warpgroup, which has no scores.
inline constexpr RegisterLimit kMostOtherColumns{"ws_columns.other_columns"};

/// Returns which tiles CTAs walk under a plan.
TilePlan getTilePlan(const ProblemFacts &facts, WsColumnsPlanAttr plan);

/// Emits the kernel of a plan in tile IR.
LogicalResult emitWsColumns(KernelContext &context, WsColumnsPlanAttr plan);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSCOLUMNS_WSCOLUMNS_H
