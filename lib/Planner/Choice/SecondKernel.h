//===- SecondKernel.h - When a second kernel pays ---------------*- C++ -*-===//

#ifndef ATTN_LIB_PLANNER_CHOICE_SECONDKERNEL_H
#define ATTN_LIB_PLANNER_CHOICE_SECONDKERNEL_H

#include "attn/Planner/Facts/Factor.h"

namespace mlir::attn {

/// Bounds the time of several runs, or of one with a second kernel, as a share
/// of the time of one kernel. Only below it do they outweigh the second one,
/// given the error of estimates.
inline constexpr Factor kSplitWorthwhile{"splits.worthwhile"};

} // namespace mlir::attn

#endif // ATTN_LIB_PLANNER_CHOICE_SECONDKERNEL_H
