//===- CopiedEmitter.h - Kernels whose blocks cp.async copies ---*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COPIED_COPIEDEMITTER_H
#define ATTN_LIB_SCHEDULE_COPIED_COPIEDEMITTER_H

#include "../Core/AttentionEmitter.h"
#include "CopiedExtents.h"
#include "GatheredSoftmax.h"
#include "GridTiles.h"

namespace mlir::attn {

/// Emits one tile of a plan.
class CopiedEmitter : AttentionEmitter {
public:
  CopiedEmitter(KernelContext &context, const CopiedPlan &plan)
      : AttentionEmitter(context, plan.getBlockM(),
                         getPackedHeads(context.facts, plan)),
        plan(plan), extents(facts, plan),
        partN(plan.getBlockN() / plan.getParts()) {
    resultColumns = extents.valueColumns;
    hasWholeMaxima = facts.hasWholeMaxima();
  }
  LogicalResult run();

private:
  /// A part of a block: its scores, the keys that they were made of, which are
  /// several slots of columns of 8-bit latent keys, and the slot of the scales
  /// of these.
  struct BlockPart {
    Value scores;
    SmallVector<Value> keys;
    Value scales;
  };

  /// What the blocks of a tile read: for each slice the queries in registers or
  /// in shared memory, or a view of them, and views of the keys and values; the
  /// exponents of two of a unit of score.
  struct BlockOperands {
    SmallVector<Value> q, kViews, vViews;
    /// Views of the scales of rows; null where there are none.
    Value kScales, vScales;
    Value scale;
  };

  LogicalResult emitTile();

  //===--------------------------------------------------------------------===//
  // Teams (CopiedTeams.cpp)
  //===--------------------------------------------------------------------===//

  /// The team's number, i32.
  Value getTeam();
  /// Narrows the bounds to the team's share of the keys of its head.
  void emitTeamShare();
  /// True if each team merges and stores columns of its own; else the first one
  /// does so with all.
  bool dividesResults() const;
  /// Columns of such a team.
  int64_t getTeamColumns() const {
    return extents.valueColumns / plan.getTeams();
  }
  /// The view of these.
  Value emitTeamResultView();
  /// What all teams' states give together, in the first teams, one for
  /// each head, or in its columns.
  RunningState mergeTeams(RunningState state);
  /// Stores what that is.
  void storeTeamResults(RunningState state);

  void emitResultViews();
  /// Shared memory through which results may pass; null for none.
  Value emitScratch();
  /// Stores the results of the tile, and its LSE if `lse` is not null.
  void storeResults(RunningState state, Value lse);
  void allocRings();
  /// The ring of the scales of each row, one for each of `groups` of columns.
  Value allocScales(StringRef name, int64_t groups);
  /// Columns of K and Q, and of V, that have a slot together.
  int64_t getKeySlice() const {
    return plan.getSlice() ? plan.getSlice() : extents.keyColumns;
  }
  int64_t getValueSlice() const {
    return plan.getSlice() ? plan.getSlice() : extents.valueColumns;
  }
  /// Calls `emit` with the first column and the columns of each slice of `dim`
  /// columns; with 0 and 0 where there are no slices.
  SmallVector<Value> emitSlices(int64_t dim,
                                function_ref<Value(int64_t, int64_t)> emit);
  /// The same of groups of columns that have a scale.
  SmallVector<Value> emitGroups(int64_t dim,
                                function_ref<Value(int64_t, int64_t)> emit);
  /// The same of the columns of keys and queries, of which rotated ones that
  /// are apart are a slice.
  SmallVector<Value> emitKeySlices(function_ref<Value(int64_t, int64_t)> emit);
  /// Copies the queries of the tile, which `views` has; what products read them
  /// from.
  SmallVector<Value> emitQueries(ArrayRef<Value> views);
  /// A part of the block that starts at `key`.
  FailureOr<BlockPart> emitProducts(ImplicitLocOpBuilder &lb, int64_t part,
                                    Value key, const BlockOperands &from);
  /// `o` and the product of `p` and the values of a part of the block that
  /// starts at `key`.
  Value emitWeightedValues(ImplicitLocOpBuilder &lb, int64_t part, Value key,
                           const BlockPart &block, const BlockOperands &from,
                           Value p, Value o);
  /// Accumulators of warps that share rows and divide columns.
  MmaLayoutAttr getDividedLayout() {
    return MmaLayoutAttr::get(b.getContext(),
                              {plan.getRowWarps(), plan.getColumnWarps()},
                              /*copies=*/1, plan.getWgmma());
  }
  /// A slot with the scales of the rows from `key` on.
  Value stageScales(ImplicitLocOpBuilder &lb, Value key, Value view,
                    Value ring);
  /// What such a slot holds of group `group` for each column of `tile`, whose
  /// columns are these rows.
  Value emitColumnScales(ImplicitLocOpBuilder &lb, Value tile, Value slot,
                         int64_t group = 0);
  /// Probabilities in the type of operands, of which `wide` are f32.
  Value emitNarrow(ImplicitLocOpBuilder &lb, Value wide);

  //===--------------------------------------------------------------------===//
  // 8-bit keys in groups of columns (CopiedLatent.cpp)
  //===--------------------------------------------------------------------===//

  bool hasNarrowLatent() const {
    return extents.isLatent && extents.widensKeys;
  }
  /// True if the rotated columns of 16-bit keys are a tensor of their own, and
  /// have a ring.
  bool hasRopeRing() const { return facts.kRope && !extents.widensKeys; }
  /// True if groups of columns of a row have rings, and scales, of their own.
  bool hasGroups() const { return extents.groupColumns != 0; }
  /// How many of them a row of keys has.
  int64_t countKeyGroups() const {
    return (extents.isLatent ? facts.valueDim : facts.headDim) /
           extents.groupColumns;
  }
  /// Which of a row's scales a group has.
  int64_t getScale(int64_t group) const {
    return group * extents.groupColumns / facts.scaleGroup;
  }
  void allocGroupedRings();
  /// The queries in `buffer` in registers, in the type of products.
  Value loadOperand(Value buffer);
  /// The queries in `buffers` in the same memory as fragments beside 8-bit keys
  /// want them, which each block reads.
  SmallVector<Value> keepInQuads(ArrayRef<Value> buffers);
  /// Copies the queries of the tile, and loads those of each group of columns
  /// and the rotated ones.
  SmallVector<Value> emitNarrowLatentQueries();
  /// Views of the keys of each group of columns, and of the rotated ones.
  SmallVector<Value> emitNarrowLatentViews();
  FailureOr<BlockPart> emitGroupedProducts(ImplicitLocOpBuilder &lb, Value key,
                                           const BlockOperands &from);
  /// `o` and the product of the probabilities `p`, f32, and the values.
  Value emitGroupedValues(ImplicitLocOpBuilder &lb, Value key,
                          const BlockPart &part, const BlockOperands &from,
                          Value p, Value o);

  /// The type of the accumulators of a part's scores: f16 or f32; partial sums
  /// beside each other where warps divide the depth.
  RankedTensorType getScoreSumsType();
  /// Scores of f32 from such sums.
  Value emitScoreSums(ImplicitLocOpBuilder &lb, Value sums);
  /// The accumulator of the results as f32.
  Value emitWide(Value o);
  /// a b + c as `type`, in `layout` by wgmma, where c may be null.
  Value emitProduct(ImplicitLocOpBuilder &lb, RankedTensorType type, Value a,
                    Value factor, Value c, Attribute layout,
                    IntegerAttr depthParts = IntegerAttr());
  /// Accumulators that all warps hold that share their rows.
  MmaLayoutAttr getSharedLayout() {
    return MmaLayoutAttr::get(b.getContext(), {plan.getRowWarps(), 1},
                              plan.getColumnWarps());
  }
  /// Scores that all warps know that share their rows.
  RankedTensorType getSharedScores() {
    return RankedTensorType::get({blockM, partN}, b.getF32Type(),
                                 getSharedLayout());
  }
  /// The accumulator of the results before the first block, where it is not
  /// that of emitInitialState: of f16, or with columns in quads, as products
  /// with values leave them that are widened; null otherwise.
  Value emitInitialResults();
  /// The tile's rows where warps divide columns.
  DividedRows getDividedRows() {
    return {blockM, getDividedLayout(), getSharedLayout()};
  }
  /// The softmax where warps exchange probabilities.
  GatheredSoftmax getGathered() {
    return GatheredSoftmax(getDividedRows(), hasWholeMaxima);
  }
  /// The accumulator times `factor` where some factor is not 1.
  Value emitRescale(ImplicitLocOpBuilder &lb, Value factor, Value o);
  /// Finishes and stores a tile whose columns the warps divide.
  void storeDivided(RunningState carried);
  /// One block; the state behind it.
  FailureOr<RunningState> emitBlock(ImplicitLocOpBuilder &lb,
                                    const BlockOperands &from, Value key,
                                    RunningState state);

  const CopiedPlan plan;
  CopiedExtents extents;
  /// Keys of a part of a block.
  int64_t partN;
  BufferType kRing, vRing;
  /// The rings of the scales of rows; null where there are none.
  Value kScaleRing, vScaleRing;
  /// The ring of rotated columns that are apart.
  Value ropeRing;
  SmallVector<Value> kBuffers, vBuffers;
  /// The ring of Q's slices; null where all of Q stays.
  Value qRing;
  Value oView, lseView;
  /// The team's number, once somebody asked for it.
  Value team;
};

/// The type of one slot of a ring.
BufferType getSlotType(BufferType ring);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COPIED_COPIEDEMITTER_H
