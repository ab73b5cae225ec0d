//===- ProgramFolders.cpp - More places of CUDA's programs ----------------===//

#include "attn/Target/ProgramFolders.h"
#include "llvm/ADT/STLExtras.h"
#include <mutex>

using namespace mlir::attn;

/// The folders, and what guards them.
static std::mutex foldersLock;
static std::vector<std::string> &getFolders() {
  static std::vector<std::string> folders;
  return folders;
}

void mlir::attn::addCudaProgramFolder(llvm::StringRef folder) {
  std::lock_guard<std::mutex> guard(foldersLock);
  if (!llvm::is_contained(getFolders(), folder))
    getFolders().push_back(folder.str());
}

std::vector<std::string> mlir::attn::getCudaProgramFolders() {
  std::lock_guard<std::mutex> guard(foldersLock);
  return getFolders();
}
