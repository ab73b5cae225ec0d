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
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using namespace mlir::attn::device;
using namespace mlir::attn;
using llvm::Expected;
using llvm::formatv;
using llvm::StringRef;
using namespace llvm::support::endian;

/// Returns the kernels of machine code, each of which has a section of its own.
static std::vector<StringRef> listKernels(StringRef code) {
  constexpr llvm::StringLiteral kSection = ".text.";
  std::vector<StringRef> names;
  while (true) {
    size_t at = code.find(kSection);
    if (at == StringRef::npos)
      break;
    code = code.drop_front(at + kSection.size());
    StringRef name = code.take_until([](char c) { return c == '\0'; });
    if (!name.empty() && !llvm::is_contained(names, name))
      names.push_back(name);
  }
  return names;
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
  StringRef code(static_cast<const char *>(fatbin),
                 kFatbinHeader + read64le(bytes + 8));
  std::vector<StringRef> names = listKernels(code);
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
    bool hasAll = llvm::all_of(names, [&](StringRef name) {
      return StringRef(*text).contains((".entry " + name + "(").str());
    });
    if (hasAll)
      return text;
  }
  return fail(Status::NoBinary,
              formatv("expected the PTX of kernel '{0}' in '{1}', got none: "
                      "let its compiler keep PTX there",
                      names.front(), folder));
}
