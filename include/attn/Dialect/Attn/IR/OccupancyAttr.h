//===- OccupancyAttr.h - How many CTAs of a kernel an SM holds --*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OCCUPANCYATTR_H
#define ATTN_DIALECT_ATTN_IR_OCCUPANCYATTR_H

#include "llvm/ADT/StringRef.h"

namespace mlir::attn {

/// An integer from 1 to kMostCtas on a kernel: most CTAs that an SM is to hold
/// at once. attn-allocate-shared gives each of them so much shared memory that
/// one more has no room.
inline constexpr llvm::StringLiteral kMostCtasAttr = "attn.most_ctas_per_sm";

/// No SM holds more CTAs (CUDA programming guide, technical specifications).
inline constexpr int64_t kMostCtas = 32;

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_OCCUPANCYATTR_H
