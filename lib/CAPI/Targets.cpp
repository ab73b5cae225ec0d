//===- Targets.cpp - Versions and targets in the C interface --------------===//

#include "Request.h"
#include "attn/Target/Assembler.h"
#include "attn/Target/ProgramFolders.h"
#include "attn/Target/TargetTable.h"
#include "attn/Target/ToolMain.h"
#include <cstring>

using namespace mlir::attn;

uint32_t attnGetAPIVersion(void) { return ATTN_C_API_VERSION; }

AttnStringRef attnGetCompilerVersion(void) {
  return {getVersionText().data(), getVersionText().size()};
}

AttnStringRef attnGetAssemblerVersion(void) {
  thread_local std::string version;
  llvm::Expected<std::string> found = getPtxasVersion();
  version = found ? std::move(*found) : "";
  if (!found)
    llvm::consumeError(found.takeError());
  return toC(version);
}

void attnAddProgramFolder(AttnStringRef folder) {
  addCudaProgramFolder(copyString(folder));
}

size_t attnGetNumTargets(void) { return getTargets().size(); }

AttnTarget attnGetTarget(size_t index) {
  llvm::ArrayRef<TargetRow> targets = getTargets();
  if (index >= targets.size())
    return {{"", 0}, 0, 0, 0, 0};
  const TargetRow &row = targets[index];
  // The table's names are literals, so that a zero byte follows.
  return {{row.chip.data(), row.chip.size()},
          row.computeCapability,
          row.minPTX,
          row.defaultPTX,
          row.sharedBytesPerCTA};
}

AttnStringRef attnStringFromC(const char *text) {
  return {text ? text : "", text ? std::strlen(text) : 0};
}
