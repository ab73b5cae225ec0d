//===- CopiedEmit.h - Kernels whose blocks cp.async copies ------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COPIED_COPIEDEMIT_H
#define ATTN_LIB_SCHEDULE_COPIED_COPIEDEMIT_H

#include "CopiedPlan.h"
#include "attn/Schedule/Core/KernelContext.h"

namespace mlir::attn {

/// Emits the kernel of a plan in tile IR.
LogicalResult emitCopied(KernelContext &context, const CopiedPlan &plan);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COPIED_COPIEDEMIT_H
