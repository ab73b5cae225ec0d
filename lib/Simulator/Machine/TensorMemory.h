//===- TensorMemory.h - A CTA's tensor memory -------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_MACHINE_TENSORMEMORY_H
#define ATTN_LIB_SIMULATOR_MACHINE_TENSORMEMORY_H

#include "../Clocks/RowShadow.h"
#include "TensorPair.h"
#include <map>
#include <vector>

namespace mlir::attn::sim {

/// Columns that a CTA has allocated.
struct TensorColumns {
  uint32_t count = 0;
  /// A dealloc of both CTAs of a pair that the other one has executed: this CTA
  /// may not use the columns any more, and has to free them.
  std::optional<WarpEvent> freed;
};

/// 128 lanes of 512 columns of 32 bits.
struct TensorMemory {
  static constexpr unsigned Lanes = RowShadow::NumRows, Columns = 512;
  std::vector<uint32_t> cells = std::vector<uint32_t>(Lanes * Columns);
  std::vector<uint8_t> valid = std::vector<uint8_t>(Lanes * Columns);
  RowShadow shadow;
  /// By first column.
  std::map<uint32_t, TensorColumns> allocations;
  bool relinquished = false;

  /// Rows that move together, and the columns of an element that does.
  static constexpr unsigned Partition = 32, ShiftColumns = 8;
  /// Every row but the last of the partition that `lane` lies in takes the
  /// element of the next row.
  void shiftRows(unsigned lane, uint32_t column);

  /// Returns the allocation that has all of these columns, or null.
  const TensorColumns *find(uint32_t column, uint32_t count) const {
    auto it = allocations.upper_bound(column);
    if (it == allocations.begin())
      return nullptr;
    --it;
    return column + count <= it->first + it->second.count ? &it->second
                                                          : nullptr;
  }
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_MACHINE_TENSORMEMORY_H
