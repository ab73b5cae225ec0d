//===- ToolFiles.cpp - Finding and feeding CUDA's programs ----------------===//

#include "ToolFiles.h"
#include "attn/Target/ProgramFolders.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <vector>

using namespace mlir::attn;

llvm::Expected<std::string> mlir::attn::findCudaProgram(llvm::StringRef name) {
  std::vector<std::string> folders;
  if (std::optional<std::string> home = llvm::sys::Process::GetEnv("CUDA_HOME"))
    folders.push_back(*home);
  folders.push_back("/usr/local/cuda");
  for (const std::string &folder : folders) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, "bin", name);
    if (llvm::sys::fs::can_execute(path))
      return std::string(path);
  }
  if (llvm::ErrorOr<std::string> path = llvm::sys::findProgramByName(name))
    return *path;
  for (const std::string &folder : getCudaProgramFolders()) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    if (llvm::sys::fs::can_execute(path))
      return std::string(path);
  }
  return llvm::createStringError(
      "no " + name +
      " in $CUDA_HOME/bin, in /usr/local/cuda/bin or on the PATH");
}

llvm::Error TemporaryFile::create(llvm::StringRef suffix) {
  if (std::error_code code =
          llvm::sys::fs::createTemporaryFile("attn", suffix, path))
    return llvm::createStringError(code,
                                   "no temporary file: " + code.message());
  remover.setFile(path);
  return llvm::Error::success();
}

llvm::Error TemporaryFile::write(llvm::StringRef text) const {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (!code) {
    stream << text;
    stream.close();
    code = stream.error();
  }
  if (!code)
    return llvm::Error::success();
  stream.clear_error();
  return llvm::createStringError(code, "cannot write " + path + ": " +
                                           code.message());
}

std::string TemporaryFile::read() const {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}
