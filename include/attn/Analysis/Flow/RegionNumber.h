//===- RegionNumber.h - A number of an evaluation ---------------*- C++ -*-===//

#ifndef ATTN_ANALYSIS_FLOW_REGIONNUMBER_H
#define ATTN_ANALYSIS_FLOW_REGIONNUMBER_H

#include <cstdint>

namespace mlir::attn {

/// A number of an evaluation: floats are held in float64, integers in 64 bits
/// with the sign of their type's width extended.
union RegionNumber {
  double real;
  int64_t integer;
};

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_FLOW_REGIONNUMBER_H
