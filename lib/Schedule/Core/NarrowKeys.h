//===- NarrowKeys.h - 8-bit keys beside 16-bit queries ----------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_CORE_NARROWKEYS_H
#define ATTN_LIB_SCHEDULE_CORE_NARROWKEYS_H

#include "attn/Schedule/Problem/ProblemFacts.h"
#include "llvm/Support/Error.h"

namespace mlir::attn {

/// Refuses 8-bit keys beside 16-bit queries whose rows, or groups of columns
/// that have a scale, are no whole spans of a swizzle.
llvm::Error checkNarrowKeys(llvm::StringRef schedule,
                            const ProblemFacts &facts);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_NARROWKEYS_H
