//===- CombineFacts.h - What is asked about a combine -----------*- C++ -*-===//

#ifndef ATTN_PLANNER_FACTS_COMBINEFACTS_H
#define ATTN_PLANNER_FACTS_COMBINEFACTS_H

#include "attn/Planner/Facts/GroupFactor.h"
#include "attn/Planner/Facts/TensorFacts.h"

namespace mlir::attn {

/// One attn.combine. Extents are ShapedType::kDynamic where the launch decides.
struct CombineFacts {
  CombineOp op;
  int64_t splits = 0, batch = 0, heads = 0, queries = 0;
  int64_t valueDim = 0;
  /// What o is multiplied by.
  double outScale = 1;
  /// Columns of o that share a scale, 0 if there are no scales.
  int64_t groupColumns = 0;
  TensorFacts partialO, partialLse, o, lse, oScales, amax;
  /// What units of partialO stand for in each row and group of columns; without
  /// value where they are ones.
  TensorFacts partialScales;
  /// Runs were dealt by lengths: of those behind the last one with keys nothing
  /// but an LSE is there.
  bool areDealt = false;
  /// The records of equal runs (attn.plan_pieces), whose pieces of sequences
  /// are the partial results in the order of the records, and how many runs
  /// there are; without value where each sequence has partial results of its
  /// own.
  TensorFacts work;
  int64_t equalRuns = 0;
  /// Changes o before it is rounded, null for nothing; and the tensors that it
  /// reads from outside.
  Region *outMod = nullptr;
  SmallVector<TensorFacts> captures;
  SmallVector<Value> scalars;

  /// True if something is done with results before they are multiplied by
  /// `outScale`.
  bool usesResults() const { return outMod || amax; }
  /// Returns the part of `outScale` that scales of groups of results of 4 bits
  /// take.
  double getGroupFactor() const {
    bool joins =
        usesResults() && hasFloat4Results() && joinsGroupScale(outScale);
    return joins ? outScale : 1;
  }
  /// True if bytes of o are two results of f4E2M1FN.
  bool hasFloat4Results() const { return o.elementType.isInteger(8); }
  /// True if rows are not divided: in the place of LSEs are maxima and sums.
  bool areStates() const { return partialLse.shape.size() == 5; }
  /// Columns of a partial result that share a unit.
  int64_t getUnitColumns() const {
    return partialScales ? valueDim / partialScales.shape.back() : valueDim;
  }

  /// Collects the facts. Errors are diagnostics at the op.
  static FailureOr<CombineFacts> get(CombineOp op);
};

} // namespace mlir::attn

#endif // ATTN_PLANNER_FACTS_COMBINEFACTS_H
