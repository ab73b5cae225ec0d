//===- TensorMap.cpp - Tensor maps for bulk tensor copies -----------------===//

#include "attn/Simulator/TensorMap.h"
#include "llvm/ADT/Twine.h"
#include <cstring>

using namespace mlir::attn::sim;
using llvm::Expected;
using llvm::Twine;

/// Marks the flag word of this encoder.
static constexpr uint32_t Marker = 0xA7700000;

unsigned mlir::attn::sim::getElementBytes(TensorMapElement element) {
  switch (element) {
  case TensorMapElement::U8:
    return 1;
  case TensorMapElement::U16:
  case TensorMapElement::F16:
  case TensorMapElement::BF16:
    return 2;
  case TensorMapElement::U64:
  case TensorMapElement::S64:
  case TensorMapElement::F64:
    return 8;
  default:
    return 4;
  }
}

template <typename T>
static void put(std::array<uint8_t, 128> &bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}
template <typename T>
static T get(llvm::ArrayRef<uint8_t> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

Expected<std::array<uint8_t, 128>>
mlir::attn::sim::encodeTensorMap(const TensorMapInfo &info) {
  auto fail = [](const Twine &message) {
    return llvm::createStringError("tensor map: " + message);
  };
  unsigned size = getElementBytes(info.element);
  if (info.rank < 1 || info.rank > 5)
    return fail("expected a rank between 1 and 5, got " + Twine(info.rank));
  if (info.address % 16)
    return fail("expected a base address that is a multiple of 16");
  if (info.swizzleBytes != 0 && info.swizzleBytes != 32 &&
      info.swizzleBytes != 64 && info.swizzleBytes != 128)
    return fail("expected a swizzle of 0, 32, 64 or 128 bytes, got " +
                Twine(info.swizzleBytes));
  for (unsigned i = 0; i < info.rank; ++i) {
    if (info.dims[i] < 1 || info.dims[i] > (uint64_t(1) << 32))
      return fail("expected a size between 1 and 2^32 in dimension " +
                  Twine(i) + ", got " + Twine(info.dims[i]));
    if (info.box[i] < 1 || info.box[i] > 256)
      return fail("expected a box between 1 and 256 in dimension " + Twine(i) +
                  ", got " + Twine(info.box[i]));
    if (i && (info.strides[i] % 16 || info.strides[i] >= (uint64_t(1) << 40)))
      return fail("expected a stride that is a multiple of 16 below 2^40 in "
                  "dimension " +
                  Twine(i) + ", got " + Twine(info.strides[i]));
  }
  if (info.box[0] * size % 16)
    return fail("expected inner box bytes that are a multiple of 16, got " +
                Twine(info.box[0] * size));
  if (info.swizzleBytes && info.box[0] * size > info.swizzleBytes)
    return fail("expected an inner box of at most " + Twine(info.swizzleBytes) +
                " bytes, got " + Twine(info.box[0] * size));
  std::array<uint8_t, 128> bytes{};
  put(bytes, 0, info.address);
  unsigned swizzle = info.swizzleBytes == 0    ? 0
                     : info.swizzleBytes == 32 ? 1
                     : info.swizzleBytes == 64 ? 2
                                               : 3;
  put(bytes, 8,
      uint32_t(Marker | (info.rank - 1) | uint32_t(info.element) << 4 |
               swizzle << 8 | uint32_t(info.nanFill) << 10));
  for (unsigned i = 0; i < 4; ++i) {
    uint64_t stride = i + 1 < info.rank ? info.strides[i + 1] / 16 : 0;
    put(bytes, 12 + 4 * i, uint32_t(stride));
    bytes[28 + i] = stride >> 32;
  }
  for (unsigned i = 0; i < 5; ++i) {
    put(bytes, 32 + 4 * i, uint32_t(i < info.rank ? info.dims[i] - 1 : 0));
    bytes[55 + i] = i < info.rank ? info.box[i] - 1 : 0;
  }
  return bytes;
}

Expected<TensorMapInfo>
mlir::attn::sim::decodeTensorMap(llvm::ArrayRef<uint8_t> bytes) {
  if (bytes.size() != 128)
    return llvm::createStringError("expected 128 bytes of a tensor map, got " +
                                   Twine(bytes.size()));
  uint32_t flags = get<uint32_t>(bytes, 8);
  if ((flags & 0xfff00000) != Marker)
    return llvm::createStringError(
        "expected a tensor map that the simulator encoded");
  TensorMapInfo info;
  info.address = get<uint64_t>(bytes, 0);
  info.rank = (flags & 7) + 1;
  info.element = TensorMapElement(flags >> 4 & 15);
  static const unsigned spans[] = {0, 32, 64, 128};
  info.swizzleBytes = spans[flags >> 8 & 3];
  info.nanFill = flags >> 10 & 1;
  if (info.rank > 5 || info.element > TensorMapElement::TF32)
    return llvm::createStringError(
        "expected a tensor map that the simulator encoded");
  for (unsigned i = 0; i < info.rank; ++i) {
    info.dims[i] = uint64_t(get<uint32_t>(bytes, 32 + 4 * i)) + 1;
    info.box[i] = uint32_t(bytes[55 + i]) + 1;
    if (i)
      info.strides[i] = (uint64_t(get<uint32_t>(bytes, 8 + 4 * i)) |
                         uint64_t(bytes[27 + i]) << 32) *
                        16;
  }
  return info;
}
