//===- DebugLines.h - Scopes for .loc lines ---------------------*- C++ -*-===//

#ifndef ATTN_LIB_TARGET_PTX_DEBUGLINES_H
#define ATTN_LIB_TARGET_PTX_DEBUGLINES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::attn {

/// Gives every llvm.func with a body in `module` a debug scope, so that the
/// translation emits `.loc` lines and nothing else: the compile unit's kind is
/// DebugDirectivesOnly, the only one for which the backend does not add `debug`
/// to `.target` (ptxas compiles that without optimization).
void addDebugScopes(gpu::GPUModuleOp module);

} // namespace mlir::attn

#endif // ATTN_LIB_TARGET_PTX_DEBUGLINES_H
