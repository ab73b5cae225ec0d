//===- SharedTrace.h - Runs of a kernel on shared memory --------*- C++ -*-===//
//
// Executes the control flow of a kernel in tile IR with concrete arguments and
// judges each access on its actual bytes: the ground truth for the analyses.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_UNITTESTS_ANALYSIS_MEMORY_SHAREDTRACE_H
#define ATTN_UNITTESTS_ANALYSIS_MEMORY_SHAREDTRACE_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

struct TraceEvent {
  enum class Kind { Read, Write, Copy, Commit, Wait, Barrier };
  Kind kind;
  Operation *op = nullptr;
  AllocOp alloc;
  /// Bytes relative to the alloc, or the pending groups of a wait.
  int64_t begin = 0;
  int64_t end = 0;
};

/// The events of one run; `arguments` are the i32 and i1 arguments in order.
std::vector<TraceEvent> traceKernel(gpu::GPUFuncOp kernel,
                                    ArrayRef<int64_t> arguments);

/// True if two accesses of different threads to the same bytes, one of them a
/// write, have no barrier between them, or a copy is not awaited.
bool hasHazard(ArrayRef<TraceEvent> events);

/// Runs the kernel with trip counts 0 to 3 and all branches, or a random sample
/// of these, until `visit` returns false.
void forEachRun(gpu::GPUFuncOp kernel, unsigned seed,
                llvm::function_ref<bool(ArrayRef<TraceEvent>)> visit);

} // namespace mlir::attn

#endif // ATTN_UNITTESTS_ANALYSIS_MEMORY_SHAREDTRACE_H
