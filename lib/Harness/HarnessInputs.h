//===- HarnessInputs.h - tensors of a simulated launch ----------*- C++ -*-===//
//
// Decides the shapes, strides and contents of the tensors of a launch from its
// record and what the caller gave.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_HARNESS_HARNESSINPUTS_H
#define ATTN_LIB_HARNESS_HARNESSINPUTS_H

#include "attn/Harness/HarnessOptions.h"
#include "attn/Harness/HarnessTensor.h"

namespace mlir::attn::sim {

/// Tensors in the record's order; inputs have their contents, outputs none. The
/// phase "inputs" of `progress`.
llvm::Expected<std::vector<HarnessTensor>>
makeTensors(const LaunchRecord &record, const HarnessOptions &options,
            ProgressMeter &progress);

/// Enlarges q and k such that scores grow towards the first key, which kernels
/// read last, to some hundred nats in some rows.
void enlargeScores(const AttentionProblem &problem,
                   llvm::MutableArrayRef<HarnessTensor> tensors);

/// Encodes a tensor map into its slot of the parameter buffer.
llvm::Error writeTensorMap(const TensorMapParameter &map,
                           llvm::MutableArrayRef<uint8_t> parameters);

/// Returns the operands of a launch's problem, and the modifications of
/// `options`. Errors: a tensor that the record lacks, or writes.
llvm::Expected<AttentionInputs>
getReferenceInputs(const LaunchRecord &record,
                   llvm::ArrayRef<HarnessTensor> tensors,
                   const HarnessOptions &options);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_HARNESS_HARNESSINPUTS_H
