//===- DividedRows.h - Rows whose columns warps divide ----------*- C++ -*-===//

#ifndef ATTN_SCHEDULE_KERNEL_DIVIDEDROWS_H
#define ATTN_SCHEDULE_KERNEL_DIVIDEDROWS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {

/// Tiles of `rows` rows, whose accumulators have the layout `divided` where
/// warps divide columns and `shared` where those of a row hold the same.
struct DividedRows {
  int64_t rows;
  MmaLayoutAttr divided, shared;
  /// Memory of getPartialType for what warps exchange, which such exchanges
  /// have in common; null where each one has its own.
  Value exchange = {};

  /// What each thread has of a row, f32.
  RankedTensorType getPartialType() const;
  RankedTensorType getSharedType(int64_t columns, Type element) const {
    return RankedTensorType::get({rows, columns}, element, shared);
  }
  /// Allocates shared memory for `exchange`, and sets it.
  void allocExchange(ImplicitLocOpBuilder &b, StringRef name);
  /// The parts of row values that a row's warps have, in all of them.
  Value gather(ImplicitLocOpBuilder &b, Value partial) const;
  /// Row values where divided accumulators have their rows.
  Value spread(ImplicitLocOpBuilder &b, Value values) const;
};

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_KERNEL_DIVIDEDROWS_H
