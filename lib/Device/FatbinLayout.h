//===- FatbinLayout.h - Where things are in a fatbin ------------*- C++ -*-===//
//
// A fatbin as fatbinary writes it: a header of 16 bytes, then entries of a
// header and a payload each. All numbers are little-endian.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DEVICE_FATBINLAYOUT_H
#define ATTN_LIB_DEVICE_FATBINLAYOUT_H

#include <cstdint>

namespace mlir::attn::device {

inline constexpr uint32_t kFatbinMagic = 0xba55ed50;
/// Bytes of the header, whose bytes from 8 on say how many follow it.
inline constexpr uint64_t kFatbinHeader = 16;

} // namespace mlir::attn::device

#endif // ATTN_LIB_DEVICE_FATBINLAYOUT_H
