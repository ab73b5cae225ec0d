//===- TensorProducts.h - What a product takes of tcgen05.mma ---*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_TENSORPRODUCTS_H
#define ATTN_DIALECT_ATTN_IR_TENSORPRODUCTS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Layout/TensorInstruction.h"

namespace mlir::attn {

/// Where a CTA has one tile (#attn.ws_tmem): keys of a slot of values, and
/// bytes of a row in a slot of queries or keys, which are those of a swizzle's
/// span.
inline constexpr int64_t kTensorPartKeys = 32, kTensorSliceBytes = 128;

/// The shape of a product's instructions. Where B is contiguous along N a piece
/// starts with a span of its layout; any column may start one while the layout
/// is not chosen.
llvm::Expected<TensorInstruction> chooseTensorInstruction(Tcgen05MmaOp op);

/// Returns whether a kernel's products are of both CTAs of a pair.
bool usesPairs(gpu::GPUFuncOp kernel);

/// Checks that ops of the tensor core are all of one CTA or all of a pair, and
/// that there are pairs. On failure a diagnostic was emitted.
LogicalResult checkTensorGroups(gpu::GPUFuncOp kernel);

/// A line for each kind of product in a kernel: where it goes, its extents,
/// where A is, and its instructions; empty where there is none. An error has
/// been reported.
FailureOr<std::string> describeTensorProducts(Operation *kernel);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_TENSORPRODUCTS_H
