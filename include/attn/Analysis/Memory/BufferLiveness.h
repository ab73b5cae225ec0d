//===- BufferLiveness.h - When buffers in shared memory are live -*- C++
//-*-===//
//
// A buffer is live from a write to the last read that may see it, or until an
// asynchronous copy into it is awaited. Where the whole buffer is written anew
// after its last read, there is a hole: others may use its bytes in between.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_MEMORY_BUFFERLIVENESS_H
#define ATTN_ANALYSIS_MEMORY_BUFFERLIVENESS_H

#include "attn/Analysis/Memory/SharedAccess.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::attn {

/// Ops from `first` to `last`, both included, in the order of the text. A loop
/// stands for all of its iterations.
struct LiveRange {
  int64_t begin = 0;
  int64_t end = 0;
  Operation *first = nullptr;
  Operation *last = nullptr;

  bool overlaps(const LiveRange &other) const {
    return begin <= other.end && other.begin <= end;
  }
};

/// Live ranges of all attn.alloc of a kernel.
class BufferLiveness {
public:
  /// An error if an op touches a buffer in an unknown way.
  static FailureOr<BufferLiveness> compute(gpu::GPUFuncOp kernel);

  /// The allocs in the order of the text.
  SmallVector<AllocOp> getAllocs() const;
  /// Ranges in order, disjoint; none for a buffer that is never touched.
  ArrayRef<LiveRange> getRanges(AllocOp alloc) const;
  /// True if both may hold data at the same time.
  bool overlap(AllocOp a, AllocOp b) const;
  /// True if the buffer may hold data at `position` (of a LiveRange).
  bool isLive(AllocOp alloc, int64_t position) const;

private:
  llvm::MapVector<Operation *, SmallVector<LiveRange, 2>> ranges;
};

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_MEMORY_BUFFERLIVENESS_H
