//===- WriteFile.h - Text into files ----------------------------*- C++ -*-===//

#ifndef ATTN_LIB_COMPILE_WRITEFILE_H
#define ATTN_LIB_COMPILE_WRITEFILE_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::attn {

/// Writes a whole file. Failure is a diagnostic at the module, `cannot write
/// 'PATH': REASON`.
LogicalResult writeFile(ModuleOp module, StringRef path, StringRef text);

} // namespace mlir::attn

#endif // ATTN_LIB_COMPILE_WRITEFILE_H
