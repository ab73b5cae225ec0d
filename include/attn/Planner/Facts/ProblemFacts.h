//===- ProblemFacts.h - What schedules ask about an attention ---*- C++ -*-===//
//
// The extents, types and variants of one attn.attention in a form that
// schedules and the launch record read: extents that several operands share are
// unified, so that each is static as soon as one operand says so.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLANNER_FACTS_PROBLEMFACTS_H
#define ATTN_PLANNER_FACTS_PROBLEMFACTS_H

#include "attn/Planner/Facts/TensorFacts.h"
#include "attn/Problem/Options.h"
#include "attn/Problem/ScaleTiles.h"
#include "llvm/ADT/SetVector.h"
#include <optional>

namespace mlir::attn {

/// Lengths stay below this, so that row and key indices can be added to mask
/// bounds in 32 bits.
inline constexpr int64_t kLengthLimit = int64_t(1) << 29;

/// One attention problem.
struct ProblemFacts {
  AttentionOp op;
  Type elementType;
  /// The type of k and v: that of q, or one of 8 bits.
  Type keyType;
  Type outType;
  /// Extents; ShapedType::kDynamic where the launch decides. With packed
  /// sequences `batch` counts sequences and `queries` is the bound on a
  /// sequence's length. `keys` is what k holds, of pages what a row of the
  /// table names, which with a list of them only the launch knows.
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t headDim = 0;
  int64_t valueDim = 0;
  MaskAttr mask;
  /// The factors and counts of Options.def. `scale` is the one in force; of
  /// the others 0 means that there is none.
#define ATTN_FACTOR(ID, NAME, VALUE, SIGN, CONSTRAINTS, DOC)                   \
  double ID = getDefaultFactor(FactorSign::SIGN);
#define ATTN_COUNT(ID, NAME, VALUE, CONSTRAINTS, DOC) int64_t ID = 0;
#define ATTN_NATURAL(ID, NAME, VALUE, CONSTRAINTS, DOC)                        \
  std::optional<int64_t> ID;
#include "attn/Problem/Options.def"
  /// Sequences are packed.
  bool varlen = false;
  /// Pages that are not in the pool hide their keys.
  bool selected = false;
  /// Rows are not divided, and `lse` has their maxima and sums.
  bool rowState = false;
  /// Keys of each sequence that costs are those of; empty if nobody has said.
  SmallVector<int64_t> expectedKeys;
  /// Extents are those of documents, so that `key_range` says nothing more.
  bool isDocument = false;
  TensorFacts q, k, v, o, lse, sinks, cuSeqlensQ, cuSeqlensK;
  /// What units of each row of o stand for, or of groups of its columns: an
  /// output.
  TensorFacts oScales;
  /// The number that the largest size of results joins: an output.
  TensorFacts amax;
  /// All three or none; that of q only beside a q of 8 bits.
  TensorFacts qDescale, kDescale, vDescale;
  TensorFacts pageTable, pageIndptr, kvLengths;
  /// Lists of blocks of keys, both or none.
  TensorFacts blockCounts, blockIndices;
  /// What the kernel merges its partial results into, which are then named
  /// `partial_o` and `partial_lse`; without value where somebody else does.
  TensorFacts mergedO, mergedLse, mergedScales, mergedAmax;
  /// Which run each CTA has, records that a kernel in front writes
  /// (attn.plan_work); without value where CTAs find out for themselves.
  TensorFacts work;
  /// Both or none.
  TensorFacts initO, initLse;
  /// What units of each row of k and v stand for, both or none; of latent keys
  /// those of k.
  TensorFacts kScales, vScales;
  /// The rotated columns of latent keys, and of queries, where k and q have
  /// only the others.
  TensorFacts kRope, qRope;
  /// Columns of what the kernel merges its partial results into that share a
  /// scale.
  int64_t mergedGroup = 0;
  /// Changes merged results before they are rounded; null for nothing.
  Region *mergedMod = nullptr;
  /// Pages of the pools of k and v.
  int64_t pages = 0;
  /// Keys beside those of k, all but the values or none, and the pages of
  /// their pool. Beside them `keys` counts both, of k those that some query
  /// sees, and `mask` is none: who knows where the keys are hides what
  /// `ownMask` hides.
  TensorFacts addedK, addedV, addedTable, addedLengths;
  int64_t addedPages = 0;
  MaskAttr ownMask;
  /// What the regions read from outside: memrefs, and scalars that are not
  /// constants.
  SmallVector<TensorFacts> captures;
  SmallVector<Value> scalars;

  /// Query heads that share a key head; dynamic if only the launch knows.
  int64_t getGroup() const;
  /// True if q, k and v have 8-bit elements.
  bool isNarrow() const;
  /// True if k and v have 8-bit elements and q has not.
  bool hasNarrowKeys() const;
  /// True if k and v have 8-bit elements, whatever q has.
  bool hasNarrowValues() const { return isNarrow() || hasNarrowKeys(); }
  /// True if v is contiguous along its keys instead of along its head
  /// dimension.
  bool hasTransposedValues() const;
  /// True if the values are columns of the keys, and no tensor of their own.
  bool isLatent() const { return ropeDim.has_value(); }
  /// Columns of latent keys that are none of values.
  int64_t getRopeColumns() const { return ropeDim.value_or(0); }
  /// True if k and v are pools of pages.
  bool isPaged() const { return static_cast<bool>(pageTable); }
  /// True if lists say which blocks of keys queries have.
  bool hasBlockLists() const { return static_cast<bool>(blockIndices); }
  /// True if keys are those of a server's cache, each read once a launch: in
  /// pages, or as many as `kv_lengths` says.
  bool isServed() const;
  /// True if running maxima are whole numbers, by which results do not depend
  /// on how keys are cut into runs but for the order of sums. 8 bits have too
  /// few digits for a row's largest probability to be any number but 1. Maxima
  /// that are results are what they are.
  bool hasWholeMaxima() const {
    return !isNarrow() && !rowState &&
           (isServed() || isLatent() || kvSplits != 0);
  }
  /// True if running maxima have to be those of the rows: they are results, or
  /// a row's bits are not to depend on the rows beside it.
  bool needsExactMaxima() const { return rowState || hasRuns(); }
  /// True if a tensor says how many keys each sequence has.
  bool hasLengths() const {
    return static_cast<bool>(kvLengths) && !hasAddedKeys();
  }
  /// True if other keys stand beside those of k.
  bool hasAddedKeys() const { return static_cast<bool>(addedK); }
  /// True if keys are hidden by what stands in their place in a table, or by
  /// which table that is.
  bool hidesPlaces() const { return selected || hasAddedKeys(); }
  /// The mask that the problem states.
  MaskAttr getStatedMask() const { return hasAddedKeys() ? ownMask : mask; }
  /// True if partial results have scales, powers of two.
  bool hasPartialScales() const { return oScales && kvSplits != 0; }
  /// True if groups of columns of a row of results have scales.
  bool hasResultScales() const { return oScales && kvSplits == 0; }
  /// True if these are in tiles 128x4.
  bool hasTiledScales() const { return isInScaleTiles(oScales.shape); }
  /// Groups of a row's columns with a scale each in partial results that have
  /// scales.
  int64_t getUnitGroups() const { return oScales.shape.back(); }
  /// True if the CTA that finishes the last run of a tile merges them all.
  bool mergesRuns() const { return static_cast<bool>(mergedO); }
  /// What the kernel multiplies its results by: `outScale`, if they are no
  /// partial ones.
  double getResultFactor() const {
    return outScale == 0 || kvSplits != 0 ? 1 : outScale;
  }
  /// True if something is done with results before they are multiplied by it.
  bool usesResults() const { return hasOutMod() || amax || mergedAmax; }
  /// The part of it that rows are divided with: what stands behind out_mod or
  /// the search for the largest result is left for that.
  double getRowFactor() const { return usesResults() ? 1 : getResultFactor(); }
  /// Returns its part that is left for the scales of groups of results of 4
  /// bits, which are multiplied by both at once (docs/Reference.md).
  double getGroupFactor() const;
  /// True if the keys are read in runs of a fixed number.
  bool hasRuns() const;
  bool hasScoreMod() const;
  bool hasMaskMod() const;
  /// True if a region changes results.
  bool hasOutMod() const;
  /// True if a region says which keys mask_mod leaves to a tile.
  bool hasKeyRange() const;
  /// True if that region may leave out the last blocks of a tile.
  bool mayEndEarlier() const;
  /// True if that region, or lists of blocks, also say where mask_mod need not
  /// be asked.
  bool knowsFullKeys() const;
  /// True if a region uses the scores in natural units.
  bool readsScores() const;

  /// What plans are chosen by. Runs of a fixed number of keys promise results
  /// that depend on their query and its keys only, and plans differ in their
  /// sums: their plan is that of one query and one run alone, whatever the
  /// batch and however many queries come together.
  ProblemFacts getPlanned() const;

  /// Collects the facts. Errors are diagnostics at the op.
  static FailureOr<ProblemFacts> get(AttentionOp op);
};

/// What the record of a kernel says about the problem: the fields that
/// docs/LaunchRecord.md lists under `problem`. The numbers of heads have to be
/// static.
DictionaryAttr buildProblemAttr(Builder &builder, const ProblemFacts &facts);

} // namespace mlir::attn

#endif // ATTN_PLANNER_FACTS_PROBLEMFACTS_H
