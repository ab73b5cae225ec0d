//===- TensorMemory.h - A CTA's tensor memory ----------------------*- C++
//-*-===//

#ifndef ATTN_LIB_SIMULATOR_ASYNC_TENSORMEMORY_H
#define ATTN_LIB_SIMULATOR_ASYNC_TENSORMEMORY_H

#include "../Machine/Machine.h"

namespace mlir::attn::sim {

/// 128 lanes of 512 columns of 32 bits.
struct TensorMemory {
  static constexpr unsigned Lanes = 128, Columns = 512;
  std::vector<uint32_t> cells = std::vector<uint32_t>(Lanes * Columns);
  std::vector<uint8_t> valid = std::vector<uint8_t>(Lanes * Columns);
  Shadow shadow;
  /// Allocations: first column to number of columns.
  std::map<uint32_t, uint32_t> allocations;
  bool relinquished = false;

  /// Rows that move together, and the columns of an element that does.
  static constexpr unsigned Partition = 32, ShiftColumns = 8;
  /// Every row but the last of the partition that `lane` lies in takes the
  /// element of the next row.
  void shiftRows(unsigned lane, uint32_t column);

  bool isAllocated(uint32_t column, uint32_t count) const {
    auto it = allocations.upper_bound(column);
    if (it == allocations.begin())
      return false;
    --it;
    return column + count <= it->first + it->second;
  }
};

/// The tensor memory of a CTA, made on first use.
TensorMemory &tensorMemoryOf(Cta &cta);

/// Checks and records an access to `count` columns of one lane.
void trackTensor(Exec &x, Cta &cta, const Stamp &stamp, const Clock &clock,
                 unsigned lane, unsigned column, unsigned count, bool write);

/// An operand of a tcgen05 operation is not in shared memory: stops the run.
void reportOutside(Cluster &cluster, const EngineOp &op);
/// Checks and records what shifting the rows of `lane`'s partition touches.
void trackShift(Exec &x, Cta &cta, const Stamp &stamp, unsigned lane,
                uint32_t column);
/// Remembers what an operation issued now is ordered after.
void rememberIssue(Exec &x);
/// Completes an operation now, or hands it to the engine.
void startOperation(Exec &x, std::unique_ptr<EngineOp> op);

struct Decoding;
llvm::Error decodeTensorMma(Decoding &c);
llvm::Error decodeTensorCommit(Decoding &c);
llvm::Error decodeTensorCopy(Decoding &c);
llvm::Error decodeTensorShift(Decoding &c);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_ASYNC_TENSORMEMORY_H
