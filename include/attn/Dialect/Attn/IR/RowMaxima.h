//===- RowMaxima.h - Maxima of rows from loads of tensor memory -*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ROWMAXIMA_H
#define ATTN_DIALECT_ATTN_IR_ROWMAXIMA_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// Lets the load from tensor memory that brings all of what `reduce` reduces,
/// for nobody else, bring the maxima of its rows too, and erases `reduce`.
/// False if it reduces something else, adds, or the load has a layout or a
/// number of columns for which there is no instruction (PTX ISA,
/// tcgen05.ld.red; the chip is for the caller to look at).
bool fuseRowMaximum(ReduceOp reduce);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_ROWMAXIMA_H
