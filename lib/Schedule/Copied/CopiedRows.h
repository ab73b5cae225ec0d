//===- CopiedRows.h - The state of rows and their softmax -------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COPIED_COPIEDROWS_H
#define ATTN_LIB_SCHEDULE_COPIED_COPIEDROWS_H

#include "CopiedLayouts.h"
#include "attn/Schedule/Kernel/Control.h"
#include "attn/Schedule/Kernel/RowState.h"
#include <optional>

namespace mlir::attn {

/// The state of a tile's rows, which the loop over blocks carries.
struct CopiedRows {
  Var m, l, o;
  /// The largest exponents of rows, where divisors are made of them.
  std::optional<Var> largest;

  RunningState get() const;
};

/// The softmax of a plan.
class CopiedSoftmax {
public:
  CopiedSoftmax(const AttentionTile &tile, const CopiedPlan &plan,
                const CopiedLayouts &layouts, Control &control)
      : tile(tile), plan(plan), layouts(layouts), control(control),
        b(control.b) {}

  /// Declares the state before the first block.
  CopiedRows start() const;
  /// Makes probabilities of the scores of a part of a block, and rescales the
  /// results. Returns them in the type of operands, or f32 if keys and values
  /// have scales, which are multiplied with them.
  Value step(Value scores, Value scale, CopiedRows &rows) const;
  /// Returns probabilities, or what became of them, in the type of operands.
  Value narrow(Value p) const;

private:
  Value makeNoResults(Value f32) const;
  /// Does a step of warps that share rows and have the scores of their own
  /// keys. They exchange the largest scores of their rows, of which all make
  /// the same maximum, and then probabilities, each of which was computed once.
  Value gatherStep(Value scores, Value scale, CopiedRows &rows) const;
  /// Multiplies the results with `factor` where some row's is not 1.
  void rescale(Value factor, Var &o) const;

  const AttentionTile &tile;
  CopiedPlan plan;
  const CopiedLayouts &layouts;
  Control &control;
  ImplicitLocOpBuilder &b;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COPIED_COPIEDROWS_H
