//===- RowPitch.h - Rows of a tensor as one dimension -----------*- C++ -*-===//

#ifndef ATTN_PLANNER_FACTS_ROWPITCH_H
#define ATTN_PLANNER_FACTS_ROWPITCH_H

#include "attn/Planner/Facts/TensorFacts.h"

namespace mlir::attn {

/// Returns the most elements of which the strides of all dimensions but the
/// last one are multiples, so that with rows as far apart each row has a
/// number; 0 where one of these strides is not known or negative. Nothing steps
/// along a dimension of extent 1. Without any other it is the columns.
int64_t getRowPitch(const TensorFacts &tensor);

/// Numbers of rows, so counted, from one to the next along each dimension of a
/// pool (pages, heads, rows, columns); 1 along a dimension of extent 1.
struct RowSteps {
  int64_t page, head, row;

  bool operator==(const RowSteps &other) const {
    return page == other.page && head == other.head && row == other.row;
  }
};

/// Returns the steps of a pool that has a pitch.
RowSteps getRowSteps(const TensorFacts &pool);

} // namespace mlir::attn

#endif // ATTN_PLANNER_FACTS_ROWPITCH_H
