//===- CopiedCost.h - What plans on cp.async take ---------------*- C++ -*-===//

#ifndef ATTN_LIB_PLANNER_MODELS_COPIEDCOST_H
#define ATTN_LIB_PLANNER_MODELS_COPIEDCOST_H

#include "../../Schedule/Copied/CopiedExtents.h"
#include "../Seen/PtxasData.h"

namespace mlir::attn {

/// Sets what one block of one team takes on each resource; the instructions of
/// a warp's softmax.
double setCopiedBlockClocks(PlanEstimate &estimate, const ProblemFacts &facts,
                            const CopiedExtents &extents,
                            const CopiedPlan &plan, const TargetRow &target);

/// CTAs of a plan that an SM holds, at least 1, where a thread has `registers`.
int64_t countCTAs(const PlanEstimate &estimate, int64_t registers,
                  const CopiedPlan &plan, const TargetRow &target);

/// Registers that a thread may have where an SM holds so many CTAs.
int64_t getRegisterLimit(int64_t threads, int64_t ctasPerSM,
                         const TargetRow &target);

/// Returns the registers that a thread takes in addition where ptxas converts
/// 8-bit operands to f16 at each product.
int64_t getConvertedRegisters(const ProblemFacts &facts,
                              const TargetRow &target);

/// Returns true if a plan on cp.async is expected to spill where an SM holds so
/// many CTAs: by the rows of the ptxas data file, else by the register model.
bool expectsSpills(PtxasCase asked, const CopiedPlan &plan, int64_t ctasPerSM);

/// What a plan that states its CTAs an SM takes: sums of resources, tiles, and
/// a block's clocks on each resource.
PlanEstimate estimateResources(const ProblemFacts &facts,
                               const CopiedExtents &extents,
                               const CopiedPlan &plan, int64_t ctasPerSM,
                               const TargetRow &target);

/// Sets the tiles of a plan and the blocks of an average one.
void countCopiedTiles(PlanEstimate &estimate, const ProblemFacts &facts,
                      const CopiedPlan &plan);

/// Rows that share keys which `decode` holds in one tile, of usual and of wide
/// heads.
inline constexpr int64_t kDecodedRows = 32, kDecodedWideRows = 16;

/// Returns true if reading keys may take most of a problem's time: those of a
/// server, runs of keys, and no more queries than `decode` has in a tile.
bool isBoundByKeys(const ProblemFacts &facts);

/// Returns true if plans that pack the heads of a group are worth comparing:
/// queries are few, more than `decoded` rows share keys, and tiles of `blockM`
/// rows, of which a query takes `queryRows`, are fewer than those of one head
/// each.
bool savesTiles(const ProblemFacts &facts, int64_t blockM, int64_t queryRows,
                int64_t decoded = kDecodedRows);

/// Bytes that a row of keys and values takes DRAM and L2 longer than its own,
/// where a CTA has `heads` neighbouring heads: in pages of few keys pieces that
/// lie together are short.
double getBytesBeside(const ProblemFacts &facts, int64_t heads);

/// Sets what DRAM takes for the tiles and blocks of an estimate, and adds to
/// its time what that is longer.
void addDramTime(PlanEstimate &estimate, const ProblemFacts &facts,
                 const CopiedPlan &plan, const TargetRow &target);
/// The same for any plan with blocks of `blockN` keys, of which a CTA keeps
/// `bytesInFlight` under way; of a sequence's keys there are `runs` runs, as
/// many as the problem says if 0. A CTA loads `loadedShare` times the bytes of
/// its tile's keys and values: fewer where a cluster divides them, more where
/// values are columns of keys that come a second time.
void addDramTime(PlanEstimate &estimate, const ProblemFacts &facts,
                 int64_t blockN, double bytesInFlight, const TargetRow &target,
                 int64_t runs = 0, double loadedShare = 1);

} // namespace mlir::attn

#endif // ATTN_LIB_PLANNER_MODELS_COPIEDCOST_H
