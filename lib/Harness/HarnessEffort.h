//===- HarnessEffort.h - What a launch takes on the host --------*- C++ -*-===//

#ifndef ATTN_LIB_HARNESS_HARNESSEFFORT_H
#define ATTN_LIB_HARNESS_HARNESSEFFORT_H

#include "attn/Harness/HarnessOptions.h"
#include "attn/Harness/HarnessTensor.h"

namespace mlir::attn::sim {

/// Seconds that the parts of a run take on this machine, to within a few times:
/// enough to tell a minute from an hour before it starts.
struct Effort {
  double inputs = 0, reference = 0, simulation = 0;
};

/// Estimates the effort from the extents of the tensors; zeros where the record
/// states no problem.
Effort estimateEffort(const LaunchRecord &record,
                      llvm::ArrayRef<HarnessTensor> tensors,
                      const HarnessOptions &options);

/// Something that a launch keeps in host memory.
struct HostBuffer {
  std::string name; ///< tensor "q"
  uint64_t bytes = 0;
};

/// Host bytes of a tensor while it is simulated: its contents, and simulated
/// memory with a byte beside each that says whether it was written; what is
/// written is kept once more to undo a run.
uint64_t getHostBytes(uint64_t extent, TensorAccess access);

/// Checks that buffers fit into `limit` bytes together; 0 is the machine's
/// memory. The error names the largest and the sum.
llvm::Error checkMemory(llvm::ArrayRef<HostBuffer> buffers, uint64_t limit);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_HARNESS_HARNESSEFFORT_H
