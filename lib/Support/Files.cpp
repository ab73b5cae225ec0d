//===- Files.cpp - Files that tools read and write ------------------------===//

#include "attn/Support/Files.h"
#include "attn/Support/HostMemory.h"
#include "llvm/Support/FileSystem.h"
#include <algorithm>

using namespace mlir::attn;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace fs = llvm::sys::fs;

/// Reads to the end of the file, or a byte more than `limit`.
static Expected<std::string> readToEnd(fs::file_t file, uint64_t limit) {
  fs::file_status status;
  uint64_t expected = 0;
  if (std::error_code code = fs::status(file, status))
    return createStringError(code, code.message());
  bool isRegular = status.type() == fs::file_type::regular_file;
  if (isRegular)
    expected = status.getSize();
  // Devices and pipes have no size to compare with the memory.
  if (!isRegular)
    limit = std::min(limit, status.type() == fs::file_type::character_file
                                ? kMaxDeviceBytes
                                : kMaxTextBytes);
  // What is known to be too long is not read at all.
  if (expected > limit)
    return createStringError("expected at most " + formatBytes(limit) +
                             ", got " + formatBytes(expected));
  std::string text;
  constexpr size_t chunk = 1 << 16;
  text.reserve(expected + chunk);
  while (true) {
    size_t old = text.size();
    text.resize(old + chunk);
    Expected<size_t> got = fs::readNativeFile(
        file, llvm::MutableArrayRef(text.data() + old, chunk));
    if (!got)
      return got.takeError();
    text.resize(old + *got);
    if (!*got)
      return std::move(text);
    if (text.size() > limit)
      return createStringError("expected at most " + formatBytes(limit) +
                               ", got more");
  }
}

Expected<std::string> mlir::attn::readFile(StringRef path, uint64_t limit) {
  auto fail = [&](Error error) {
    return createStringError("cannot read " +
                             (path == "-" ? "standard input" : path) + ": " +
                             llvm::toString(std::move(error)));
  };
  fs::file_t file = fs::getStdinHandle();
  bool isStdin = path == "-";
  if (!isStdin) {
    Expected<fs::file_t> opened = fs::openNativeFileForRead(path);
    if (!opened)
      return fail(opened.takeError());
    file = *opened;
  }
  Expected<std::string> text = readToEnd(file, limit);
  if (!isStdin)
    fs::closeFile(file);
  if (!text)
    return fail(text.takeError());
  return text;
}

Error mlir::attn::writeFile(
    StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> print) {
  auto fail = [&](std::error_code code) {
    StringRef name = path == "-" ? "standard output" : path;
    return createStringError(code,
                             "cannot write " + name + ": " + code.message());
  };
  std::error_code code;
  llvm::raw_fd_ostream os(path, code);
  if (code)
    return fail(code);
  print(os);
  // A stream that has failed ends the process unless it is asked.
  if (path == "-")
    os.flush();
  else
    os.close();
  if (!os.has_error())
    return Error::success();
  code = os.error();
  os.clear_error();
  return fail(code);
}
