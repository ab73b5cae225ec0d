//===- ProblemFacts.h - What schedules ask about an attention ---*- C++ -*-===//
//
// The extents, types and variants of one attn.attention in a form that
// schedules and the launch record read: extents that several operands share are
// unified, so that each is static as soon as one operand says so.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_PROBLEM_PROBLEMFACTS_H
#define ATTN_SCHEDULE_PROBLEM_PROBLEMFACTS_H

#include "attn/Schedule/Problem/TensorFacts.h"
#include "llvm/ADT/SetVector.h"
#include <optional>

namespace mlir::attn {

/// One attention problem.
struct ProblemFacts {
  AttentionOp op;
  Type elementType;
  Type outType;
  /// Extents; ShapedType::kDynamic where the launch decides. With packed
  /// sequences `batch` counts sequences and `queries` is the bound on a
  /// sequence's length.
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t headDim = 0;
  int64_t valueDim = 0;
  MaskAttr mask;
  double scale = 1;
  std::optional<double> softcap;
  bool varlen = false;
  /// Runs that the keys are cut into, whose partial results o and lse are; 0
  /// where they are whole.
  int64_t splits = 0;
  TensorFacts q, k, v, o, lse, sinks, cuSeqlensQ, cuSeqlensK;
  /// All three or none.
  TensorFacts qDescale, kDescale, vDescale;
  /// What the regions read from outside: memrefs, and scalars that are not
  /// constants.
  SmallVector<TensorFacts> captures;
  SmallVector<Value> scalars;

  /// True if q, k and v have 8-bit elements.
  bool isNarrow() const;
  /// True if v is contiguous along its keys instead of along its head
  /// dimension.
  bool hasTransposedValues() const;
  bool hasScoreMod() const;
  bool hasMaskMod() const;

  /// Collects the facts. Errors are diagnostics at the op.
  static FailureOr<ProblemFacts> get(AttentionOp op);
};

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_PROBLEM_PROBLEMFACTS_H
