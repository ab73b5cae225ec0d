//===- SlicedProducts.h - Products of slices of columns ---------*- C++ -*-===//
//
// Rows of Q, K and V that come in slices of their columns, a slot each: scores
// are a sum over the slices, results have an accumulator for each.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WGMMA_SLICEDPRODUCTS_H
#define ATTN_LIB_SCHEDULE_WGMMA_SLICEDPRODUCTS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {

/// Starts the product of a slice of queries and one of keys, of which the first
/// `columns` columns are multiplied, and adds `sum` unless that is null.
Value multiplyKeys(ImplicitLocOpBuilder &b, Value query, Value key,
                   int64_t columns, Value sum);

/// Starts to add probabilities times the first `columns` columns of a slice of
/// values to `sum`.
Value multiplyValues(ImplicitLocOpBuilder &b, Value p, Value value,
                     int64_t columns, Value sum);

/// Returns `products` as tiles when all but the last `pending` products are
/// complete.
SmallVector<Value> awaitProducts(ImplicitLocOpBuilder &b, ValueRange products,
                                 int64_t pending);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WGMMA_SLICEDPRODUCTS_H
