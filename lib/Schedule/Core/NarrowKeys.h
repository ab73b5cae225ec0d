//===- NarrowKeys.h - 8-bit operands ----------------------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_CORE_NARROWKEYS_H
#define ATTN_LIB_SCHEDULE_CORE_NARROWKEYS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Planner/Facts/ProblemFacts.h"
#include "attn/Target/TargetTable.h"
#include "llvm/Support/Error.h"

namespace mlir::attn {

/// Columns of 8 bits that fragments of 16 bits are made of at a time: a span of
/// a swizzle.
inline constexpr int64_t kFragmentColumns = 32;

/// Refuses 8-bit keys beside 16-bit queries whose rows, or groups of columns
/// that have a scale, are no multiple of `step` columns.
llvm::Error checkNarrowKeys(llvm::StringRef schedule, const ProblemFacts &facts,
                            int64_t step = kFragmentColumns);

/// Refuses 8-bit queries, keys and values on chips whose mma.sync has no such
/// operands.
llvm::Error checkNarrowOperands(llvm::StringRef schedule,
                                const ProblemFacts &facts,
                                const TargetRow &target);

/// Refuses parts of blocks of `keys` keys that are no whole k-steps of 8-bit
/// probabilities.
llvm::Error checkNarrowParts(const ProblemFacts &facts, int64_t keys);

/// Makes probabilities large where they are 8-bit floats, whose smallest normal
/// number is 2^-6 (e4m3): the largest is 2^8, which no rounding touches. With
/// so few digits only the true maximum will do, so that `threshold` lets it
/// grow by nothing. `optimistic` knows nothing but sums, for which flat rows
/// need room (docs/Rationale/NarrowTypes.md).
void setNarrowRange(OnlineSoftmaxOp softmax);

/// Does the same for a step that knows how many keys its sums come from: maxima
/// may grow as far as the operands' type holds powers, in rows that no key
/// decides.
void setDecidedRange(OnlineSoftmaxOp softmax, FloatType operands);

/// Returns the softmax policies that are worth comparing, the usual one first.
ArrayRef<SoftmaxPolicy> getUsualPolicies(const ProblemFacts &facts);

/// Refuses scales of the rows of keys that are not one for a whole row of k and
/// of v.
llvm::Error checkWholeRowScales(llvm::StringRef schedule,
                                const ProblemFacts &facts);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_NARROWKEYS_H
