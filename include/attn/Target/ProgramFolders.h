//===- ProgramFolders.h - More places of CUDA's programs --------*- C++ -*-===//

#ifndef ATTN_TARGET_PROGRAMFOLDERS_H
#define ATTN_TARGET_PROGRAMFOLDERS_H

#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace mlir::attn {

/// Names a folder where CUDA's programs are looked for behind all others. May
/// be called by any thread.
void addCudaProgramFolder(llvm::StringRef folder);

/// Returns these folders, in the order in which they were named.
std::vector<std::string> getCudaProgramFolders();

} // namespace mlir::attn

#endif // ATTN_TARGET_PROGRAMFOLDERS_H
