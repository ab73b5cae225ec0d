//===- TensorMemory.h - A CTA's tensor memory -------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_MACHINE_TENSORMEMORY_H
#define ATTN_LIB_SIMULATOR_MACHINE_TENSORMEMORY_H

#include "../Clocks/RowShadow.h"
#include "TensorPair.h"
#include <array>
#include <map>
#include <memory>
#include <vector>

namespace mlir::attn::sim {

/// A dealloc of both CTAs of a pair that one of them has executed.
struct PairFree {
  WarpEvent event;
  /// Holds who had used tensor memory until then, by the parity of a rank.
  /// Empty where nothing is sanitized.
  std::array<RowShadow, 2> uses;
};

/// Columns that a CTA has allocated.
struct TensorColumns {
  uint32_t count = 0;
  /// Set once the other CTA of a pair has freed them: this CTA may not use the
  /// columns any more, and has to free them.
  std::shared_ptr<PairFree> freed;
};

/// 128 lanes of 512 columns of 32 bits.
struct TensorMemory {
  static constexpr unsigned Lanes = RowShadow::NumRows, Columns = 512;
  std::vector<uint32_t> cells = std::vector<uint32_t>(Lanes * Columns);
  /// Bit b: byte b of the cell has been written.
  static constexpr uint8_t AllBytes = 15;
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
