//===- ToolFiles.h - Finding and feeding CUDA's programs --------*- C++ -*-===//

#ifndef ATTN_LIB_TARGET_TOOLFILES_H
#define ATTN_LIB_TARGET_TOOLFILES_H

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileUtilities.h"
#include <string>

namespace mlir::attn {

/// The program in $CUDA_HOME/bin, in /usr/local/cuda/bin or on the PATH, in
/// this order, or an error that names these places.
llvm::Expected<std::string> findCudaProgram(llvm::StringRef name);

/// A temporary file that goes away with its object.
class TemporaryFile {
public:
  llvm::Error create(llvm::StringRef suffix);
  llvm::Error write(llvm::StringRef text) const;
  /// The contents; empty if the file cannot be read.
  std::string read() const;
  llvm::StringRef getPath() const { return path; }

private:
  llvm::SmallString<128> path;
  llvm::FileRemover remover;
};

} // namespace mlir::attn

#endif // ATTN_LIB_TARGET_TOOLFILES_H
