//===- InferBuffers.h - Layouts of buffers in shared memory -----*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_INFERBUFFERS_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_INFERBUFFERS_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// Gives each buffer of a kernel whose layout is `#attn.auto` one: what TMA
/// copies lies as the tensor map says, else rows are swizzled. The number of
/// buffers, or failure with a diagnostic where a shape cannot lie so.
FailureOr<unsigned> inferBufferLayouts(gpu::GPUFuncOp kernel);

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_INFERBUFFERS_H
