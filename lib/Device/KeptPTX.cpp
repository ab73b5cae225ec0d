//===- KeptPTX.cpp - The PTX beside machine code --------------------------===//
//
// Compilers that load machine code can keep the PTX that it was made of, as
// CuTe DSL does (CUTE_DSL_KEEP=ptx). Which file it is, the names of the kernels
// say.
//
//===----------------------------------------------------------------------===//

#include "FatbinLayout.h"
#include "attn/Device/Module.h"
#include "attn/Support/Files.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using namespace mlir::attn::device;
using namespace mlir::attn;
using llvm::Error;
using llvm::Expected;
using llvm::formatv;
using llvm::StringRef;
using namespace llvm::support::endian;

/// Returns a name in a table of names that end with zeros; an empty one where
/// there is none.
static StringRef readName(StringRef table, uint64_t at) {
  return table.drop_front(std::min<uint64_t>(at, table.size()))
      .take_until([](char c) { return c == '\0'; });
}

/// Returns the functions of machine code, an ELF file, in which each has a
/// section of its own. The file is nothing else than that where it is damaged.
static std::vector<StringRef> listFunctions(llvm::ArrayRef<uint8_t> code) {
  using llvm::ELF::Elf64_Ehdr;
  using llvm::ELF::Elf64_Shdr;
  constexpr llvm::StringLiteral kSection = ".text.";
  std::vector<StringRef> names;
  if (code.size() < sizeof(Elf64_Ehdr) ||
      std::memcmp(code.data(), llvm::ELF::ElfMagic, 4) != 0)
    return names;
  StringRef bytes(reinterpret_cast<const char *>(code.data()), code.size());
  uint64_t first = read64le(&code[offsetof(Elf64_Ehdr, e_shoff)]);
  uint64_t count = read16le(&code[offsetof(Elf64_Ehdr, e_shnum)]);
  uint64_t namesAt = read16le(&code[offsetof(Elf64_Ehdr, e_shstrndx)]);
  if (first > code.size() || namesAt >= count ||
      (code.size() - first) / sizeof(Elf64_Shdr) < count)
    return names;
  const uint8_t *sections = code.data() + first;
  const uint8_t *section = sections + namesAt * sizeof(Elf64_Shdr);
  uint64_t begin = read64le(section + offsetof(Elf64_Shdr, sh_offset));
  uint64_t size = read64le(section + offsetof(Elf64_Shdr, sh_size));
  StringRef table = bytes.substr(std::min<uint64_t>(begin, bytes.size()), size);
  for (uint64_t index = 0; index < count; ++index) {
    section = sections + index * sizeof(Elf64_Shdr);
    StringRef name = readName(table, read32le(section));
    if (name.consume_front(kSection) && !name.empty())
      names.push_back(name);
  }
  return names;
}

/// Returns true if PTX defines a function: a kernel, or one that kernels call.
static bool defines(StringRef ptx, StringRef function) {
  std::string head = (function + "(").str();
  for (size_t at = ptx.find(head); at != StringRef::npos;
       at = ptx.find(head, at + 1)) {
    StringRef line = ptx.take_front(at).rsplit('\n').second;
    if (at > 0 && llvm::isSpace(ptx[at - 1]) && !line.contains(".extern"))
      return true;
  }
  return false;
}

/// Returns the files of the folder that may hold PTX, the newest first.
static Expected<std::vector<std::string>> listFiles(StringRef folder) {
  std::vector<std::pair<llvm::sys::TimePoint<>, std::string>> found;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(folder, code), end;
       !code && it != end; it.increment(code)) {
    auto status = it->status();
    if (status && StringRef(it->path()).ends_with(".ptx"))
      found.emplace_back(status->getLastModificationTime(), it->path());
  }
  if (code)
    return fail(Status::FileNotFound,
                formatv("expected a folder with PTX, got '{0}': {1}", folder,
                        code.message()));
  llvm::sort(found, std::greater<>());
  std::vector<std::string> paths;
  for (auto &[time, path] : found)
    paths.push_back(std::move(path));
  return paths;
}

bool mlir::attn::device::isFatbin(const void *image) {
  const auto *bytes = static_cast<const uint8_t *>(image);
  // A shorter text ends before.
  return image && strnlen((const char *)bytes, 4) == 4 &&
         read32le(bytes) == kFatbinMagic;
}

Expected<std::string> mlir::attn::device::findKeptPTX(const void *fatbin,
                                                      StringRef folder) {
  const auto *bytes = static_cast<const uint8_t *>(fatbin);
  std::vector<StringRef> names;
  if (Error error = walkEntries({bytes, kFatbinHeader + read64le(bytes + 8)},
                                [&](const FatbinEntry &entry) {
                                  if (entry.kind == MachineCodeEntry)
                                    llvm::append_range(
                                        names, listFunctions(entry.payload));
                                  return Error::success();
                                }))
    return std::move(error);
  if (names.empty())
    return fail(Status::NoBinary,
                "expected machine code with kernels, got none");
  Expected<std::vector<std::string>> paths = listFiles(folder);
  if (!paths)
    return paths.takeError();
  for (const std::string &path : *paths) {
    Expected<std::string> text = readFile(path);
    if (!text) {
      // Another compiler may be at work there.
      llvm::consumeError(text.takeError());
      continue;
    }
    bool hasAll = llvm::all_of(
        names, [&](StringRef name) { return defines(*text, name); });
    if (hasAll)
      return text;
  }
  return fail(Status::NoBinary,
              formatv("expected the PTX of kernel '{0}' in '{1}', got none: "
                      "let its compiler keep PTX there",
                      names.front(), folder));
}
