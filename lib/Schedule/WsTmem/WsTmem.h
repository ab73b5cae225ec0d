//===- WsTmem.h - The schedule ws_tmem --------------------------*- C++ -*-===//
//
// FlashAttention-4 style (Zadouri et al., 2026): two tiles of 128 queries share
// a CTA and its walk over the keys. One thread loads Q, K and V by TMA, one
// multiplies with tcgen05, whose results are in tensor memory, and a warpgroup
// for each tile makes probabilities of its scores while the other one's
// products run. One CTA for each SM walks the tiles of the whole problem.
//
// Where results are too wide for two tiles a CTA has one, and tensor memory the
// scores of two blocks: a warpgroup makes probabilities of one while the next
// one's scores are computed, and another warpgroup stores results.
//
// A pair of CTAs multiplies together: the first one's thread starts products of
// 256 rows, 128 in each CTA, with halves of keys and of columns of values that
// each CTA has loaded. So shared memory's port gives half as many bytes of
// these. Two pairs of a cluster that walk the same keys load half of each slot
// for both (attn-shard-cga), which saves bytes of L2. Results of wide heads
// would fill all columns of such products' rows: a CTA has 64 rows then, two
// threads of the softmax a row, and probabilities lie in shared memory, since
// operand a of these products does.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WSTMEM_WSTMEM_H
#define ATTN_LIB_SCHEDULE_WSTMEM_WSTMEM_H

#include "../Core/RoleRegisters.h"
#include "../Tma/RingFacts.h"
#include "attn/Dialect/Attn/IR/TensorProducts.h"
#include "attn/Planner/Facts/RegisterLimit.h"
#include "attn/Schedule/Core/Schedule.h"

namespace mlir::attn {

/// Rows of a tile: the lanes of tensor memory.
inline constexpr int64_t kTmemRows = 128;
/// Most tiles of a CTA.
inline constexpr int64_t kMostTmemTiles = 2;

/// Slots of the numbers of a block's rows, where these lie apart: those of the
/// keys and values of two blocks.
inline constexpr int64_t kRowStages = 4;

/// True if a CTA has one tile, whose rows come in slices and values in parts.
inline bool hasOneTile(WsTmemPlanAttr plan) { return plan.getTiles() == 1; }
/// Returns true if queries, or results in one CTA's tensor memory, are too wide
/// for rings of keys and of values beside them: both share one.
bool hasWideHeads(const ProblemFacts &facts, WsTmemPlanAttr plan);
/// Returns true if each CTA of a pair has 64 rows of a tile, so that results of
/// wide heads fit: products are of M = 128, and probabilities lie in shared
/// memory. Two threads of a softmax have halves of a row's columns.
inline bool hasHalfTiles(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  return plan.getPair() && hasWideHeads(facts, plan);
}
/// Returns the rows of a CTA's tile.
inline int64_t getTileRows(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  return hasHalfTiles(facts, plan) ? kTmemRows / 2 : kTmemRows;
}
/// Columns of results of half tiles in a product: those of its widest
/// instruction. Each CTA has half of these columns of values.
inline constexpr int64_t kHalfTileColumns = 256;
/// Keys whose values are in a slot of half tiles: those of a swizzle's span of
/// probabilities.
inline constexpr int64_t kHalfTileKeys = 64;
/// Returns the blocks of whose scores a tile has columns.
inline int64_t countScoreSlots(WsTmemPlanAttr plan) {
  return hasOneTile(plan) ? 2 : 1;
}
/// Returns the slots that a tile's queries or a block's keys take.
int64_t countKeySlices(const ProblemFacts &facts, WsTmemPlanAttr plan);
/// Returns the columns of a slot of queries or of keys.
int64_t getSliceColumns(const ProblemFacts &facts, WsTmemPlanAttr plan);
/// Returns the keys of a slot of values.
int64_t getPartKeys(const ProblemFacts &facts, WsTmemPlanAttr plan);

/// Returns the threads of a CTA: a warpgroup more where one makes rows of 16
/// bits of 8-bit keys.
int64_t countThreads(const ProblemFacts &facts, WsTmemPlanAttr plan);

/// Returns the CTAs that multiply together.
inline int64_t countPairCTAs(WsTmemPlanAttr plan) {
  return plan.getPair() ? 2 : 1;
}
/// Returns the CTAs of a cluster.
inline int64_t countClusterCTAs(WsTmemPlanAttr plan) {
  return std::max(countPairCTAs(plan) * plan.getValueCtas(), plan.getCluster());
}
/// Returns the SMs that a plan's clusters fill at once: of four CTAs, where
/// nobody has counted these, whole clusters of those that pairs fill.
inline int64_t countClusteredSMs(WsTmemPlanAttr plan, const TargetRow &target) {
  int64_t cluster = countClusterCTAs(plan);
  if (int64_t counted = target.getClusteredSMs(cluster))
    return counted;
  return llvm::alignDown(target.getClusteredSMs(2), cluster);
}
/// Returns the pairs of a cluster, or the CTAs if each multiplies by itself,
/// that have tiles of their own: pairs load keys and values together.
inline int64_t countClusterPairs(WsTmemPlanAttr plan) {
  return countClusterCTAs(plan) / countPairCTAs(plan) / plan.getValueCtas();
}
/// Returns true if the loader reads which tile is dealt: it does not know it if
/// another CTA takes it from the counter, or where it asks for a cluster.
inline bool loaderReadsTiles(WsTmemPlanAttr plan) {
  return countClusterCTAs(plan) > 1 || plan.getClc();
}
/// Returns the keys of a block, and the columns of its values, that a CTA has
/// in slots: of a pair each has half of both.
inline int64_t getOwnKeys(WsTmemPlanAttr plan) {
  return plan.getBlockN() / countPairCTAs(plan);
}
int64_t getOwnValueColumns(const ProblemFacts &facts, WsTmemPlanAttr plan);
/// Returns the columns of results that a CTA computes, and those of tensor
/// memory that they take.
int64_t getOwnResultColumns(const ProblemFacts &facts, WsTmemPlanAttr plan);
int64_t getResultTensorColumns(const ProblemFacts &facts, WsTmemPlanAttr plan);

/// True if products of a row of queries have so many steps that the thread that
/// starts them needs more registers than usual, and softmaxes have fewer.
inline bool hasWideQueries(const ProblemFacts &facts) {
  static constexpr RegisterLimit kColumns{"ws_tmem.loader_columns"};
  return facts.headDim > kColumns;
}
/// Registers that a thread of each kind of warps asks for.
struct TmemRegisters {
  /// Those that load or multiply, and a softmax's.
  int64_t others, softmax;
  /// Those that store results, if others than a softmax's do, and those that
  /// widen keys, if any do.
  int64_t results = 0, widener = 0;
};
TmemRegisters getTmemRegisters(const ProblemFacts &facts, WsTmemPlanAttr plan);

/// True if TMA stores the results of a plan's rows and no others.
bool canStoreRowsByTma(const ProblemFacts &facts, WsTmemPlanAttr plan);

/// Returns the bytes of the rings and of their mbarriers, and of results that
/// pass through memory of their own.
ResourceSum getTmemSharedBytes(const ProblemFacts &facts, WsTmemPlanAttr plan,
                               const TargetRow &target);

/// Returns the columns of results that pass through shared memory at a time; 0
/// where they leave without.
int64_t getStagedColumns(const ProblemFacts &facts, WsTmemPlanAttr plan);
/// Returns the memory through which they pass: that of the queries where TMA
/// stores whole rows for which there is no other.
ResultBuffer getTmemResultBuffer(const ProblemFacts &facts, WsTmemPlanAttr plan,
                                 const TargetRow &target);

/// Returns the keys of a block whose probabilities are handed on first; 0 if
/// all are at once.
int64_t getFrontKeys(const ProblemFacts &facts, WsTmemPlanAttr plan);

/// Returns the columns of results that a thread which only stores these has in
/// registers at a time. Partial results of f16 have a scale for as many.
int64_t getStoredColumns(const ProblemFacts &facts, WsTmemPlanAttr plan);

/// Returns the columns of tensor memory that a block's probabilities take.
int64_t getProbabilityColumns(const ProblemFacts &facts, WsTmemPlanAttr plan);

/// True if a block's keys are handed back only after the block's first product
/// with values, so that their slot fills while the second one runs. Keys of the
/// last block are handed back before these products.
bool holdsKeys(WsTmemPlanAttr plan);

/// True if K and V share a ring, as their slots have as many bytes: those of a
/// pair, halves of rows and of columns, where the plan says so. They are used
/// in the order in which they are loaded.
bool sharesRing(const ProblemFacts &facts, WsTmemPlanAttr plan);

/// Returns the columns of tensor memory that the tiles take.
ResourceSum getTensorColumns(const ProblemFacts &facts, WsTmemPlanAttr plan);

/// True if half of a row of results is aligned as the whole is staged.
bool canHalve(const ProblemFacts &facts);

/// Emits the kernel of a plan in tile IR.
LogicalResult emitWsTmem(KernelContext &context, WsTmemPlanAttr plan);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSTMEM_WSTMEM_H
