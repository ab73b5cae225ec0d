//===- GroupFactor.h - Factors that join the scales of groups ---*- C++ -*-===//

#ifndef ATTN_PLANNER_FACTS_GROUPFACTOR_H
#define ATTN_PLANNER_FACTS_GROUPFACTOR_H

#include <cmath>

namespace mlir::attn {

/// Returns true if `factor` of results of 4 bits is multiplied with the scales
/// of their groups, one product instead of one for each result. Products of
/// others could be beyond the range of f32.
inline bool joinsGroupScale(double factor) {
  constexpr double kMost = 0x1p64;
  double size = std::abs(factor);
  return size <= kMost && size >= 1 / kMost;
}

} // namespace mlir::attn

#endif // ATTN_PLANNER_FACTS_GROUPFACTOR_H
