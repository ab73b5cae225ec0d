//===- ReferenceInputs.h - What the reference is computed from --*- C++ -*-===//

#ifndef ATTN_LIB_HARNESS_REFERENCEINPUTS_H
#define ATTN_LIB_HARNESS_REFERENCEINPUTS_H

#include "attn/Harness/HarnessOptions.h"
#include "attn/Harness/HarnessTensor.h"

namespace mlir::attn::sim {

/// Returns the operands of a launch's problem, and the modifications of
/// `options`. Errors: a tensor that the record lacks, or writes.
llvm::Expected<AttentionInputs>
getReferenceInputs(const LaunchRecord &record,
                   llvm::ArrayRef<HarnessTensor> tensors,
                   const HarnessOptions &options);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_HARNESS_REFERENCEINPUTS_H
