//===- NarrowKeys.h - 8-bit keys beside 16-bit queries ----------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_CORE_NARROWKEYS_H
#define ATTN_LIB_SCHEDULE_CORE_NARROWKEYS_H

#include "attn/Planner/Facts/ProblemFacts.h"
#include "llvm/Support/Error.h"

namespace mlir::attn {

/// Columns of 8 bits that fragments of 16 bits are made of at a time: a span of
/// a swizzle.
inline constexpr int64_t kFragmentColumns = 32;

/// Refuses 8-bit keys beside 16-bit queries whose rows, or groups of columns
/// that have a scale, are no multiple of `step` columns.
llvm::Error checkNarrowKeys(llvm::StringRef schedule, const ProblemFacts &facts,
                            int64_t step = kFragmentColumns);

/// Refuses scales of the rows of keys that are not one for a whole row of k and
/// of v.
llvm::Error checkWholeRowScales(llvm::StringRef schedule,
                                const ProblemFacts &facts);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_NARROWKEYS_H
