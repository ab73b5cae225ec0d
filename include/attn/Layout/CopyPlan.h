//===- CopyPlan.h - cp.async of a tile by many threads ----------*- C++ -*-===//
//
// Splits a rows x cols tile in global memory into chunks of 4, 8 or 16 bytes
// and gives each thread its list. Thread t starts at row t / width and chunk
// t % width and proceeds by constants, so that neighbouring threads copy
// neighbouring chunks of a row, row pointers and predicates are shared, and all
// shared addresses are one address register per xorConst plus immediates.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_COPYPLAN_H
#define ATTN_LAYOUT_COPYPLAN_H

#include "attn/Layout/Access.h"

namespace mlir::attn {

/// One chunk of each thread.
struct CopyStep {
  /// Added to the thread's row and column (in elements).
  int64_t row = 0;
  int64_t col = 0;
  /// Shared byte address; see CopyPlan.
  int64_t xorConst = 0;
  int64_t addConst = 0;
  /// When set, only threads whose row is below this bound have a chunk: the
  /// predicate is threadRow < rowLimit.
  std::optional<int64_t> rowLimit;
};

/// The chunks that each thread copies. For thread t < activeThreads:
///   threadRow = t / width, threadCol = (t % width) * chunkElements
///   shared byte = base + (xor(t) ^ step.xorConst) + add(t) + step.addConst
/// where, when width is a power of two, xor(t) and add(t) combine threadXor and
/// threadAdd over the set bits of t, and else xor(t) = 0 and
/// add(t) = threadRow * rowBytes + (t % width) * chunkBytes.
struct CopyPlan {
  unsigned chunkBytes = 16;
  unsigned chunkElements = 8;
  int64_t width = 1;
  /// Threads at or above this number copy nothing.
  unsigned activeThreads = 0;
  /// Rows between the steps of one thread: activeThreads / width.
  int64_t rowStep = 0;
  bool divided = false;
  llvm::SmallVector<int64_t, 10> threadXor;
  llvm::SmallVector<int64_t, 10> threadAdd;
  int64_t rowBytes = 0;
  /// Rows outermost, so that consecutive steps share a row.
  llvm::SmallVector<CopyStep> steps;

  int64_t threadRow(unsigned thread) const { return thread / width; }
  int64_t threadCol(unsigned thread) const {
    return int64_t(thread % width) * chunkElements;
  }
  /// Byte offset of a step of a thread from the buffer's base.
  int64_t sharedOffset(unsigned thread, const CopyStep &step) const;
  /// The different xorConst values.
  llvm::SmallVector<int64_t> xorConstants() const;
};

/// Plans the copy of the whole buffer (two dimensions, contiguous along dim1 in
/// runs of at least `chunkBytes`) by `threads` threads. chunkBytes is 4, 8 or
/// 16; the global rows are taken to be aligned to it.
llvm::Expected<CopyPlan> planCopy(const SharedLayout &buffer, unsigned threads,
                                  unsigned chunkBytes = 16);

} // namespace mlir::attn

#endif // ATTN_LAYOUT_COPYPLAN_H
