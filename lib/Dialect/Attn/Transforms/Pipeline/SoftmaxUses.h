//===- SoftmaxUses.h - What an online softmax is used for -------*- C++ -*-===//
//
// Private to the expansion of attn.online_softmax.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_SOFTMAXUSES_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_SOFTMAXUSES_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// The path on which whoever keeps the accumulator elsewhere rescales it: where
/// some factor is not 1. Null if there is none that the step can take over.
RareOp findRescale(OnlineSoftmaxOp op);

/// The slices that are all uses of p, narrowed or not, in their order, if they
/// are its columns once each; else none.
SmallVector<SliceOp> findSlices(OnlineSoftmaxOp op);

/// True if all uses of slices are stores to tensor memory in front of `path`.
bool isBehindStores(RareOp path, ArrayRef<SliceOp> slices);

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_SOFTMAXUSES_H
