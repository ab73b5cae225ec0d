//===- RarePath.h - The mark of a path hardly ever taken --------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_RAREPATH_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_RAREPATH_H

#include "llvm/ADT/StringRef.h"

namespace mlir::attn {
/// Of an scf.if that was an attn.rare with `leave_loop`: its condition is the
/// same in all lanes of a warp, and hardly ever true.
inline constexpr llvm::StringLiteral kLeaveLoopAttrName("attn.leave_loop");
} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_RAREPATH_H
