//===- Mla.h - The schedule mla ---------------------------------*- C++ -*-===//
//
// Latent attention in its absorbed form: one key head, whose first columns are
// the values. A block of keys is copied to shared memory once.
//
// With `score = own`, for tiles of 64 rows and products by wgmma, warpgroups
// have roles (MlaKernel.h). 8-bit keys become f16 in shared memory.
//
// Otherwise warps that share rows divide the block's keys where scores are
// computed, exchange them, and divide the columns of the results, of which no
// warp could hold all; 8-bit keys become f16 as fragments. That kernel is one
// of those in ../Copied.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_MLA_MLA_H
#define ATTN_LIB_SCHEDULE_MLA_MLA_H

#include "attn/Schedule/Core/Schedule.h"

namespace mlir::attn {

struct TilePlan;

/// Returns the bytes of the buffers of a plan; with `score = own` what the
/// warpgroups hand each other among them.
ResourceSum getMlaSharedBytes(const ProblemFacts &facts, MlaPlanAttr plan);

/// Returns the threads of a CTA: a warpgroup more than the plan's where
/// `score = own` widens 8-bit keys.
int64_t countLatentThreads(const ProblemFacts &facts, MlaPlanAttr plan);

/// True if TMA fills the slots of `score = own`, false if cp.async does: where
/// pages are too small for TMA or no tensor map describes k, and where slots of
/// 8-bit keys take more than two copies, for whose addresses there are no
/// registers beside those of the widener.
bool loadsLatentByTma(const ProblemFacts &facts, MlaPlanAttr plan);

/// True if TMA copies a tile's queries too: rows of whole queries, or heads of
/// one.
bool loadsQueriesByTma(const ProblemFacts &facts, MlaPlanAttr plan);

/// True if the scores of `score = own` hold the first slice of the queries in
/// registers, whose memory is another slot for the first slice of the keys.
bool holdsLatentQueries(const ProblemFacts &facts, MlaPlanAttr plan);

/// The plan without queries in registers of `score = own`, which the warpgroup
/// of the scores alone holds.
MlaPlanAttr getUnheldPlan(MlaPlanAttr plan);

/// Returns the slots of 8-bit keys: one for a slice of values, which is filled
/// again before its wide slot is free, and two for the other columns.
inline int64_t countRawSlots(bool isValue) { return isValue ? 1 : 2; }

/// True if a slice of the keys from column `first` on has a slot more than the
/// plan says: the first one where 8-bit keys are widened, which is filled while
/// results still read it.
bool hasSpareSlot(const ProblemFacts &facts, int64_t first, bool isValue);

/// Query rows that share the keys of a sequence; those of one query if only the
/// launch knows how many there are.
int64_t countLatentRows(const ProblemFacts &facts);

/// Slices of the values, each with a ring of its own, of `score = own`.
int64_t countLatentSlices(const ProblemFacts &facts, MlaPlanAttr plan);

/// Returns the tiles that the rows of a sequence have, or in clusters the
/// groups of tiles.
int64_t countSequenceTiles(const ProblemFacts &facts, MlaPlanAttr plan);

/// Returns which tiles the CTAs of `score = own` walk; runs of keys are dealt
/// as tiles are.
TilePlan getTilePlan(const ProblemFacts &facts, MlaPlanAttr plan);

/// True if all tiles have as many rows as the plan says.
bool fillsTiles(const ProblemFacts &facts, MlaPlanAttr plan);

/// True if what only results need of 8-bit keys is computed again after the
/// blocks of keys (attn.renew_entry): for rows that do not fill tiles, and more
/// than 32. Whole tiles need less of it.
bool renewsEntry(const ProblemFacts &facts, MlaPlanAttr plan);

/// True if slices of the results of `score = own` leave one after the other,
/// under the products of a tile's last block. Where a tile lacks rows those of
/// 16 bits do not, and those of clusters never, for lack of registers.
bool leavesInSlices(const ProblemFacts &facts, MlaPlanAttr plan);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_MLA_MLA_H
