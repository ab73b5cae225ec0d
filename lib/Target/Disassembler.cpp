//===- Disassembler.cpp - Runs nvdisasm -----------------------------------===//

#include "attn/Target/Disassembler.h"
#include "ToolFiles.h"
#include "llvm/Support/Program.h"

using namespace mlir::attn;

llvm::Expected<std::string> mlir::attn::findNvdisasm() {
  return findCudaProgram("nvdisasm");
}

llvm::Expected<std::string> mlir::attn::disassemble(llvm::StringRef cubin,
                                                    llvm::StringRef nvdisasm) {
  std::string program = nvdisasm.str();
  if (program.empty()) {
    llvm::Expected<std::string> found = findNvdisasm();
    if (!found)
      return found.takeError();
    program = *found;
  }
  TemporaryFile input, listing, complaint;
  for (auto [file, suffix] :
       {std::pair(&input, "cubin"), {&listing, "sass"}, {&complaint, "log"}})
    if (llvm::Error error = file->create(suffix))
      return std::move(error);
  if (llvm::Error error = input.write(cubin))
    return std::move(error);
  std::optional<llvm::StringRef> redirects[] = {
      llvm::StringRef(""), listing.getPath(), complaint.getPath()};
  std::string message;
  int status = llvm::sys::ExecuteAndWait(
      program, {program, "-g", "-c", input.getPath()}, /*Env=*/std::nullopt,
      redirects, /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
  if (status < 0)
    return llvm::createStringError("cannot run " + program + ": " + message);
  if (status > 0)
    return llvm::createStringError(program + " failed with status " +
                                   std::to_string(status) + ": " +
                                   llvm::StringRef(complaint.read()).trim());
  return listing.read();
}
