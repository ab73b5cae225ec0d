//===- DepthOperands.h - Operands whose depth warps divide ------*- C++ -*-===//

#ifndef ATTN_LAYOUT_DEPTHOPERANDS_H
#define ATTN_LAYOUT_DEPTHOPERANDS_H

#include "attn/Layout/NamedLayouts.h"

namespace mlir::attn {

/// The operand A of mma.sync, m x k, where the grid.n warps that share rows
/// divide the contraction: warp wn has its steps wn, wn + grid.n, ... of 256 /
/// `elementBits` elements. m is a multiple of 16 * grid.m, k of a step for each
/// of these warps; the grid has powers of two and no copies.
llvm::Expected<TileLayout>
mmaDepthOperandA(int64_t m, int64_t k, unsigned elementBits, WarpGrid grid);

/// The same of the operand B, k x n, of which each warp has all columns; n is a
/// multiple of 8.
llvm::Expected<TileLayout>
mmaDepthOperandB(int64_t k, int64_t n, unsigned elementBits, WarpGrid grid);

} // namespace mlir::attn

#endif // ATTN_LAYOUT_DEPTHOPERANDS_H
