//===- CopiedLayouts.cpp - Who holds what of scores and results -----------===//

#include "CopiedLayouts.h"

using namespace mlir;
using namespace mlir::attn;

RankedTensorType CopiedLayouts::getSharedScores() const {
  return RankedTensorType::get({plan.getBlockM(), keys},
                               Float32Type::get(context), getShared());
}

RankedTensorType CopiedLayouts::getScoreSums() const {
  Type element = Float32Type::get(context);
  if (plan.getScoreSums() == ScoreSums::F16)
    element = Float16Type::get(context);
  int64_t rows = plan.getBlockM(), columnWarps = plan.getColumnWarps();
  if (columnWarps == 1 || (plan.exchangesScores() && !plan.dividesDepth()))
    return RankedTensorType::get({rows, keys}, element,
                                 AutoLayoutAttr::get(context));
  if (!plan.dividesDepth())
    return getSharedScores();
  auto runs = MmaLayoutAttr::get(context, {plan.getRowWarps(), columnWarps},
                                 /*copies=*/1, /*columnRuns=*/true);
  return RankedTensorType::get({rows, columnWarps * keys}, element, runs);
}
