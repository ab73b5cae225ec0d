//===- Bundle.h - A compiled kernel in one file -----------------*- C++ -*-===//
//
// A bundle holds what a launch needs where there is neither a compiler nor a
// toolkit: the launch record, cubins for some chips, and the PTX for others.
// docs/Bundles.md describes the bytes; the Python package's attn.runtime reads
// and launches them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_COMPILE_BUNDLE_H
#define ATTN_COMPILE_BUNDLE_H

#include "attn/Compile/Compiler.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mlir::attn {

/// The version of the format that writeBundle writes.
inline constexpr uint32_t kBundleVersion = 1;

/// Code for some chip.
struct BundleImage {
  enum class Kind { Cubin, PTX };
  Kind kind = Kind::Cubin;
  /// What ptxas was told, or the PTX's target.
  std::string chip;
  std::string bytes;
};

/// One kernel with its images.
struct Bundle {
  LaunchRecord launch;
  /// Cubins, then the PTX.
  std::vector<BundleImage> images;
};

/// Bundles a compiled kernel with a cubin for each of `chips`, which ptxas
/// makes from the PTX. Without chips there is a cubin for the kernel's own chip
/// where ptxas is found, and else only the PTX. Errors: not exactly one kernel,
/// no ptxas for chips that were asked for, and what ptxas refuses.
llvm::Expected<Bundle> makeBundle(const CompileResult &result,
                                  llvm::ArrayRef<std::string> chips);

/// The bytes of a bundle's file.
std::string writeBundle(const Bundle &bundle);

} // namespace mlir::attn

#endif // ATTN_COMPILE_BUNDLE_H
