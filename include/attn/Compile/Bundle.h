//===- Bundle.h - A compiled kernel in one file -----------------*- C++ -*-===//

#ifndef ATTN_COMPILE_BUNDLE_H
#define ATTN_COMPILE_BUNDLE_H

#include "attn/Compile/Compiler.h"
#include "attn/Launch/BundleFile.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir::attn {

/// Bundles a compiled kernel with a cubin for each of `chips`, which ptxas
/// makes from the PTX. Without chips there is a cubin for the kernel's own chip
/// where ptxas runs, and else only the PTX; then `whyNoCubin` says why. Errors:
/// not exactly one kernel, no ptxas for chips that were asked for, and what
/// ptxas refuses.
llvm::Expected<Bundle> makeBundle(const CompileResult &result,
                                  llvm::ArrayRef<std::string> chips,
                                  std::string *whyNoCubin = nullptr);

} // namespace mlir::attn

#endif // ATTN_COMPILE_BUNDLE_H
