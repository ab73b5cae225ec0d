//===- TensorMap.h - Tensor maps for bulk tensor copies ------------*- C++
//-*-===//
//
// The 128 opaque bytes that a kernel takes as a tensor map. Address, strides,
// sizes and box lie where the driver puts them; the flag word is the
// simulator's own, so only maps made here can be decoded.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SIMULATOR_TENSORMAP_H
#define ATTN_SIMULATOR_TENSORMAP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>

namespace mlir::attn::sim {

/// Element types, which matter to reductions and to the fill value.
enum class TensorMapElement : uint8_t {
  U8,
  U16,
  U32,
  S32,
  U64,
  S64,
  F16,
  F32,
  F64,
  BF16,
  TF32,
};
/// Bytes of an element.
unsigned getElementBytes(TensorMapElement element);

/// What cuTensorMapEncodeTiled takes, interleave none.
struct TensorMapInfo {
  uint64_t address = 0;
  TensorMapElement element = TensorMapElement::F16;
  unsigned rank = 1;
  std::array<uint64_t, 5> dims = {1, 1, 1, 1, 1};    ///< in elements
  std::array<uint64_t, 5> strides = {0, 0, 0, 0, 0}; ///< bytes; [0] unused
  std::array<uint32_t, 5> box = {1, 1, 1, 1, 1};     ///< in elements
  unsigned swizzleBytes = 0;                         ///< 0, 32, 64 or 128
  bool nanFill = false; ///< elements out of bounds read as NaN, not as zero
};

/// Checks the driver's rules (alignment, ranges) and encodes.
llvm::Expected<std::array<uint8_t, 128>>
encodeTensorMap(const TensorMapInfo &info);

/// Decodes; the error is for bytes that encodeTensorMap did not make.
llvm::Expected<TensorMapInfo> decodeTensorMap(llvm::ArrayRef<uint8_t> bytes);

/// Swizzles a shared-memory address: 16-byte chunks are permuted inside of
/// `swizzleBytes` by the bits above.
inline uint64_t swizzleAddress(uint64_t address, unsigned swizzleBytes) {
  switch (swizzleBytes) {
  case 32:
    return address ^ (address >> 3 & 0x10);
  case 64:
    return address ^ (address >> 3 & 0x30);
  case 128:
    return address ^ (address >> 3 & 0x70);
  default:
    return address;
  }
}

} // namespace mlir::attn::sim

#endif // ATTN_SIMULATOR_TENSORMAP_H
