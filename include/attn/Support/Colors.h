//===- Colors.h - Whether messages have colours -----------------*- C++ -*-===//

#ifndef ATTN_SUPPORT_COLORS_H
#define ATTN_SUPPORT_COLORS_H

namespace mlir::attn {

/// Makes all that LLVM and MLIR print in colours do so on terminals only, and
/// not where the environment has a NO_COLOR that is not empty
/// (https://no-color.org). A flag --color, where there is one, decides before
/// both.
void setColors();

} // namespace mlir::attn

#endif // ATTN_SUPPORT_COLORS_H
