//===- InitAll.h - Registers dialects, passes and pipelines -----*- C++ -*-===//

#ifndef ATTN_INITALL_H
#define ATTN_INITALL_H

#include "mlir/IR/DialectRegistry.h"

namespace mlir::attn {

/// Registers the attn dialect with its interface models, and the upstream
/// dialects that appear on its rungs.
void registerAllDialects(DialectRegistry &registry);

/// Registers the passes of this project.
void registerAllPasses();

/// Registers the named pipelines (attn-to-tile, attn-to-barrier, attn-to-nvvm,
/// attn-to-ptx).
void registerAllPipelines();

} // namespace mlir::attn

#endif // ATTN_INITALL_H
