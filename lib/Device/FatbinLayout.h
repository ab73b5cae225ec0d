//===- FatbinLayout.h - Where things are in a fatbin ------------*- C++ -*-===//
//
// A fatbin as fatbinary writes it: a header of 16 bytes, then entries of a
// header and a payload each. All numbers are little-endian.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DEVICE_FATBINLAYOUT_H
#define ATTN_LIB_DEVICE_FATBINLAYOUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <cstdint>

namespace mlir::attn::device {

inline constexpr uint32_t kFatbinMagic = 0xba55ed50;
/// Bytes of the header, whose bytes from 8 on say how many follow it.
inline constexpr uint64_t kFatbinHeader = 16;

enum FatbinEntryKind : uint16_t { PTXEntry = 1, MachineCodeEntry = 2 };

/// What the header of an entry says, and what follows it.
struct FatbinEntry {
  uint16_t kind;
  uint32_t chip;
  uint64_t flags;
  /// Bytes of a compressed payload, and those it stands for.
  uint64_t packedSize, textSize;
  llvm::ArrayRef<uint8_t> payload;
};

/// Calls `take` with each entry, until it fails. An entry that is not inside of
/// the fatbin is an error.
llvm::Error
walkEntries(llvm::ArrayRef<uint8_t> fatbin,
            llvm::function_ref<llvm::Error(const FatbinEntry &)> take);

} // namespace mlir::attn::device

#endif // ATTN_LIB_DEVICE_FATBINLAYOUT_H
