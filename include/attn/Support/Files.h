//===- Files.h - Files that tools read and write ----------------*- C++ -*-===//

#ifndef ATTN_SUPPORT_FILES_H
#define ATTN_SUPPORT_FILES_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <string>

namespace mlir::attn {

/// The most bytes of a text (PTX, MLIR, JSON) that is read: 256 MiB.
constexpr uint64_t kMaxTextBytes = uint64_t(1) << 28;

/// The most bytes that are read of a device, such as a terminal: 16 MiB.
constexpr uint64_t kMaxDeviceBytes = uint64_t(1) << 24;

/// Reads a whole file, of at most `limit` bytes, of at most kMaxTextBytes where
/// it is a pipe, and kMaxDeviceBytes where it is a device; "-" is standard
/// input. What has no end (/dev/zero) is an error like every other file that is
/// too long. Errors name the path and the reason.
llvm::Expected<std::string> readFile(llvm::StringRef path,
                                     uint64_t limit = kMaxTextBytes);

/// Writes what `print` prints to a file; "-" is standard output. The error, of
/// a full disk too, names the path and the reason.
llvm::Error writeFile(llvm::StringRef path,
                      llvm::function_ref<void(llvm::raw_ostream &)> print);

} // namespace mlir::attn

#endif // ATTN_SUPPORT_FILES_H
