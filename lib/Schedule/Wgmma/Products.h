//===- Products.h - Products of a block by wgmma ----------------*- C++ -*-===//
//
// The pieces of which schedules make the blocks of a tile. They start products
// and wait for nothing but what they are told to; slots are the caller's.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WGMMA_PRODUCTS_H
#define ATTN_LIB_SCHEDULE_WGMMA_PRODUCTS_H

#include "../Tma/RingEmitter.h"

namespace mlir::attn {

/// Starts the product of `queries` with a slot of keys; returns the scores in
/// flight.
Value multiplyKeys(RingEmitter &kernel, Value queries, Value slot);

/// Starts the product of `p` with `values`, keys x columns or a transposed
/// slot of these, which is added to `sum`; returns the results in flight.
Value multiplyValues(RingEmitter &kernel, Value p, Value values, Value sum);

/// Returns a product of f32 when it and all before it are complete.
Value awaitProduct(RingEmitter &kernel, Value product);

/// Returns probabilities as an operand of PV; `keyQuads` tells whether the rows
/// of K are loaded in the order of quads (attn.apply_mask).
Value makeOperand(RingEmitter &kernel, Value p, bool keyQuads);

/// Makes probabilities large where they are 8-bit floats, whose smallest normal
/// number is 2^-6 (e4m3): the largest is 2^8, which no rounding touches. With
/// so few digits only the true maximum will do, so that `threshold` lets it
/// grow by nothing. `optimistic` knows nothing but sums, for which flat rows
/// need room (docs/Rationale/NarrowTypes.md).
void setNarrowRange(OnlineSoftmaxOp softmax);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WGMMA_PRODUCTS_H
