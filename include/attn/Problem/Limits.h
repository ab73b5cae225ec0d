//===- Limits.h - How large a problem may be --------------------*- C++ -*-===//

#ifndef ATTN_PROBLEM_LIMITS_H
#define ATTN_PROBLEM_LIMITS_H

#include <cstdint>

namespace mlir::attn {

/// Most elements of an operand, so that products of its extents and a few bytes
/// fit an int64_t.
constexpr uint64_t kMostElements = uint64_t(1) << 48;

/// The largest page of keys that kernels take.
constexpr int64_t kPageLimit = int64_t(1) << 16;

/// Columns of the narrowest matrix instruction, of which head dimensions are
/// multiples.
constexpr int64_t kDimStep = 8;

} // namespace mlir::attn

#endif // ATTN_PROBLEM_LIMITS_H
