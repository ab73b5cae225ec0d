//===- Widening.h - What a partition that widens keys does ------*- C++ -*-===//
//
// A warpgroup reads 8-bit rows from shared memory, and writes them there as
// f16.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_TMA_WIDENING_H
#define ATTN_LIB_SCHEDULE_TMA_WIDENING_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {

/// Loads a slot of 8-bit rows. Lanes have a row each, 16 bytes of it and 32 of
/// the wide one: whatever the swizzle, eight of them reach all banks.
Value loadNarrowRows(ImplicitLocOpBuilder &b, Value slot);

/// A tile in elements of `type`.
Value emitWidened(ImplicitLocOpBuilder &b, Value tile, Type type);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_TMA_WIDENING_H
