//===- Bufferize.h - attn ops from tensors to memrefs -----------*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_BUFFERIZE_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_BUFFERIZE_H

#include "mlir/IR/DialectRegistry.h"

namespace mlir::attn {

/// Makes one-shot bufferization turn attn.attention and attn.combine on tensors
/// into their form on memrefs. Kernels need to know that the innermost stride
/// is 1, so functions have to be bufferized with identity layout maps, or
/// buffers cast before.
void registerBufferizationModels(DialectRegistry &registry);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_BUFFERIZE_H
