//===- BundleFile.h - The bytes of a bundle ---------------------*- C++ -*-===//
//
// A bundle holds what a launch needs where there is neither a compiler nor a
// toolkit: the launch record, cubins for some chips, and the PTX for others.
// docs/Bundles.md describes the bytes; the Python package's attn.runtime reads
// and launches them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAUNCH_BUNDLEFILE_H
#define ATTN_LAUNCH_BUNDLEFILE_H

#include "attn/Launch/LaunchRecord.h"
#include "llvm/ADT/StringRef.h"
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

/// The bytes of a bundle's file.
std::string writeBundle(const Bundle &bundle);

/// True if `bytes` begin as a bundle's file does.
bool isBundle(llvm::StringRef bytes);

/// Reads a bundle's file. Errors: another version, a file that is cut short or
/// damaged.
llvm::Expected<Bundle> readBundle(llvm::StringRef bytes);

} // namespace mlir::attn

#endif // ATTN_LAUNCH_BUNDLEFILE_H
