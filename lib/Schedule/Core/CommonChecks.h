//===- CommonChecks.h - What schedules refuse alike -------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_CORE_COMMONCHECKS_H
#define ATTN_LIB_SCHEDULE_CORE_COMMONCHECKS_H

#include "attn/Schedule/Core/Schedule.h"
#include "llvm/Support/Error.h"

namespace mlir::attn {

/// Lengths stay below this, so that row and key indices can be added to mask
/// bounds in 32 bits.
inline constexpr int64_t kLengthLimit = int64_t(1) << 29;

/// Most columns of Q, K and V in schedules without a reason for another limit.
inline constexpr int64_t kUsualColumns = 256;

/// "schedule 'x' does not support what".
llvm::Error makeUnsupported(llvm::StringRef schedule, const llvm::Twine &what);

/// Refuses problems in other forms than plain attention on f16 or bf16 (or
/// 8-bit floats or split keys, if the schedule allows them), head dimensions
/// other than multiples of 8 up to `mostColumns`, and lengths from kLengthLimit
/// on.
llvm::Error checkCommon(llvm::StringRef schedule, const ProblemFacts &facts,
                        bool allowsNarrow = false, bool allowsSplits = false,
                        int64_t mostColumns = kUsualColumns);

/// Refuses softmax policies that the code of a schedule does not have.
llvm::Error checkPolicy(llvm::StringRef schedule, SoftmaxPolicy policy);

/// Refuses plans whose shared memory a CTA cannot have.
llvm::Error checkSharedBytes(const ResourceSum &shared,
                             const TargetRow &target);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_COMMONCHECKS_H
