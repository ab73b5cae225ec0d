//===- TouchedRange.h - What a launch does to memory ------------*- C++ -*-===//

#ifndef ATTN_SIMULATOR_CLOCKS_TOUCHEDRANGE_H
#define ATTN_SIMULATOR_CLOCKS_TOUCHEDRANGE_H

#include <cstdint>

namespace mlir::attn::sim {

/// Global memory that a launch has touched.
struct TouchedRange {
  enum Kind : uint8_t {
    Read,   ///< read only
    Write,  ///< written
    Atomic, ///< written by atomics and other strong accesses alone
  };
  uint64_t begin = 0, end = 0;
  Kind kind = Read;
};

} // namespace mlir::attn::sim

#endif // ATTN_SIMULATOR_CLOCKS_TOUCHEDRANGE_H
