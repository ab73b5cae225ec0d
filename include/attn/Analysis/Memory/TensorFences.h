//===- TensorFences.h - Order of accesses to tensor memory ------*- C++ -*-===//
//
// Loads and stores of tensor memory are asynchronous, and signals do not order
// them. Before a thread lets others go on it waits for them and executes
// tcgen05.fence::before_thread_sync; behind a wait for others it executes
// tcgen05.fence::after_thread_sync before its next access (PTX ISA, tcgen05
// memory consistency model). A commit does the former by itself.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_MEMORY_TENSORFENCES_H
#define ATTN_ANALYSIS_MEMORY_TENSORFENCES_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// The ops in front of which something is missing.
struct TensorFences {
  SmallVector<Operation *> storeWaits;
  SmallVector<Operation *> before;
  SmallVector<Operation *> after;
};

/// What a kernel lacks. An error at a signal, or a store to the same columns,
/// that comes before the wait for a load: only the op that returns the load's
/// tile can be that wait.
FailureOr<TensorFences> findMissingTensorFences(gpu::GPUFuncOp kernel);

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_MEMORY_TENSORFENCES_H
