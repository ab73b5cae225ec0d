//===- Disassembler.cpp - Runs nvdisasm -----------------------------------===//

#include "attn/Target/Disassembler.h"
#include "ToolFiles.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/Program.h"
#include <cstring>

using namespace mlir::attn;

llvm::Expected<std::string> mlir::attn::findNvdisasm() {
  return findCudaProgram("nvdisasm");
}

/// The names of functions that the host can launch.
static llvm::Expected<std::vector<std::string>>
readKernels(llvm::StringRef cubin) {
  using File = llvm::object::ELFFile<llvm::object::ELF64LE>;
  // Of a symbol's st_other: a function that the host can launch.
  constexpr unsigned entryFlag = 0x10;
  llvm::Expected<File> file = File::create(cubin);
  if (!file)
    return file.takeError();
  if (file->getHeader().e_machine != llvm::ELF::EM_CUDA)
    return llvm::createStringError("it is for another machine");
  auto sections = file->sections();
  if (!sections)
    return sections.takeError();
  std::vector<std::string> kernels;
  for (const auto &section : *sections) {
    if (section.sh_type != llvm::ELF::SHT_SYMTAB)
      continue;
    auto symbols = file->symbols(&section);
    if (!symbols)
      return symbols.takeError();
    auto names = file->getStringTableForSymtab(section);
    if (!names)
      return names.takeError();
    for (const auto &symbol : *symbols) {
      if (symbol.getType() != llvm::ELF::STT_FUNC ||
          !(symbol.st_other & entryFlag))
        continue;
      auto name = symbol.getName(*names);
      if (!name)
        return name.takeError();
      kernels.push_back(name->str());
    }
  }
  return kernels;
}

llvm::Expected<std::vector<std::string>>
mlir::attn::getCubinKernels(llvm::StringRef cubin) {
  // Records are read in place.
  std::vector<uint64_t> aligned(cubin.size() / sizeof(uint64_t) + 1);
  std::memcpy(aligned.data(), cubin.data(), cubin.size());
  auto kernels = readKernels(llvm::StringRef(
      reinterpret_cast<const char *>(aligned.data()), cubin.size()));
  if (!kernels)
    return llvm::createStringError("cannot read the cubin: " +
                                   llvm::toString(kernels.takeError()));
  return kernels;
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
      program, {program, "-g", "-c", "-hex", input.getPath()},
      /*Env=*/std::nullopt, redirects, /*SecondsToWait=*/0, /*MemoryLimit=*/0,
      &message);
  if (status < 0)
    return llvm::createStringError("cannot run " + program + ": " + message);
  if (status > 0)
    return llvm::createStringError(program + " failed with status " +
                                   std::to_string(status) + ": " +
                                   llvm::StringRef(complaint.read()).trim());
  return listing.read();
}
