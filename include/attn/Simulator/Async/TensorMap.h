//===- TensorMap.h - Tensor maps for bulk tensor copies ---------*- C++ -*-===//
//
// The 128 opaque bytes that a kernel takes as a tensor map, laid out as the
// driver does it: maps of cuTensorMapEncodeTiled can be decoded, and
// tensormap.replace finds its fields. The layout is not documented; it was read
// off a driver's encodings (docs/Simulator.md).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SIMULATOR_ASYNC_TENSORMAP_H
#define ATTN_SIMULATOR_ASYNC_TENSORMAP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>

namespace mlir::attn::sim {

/// Element types in the order of the driver's CUtensorMapDataType. They matter
/// to reductions and to the fill value. The last three are packed elements of 4
/// and 6 bits; of those with padding, 16 elements take 16 bytes of shared
/// memory.
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
  F32Ftz,
  TF32,
  TF32Ftz,
  B4x16,
  B4x16P64,
  B6x16P32,
};
/// Bits of an element in global memory, 4 to 64.
unsigned getElementBits(TensorMapElement element);
/// Bytes of shared memory that a row of `count` elements takes.
uint64_t getSharedBytes(TensorMapElement element, uint64_t count);

/// What cuTensorMapEncodeTiled takes, interleave none.
struct TensorMapInfo {
  uint64_t address = 0;
  TensorMapElement element = TensorMapElement::F16;
  unsigned rank = 1;
  std::array<uint64_t, 5> dims = {1, 1, 1, 1, 1};    ///< in elements
  std::array<uint64_t, 5> strides = {0, 0, 0, 0, 0}; ///< bytes; [0] unused
  std::array<uint32_t, 5> box = {1, 1, 1, 1, 1};     ///< in elements
  /// Every how many elements one is taken, 1 to 8; [0] has no effect.
  std::array<uint32_t, 5> elementStrides = {1, 1, 1, 1, 1};
  unsigned swizzleBytes = 0; ///< 0, 32, 64 or 128
  bool nanFill = false; ///< elements out of bounds read as NaN, not as zero
};

/// Checks the driver's rules (alignment, ranges) and encodes as it does,
/// without L2 promotion.
llvm::Expected<std::array<uint8_t, 128>>
encodeTensorMap(const TensorMapInfo &info);

/// Decodes what a driver or encodeTensorMap made; L2 promotion is ignored. An
/// error for interleaved layouts, and for fields that break the driver's rules.
llvm::Expected<TensorMapInfo> decodeTensorMap(llvm::ArrayRef<uint8_t> bytes);

/// The fields that tensormap.replace can change.
enum class TensorMapField : uint8_t {
  GlobalAddress,
  Rank, ///< minus one
  BoxDim,
  GlobalDim,
  GlobalStride,
  ElementStride,
  ElementType, ///< numbered as in the PTX manual
  Interleave,
  SwizzleMode,
  FillMode,
};
/// Replaces one field, of dimension `ordinal` where the field has several, in
/// the 128 bytes of a map. An error for an ordinal or a value out of range.
llvm::Error replaceTensorMapField(llvm::MutableArrayRef<uint8_t> bytes,
                                  TensorMapField field, unsigned ordinal,
                                  uint64_t value);

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

#endif // ATTN_SIMULATOR_ASYNC_TENSORMAP_H
