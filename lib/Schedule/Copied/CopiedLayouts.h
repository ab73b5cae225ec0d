//===- CopiedLayouts.h - Who holds what of scores and results ---*- C++ -*-===//
//
// Where warps share rows, each has its own columns of the results. The scores,
// of which each has those of its own keys or partial sums of a part of the
// depth, pass through shared memory, so that all know the whole rows and
// compute the same softmax; or each computes all.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_COPIED_COPIEDLAYOUTS_H
#define ATTN_LIB_SCHEDULE_COPIED_COPIEDLAYOUTS_H

#include "CopiedPlan.h"
#include "attn/Schedule/Kernel/DividedRows.h"

namespace mlir::attn {

/// The layouts of a plan's products.
class CopiedLayouts {
public:
  CopiedLayouts(MLIRContext *context, const CopiedPlan &plan)
      : context(context), plan(plan), keys(plan.getBlockN() / plan.getParts()) {
  }

  /// Returns the accumulators of warps that share rows and divide columns.
  MmaLayoutAttr getDivided() const {
    return MmaLayoutAttr::get(context,
                              {plan.getRowWarps(), plan.getColumnWarps()},
                              /*copies=*/1, plan.getWgmma());
  }
  /// Returns the accumulators that all warps hold that share their rows.
  MmaLayoutAttr getShared() const {
    return MmaLayoutAttr::get(context, {plan.getRowWarps(), 1},
                              plan.getColumnWarps());
  }
  /// Returns the tile's rows where warps divide columns.
  DividedRows getDividedRows() const {
    return {plan.getBlockM(), getDivided(), getShared()};
  }
  /// Returns scores that all warps know that share their rows.
  RankedTensorType getSharedScores() const;
  /// Returns the accumulators of the scores of a part of a block: f16 or f32;
  /// partial sums beside each other where warps divide the depth.
  RankedTensorType getScoreSums() const;

private:
  MLIRContext *context;
  CopiedPlan plan;
  /// Keys of a part of a block.
  int64_t keys;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COPIED_COPIEDLAYOUTS_H
