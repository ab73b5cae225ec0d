//===- TensorMap.cpp - Tensor maps for bulk tensor copies -----------------===//
//
//   byte     content
//   0-7      address
//   8-11     bits 4-6 rank - 1, 7-10 element type, 11-12 interleave, 13-14
//            swizzle, 15 fill with NaN, 16 tf32, 17-18 L2 promotion
//   12-27    strides of dimensions 1 to 4, bits 4 to 35
//   28-29    their bits 36 to 39
//   32-51    sizes - 1
//   52-53    element strides - 1, three bits each
//   55-59    box - 1
//   64-67    bytes of the box, element strides dividing without remainder
//   72-75    bytes of the swizzle's pattern
//
//===----------------------------------------------------------------------===//

#include "attn/Simulator/Async/TensorMap.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::MutableArrayRef;
using llvm::Twine;
namespace endian = llvm::support::endian;

/// Bits of the flag word that stand for something known. Bits 1 and 21 are set
/// in maps of newer drivers that mean the same without them.
static constexpr uint32_t KnownFlags = 0x0027fff2;

namespace {
/// The element types, in their order, with their number in PTX; tf32 is a flag
/// beside f32.
struct ElementCode {
  TensorMapElement element;
  unsigned code;
  bool tf32;
};
} // namespace
static const ElementCode elementCodes[] = {
    {TensorMapElement::U8, 0, false},
    {TensorMapElement::U16, 1, false},
    {TensorMapElement::U32, 2, false},
    {TensorMapElement::S32, 3, false},
    {TensorMapElement::U64, 4, false},
    {TensorMapElement::S64, 5, false},
    {TensorMapElement::F16, 6, false},
    {TensorMapElement::F32, 7, false},
    {TensorMapElement::F64, 9, false},
    {TensorMapElement::BF16, 10, false},
    {TensorMapElement::F32Ftz, 8, false},
    {TensorMapElement::TF32, 7, true},
    {TensorMapElement::TF32Ftz, 8, true},
    {TensorMapElement::B4x16, 13, false},
    {TensorMapElement::B4x16P64, 14, false},
    {TensorMapElement::B6x16P32, 15, false},
};

unsigned mlir::attn::sim::getElementBits(TensorMapElement element) {
  switch (element) {
  case TensorMapElement::U8:
    return 8;
  case TensorMapElement::U16:
  case TensorMapElement::F16:
  case TensorMapElement::BF16:
    return 16;
  case TensorMapElement::U64:
  case TensorMapElement::S64:
  case TensorMapElement::F64:
    return 64;
  case TensorMapElement::B4x16:
  case TensorMapElement::B4x16P64:
    return 4;
  case TensorMapElement::B6x16P32:
    return 6;
  default:
    return 32;
  }
}

uint64_t mlir::attn::sim::getSharedBytes(TensorMapElement element,
                                         uint64_t count) {
  if (element == TensorMapElement::B4x16P64 ||
      element == TensorMapElement::B6x16P32)
    return count;
  return count * getElementBits(element) / 8;
}

static Error failMap(const Twine &message) {
  return llvm::createStringError("tensor map: " + message);
}

static Error checkMap(const TensorMapInfo &info) {
  unsigned bits = getElementBits(info.element);
  // Padded elements are read in larger units.
  bool padded = info.element == TensorMapElement::B4x16P64 ||
                info.element == TensorMapElement::B6x16P32;
  unsigned unit = padded ? 32 : 16;
  if (info.rank < 1 || info.rank > 5)
    return failMap("expected a rank between 1 and 5, got " + Twine(info.rank));
  if (!info.address || info.address % unit)
    return failMap("expected a base address that is a multiple of " +
                   Twine(unit) + " and not 0, got " + Twine(info.address));
  if (info.swizzleBytes != 0 && info.swizzleBytes != 32 &&
      info.swizzleBytes != 64 && info.swizzleBytes != 128)
    return failMap("expected a swizzle of 0, 32, 64 or 128 bytes, got " +
                   Twine(info.swizzleBytes));
  for (unsigned i = 0; i < info.rank; ++i) {
    if (info.dims[i] < 1 || info.dims[i] > (uint64_t(1) << 32))
      return failMap("expected a size between 1 and 2^32 in dimension " +
                     Twine(i) + ", got " + Twine(info.dims[i]));
    if (info.box[i] < 1 || info.box[i] > 256)
      return failMap("expected a box between 1 and 256 in dimension " +
                     Twine(i) + ", got " + Twine(info.box[i]));
    if (info.elementStrides[i] < 1 || info.elementStrides[i] > 8)
      return failMap(
          "expected an element stride between 1 and 8 in dimension " +
          Twine(i) + ", got " + Twine(info.elementStrides[i]));
    if (i && (info.strides[i] % unit || info.strides[i] >= (uint64_t(1) << 40)))
      return failMap("expected a stride that is a multiple of " + Twine(unit) +
                     " below 2^40 in dimension " + Twine(i) + ", got " +
                     Twine(info.strides[i]));
  }
  if (padded && (info.box[0] != 128 || info.dims[0] % 128))
    return failMap("expected an inner box of 128 padded elements in rows of a "
                   "multiple of 128, got " +
                   Twine(info.box[0]) + " in " + Twine(info.dims[0]));
  uint64_t inner = getSharedBytes(info.element, info.box[0]);
  if (inner % 16 || info.box[0] * bits % 8)
    return failMap("expected inner box bytes that are a multiple of 16, got " +
                   Twine(inner));
  if (info.swizzleBytes && inner > info.swizzleBytes)
    return failMap("expected an inner box of at most " +
                   Twine(info.swizzleBytes) + " bytes, got " + Twine(inner));
  return Error::success();
}

static void putStride(MutableArrayRef<uint8_t> bytes, unsigned i,
                      uint64_t value) {
  endian::write32le(&bytes[12 + 4 * i], uint32_t(value >> 4));
  unsigned shift = 4 * (i % 2);
  uint8_t &high = bytes[28 + i / 2];
  high = (high & ~(15 << shift)) | (value >> 36 & 15) << shift;
}
static void putElementStride(MutableArrayRef<uint8_t> bytes, unsigned i,
                             uint64_t value) {
  uint16_t word = endian::read16le(&bytes[52]);
  word = (word & ~(7 << (3 * i))) | (value - 1) << (3 * i);
  endian::write16le(&bytes[52], word);
}
static void putFlags(MutableArrayRef<uint8_t> bytes, unsigned bit,
                     unsigned width, uint32_t value) {
  uint32_t mask = ((1u << width) - 1) << bit;
  uint32_t word = endian::read32le(&bytes[8]);
  endian::write32le(&bytes[8], (word & ~mask) | (value << bit & mask));
}
static void putElementType(MutableArrayRef<uint8_t> bytes,
                           TensorMapElement element) {
  const ElementCode &e = elementCodes[unsigned(element)];
  putFlags(bytes, 7, 4, e.code);
  putFlags(bytes, 16, 1, e.tf32);
}

Expected<std::array<uint8_t, 128>>
mlir::attn::sim::encodeTensorMap(const TensorMapInfo &info) {
  if (Error error = checkMap(info))
    return std::move(error);
  std::array<uint8_t, 128> bytes{};
  endian::write64le(&bytes[0], info.address);
  putFlags(bytes, 4, 3, info.rank - 1);
  putElementType(bytes, info.element);
  unsigned swizzle =
      info.swizzleBytes ? llvm::Log2_32(info.swizzleBytes) - 4 : 0;
  putFlags(bytes, 13, 2, swizzle);
  putFlags(bytes, 15, 1, info.nanFill);
  uint64_t boxElements = 1;
  for (unsigned i = 0; i < info.rank; ++i) {
    if (i)
      putStride(bytes, i - 1, info.strides[i]);
    endian::write32le(&bytes[32 + 4 * i], uint32_t(info.dims[i] - 1));
    putElementStride(bytes, i, info.elementStrides[i]);
    bytes[55 + i] = info.box[i] - 1;
    boxElements *= info.box[i] / info.elementStrides[i];
  }
  endian::write32le(&bytes[64],
                    uint32_t(getSharedBytes(info.element, boxElements)));
  endian::write32le(&bytes[72], swizzle ? 8 * info.swizzleBytes : 16);
  return bytes;
}

Expected<TensorMapInfo>
mlir::attn::sim::decodeTensorMap(ArrayRef<uint8_t> bytes) {
  if (bytes.size() != 128)
    return llvm::createStringError("expected 128 bytes of a tensor map, got " +
                                   Twine(bytes.size()));
  uint32_t flags = endian::read32le(&bytes[8]);
  if (flags & ~KnownFlags)
    return failMap("expected no flags but the known ones, got " +
                   Twine::utohexstr(flags & ~KnownFlags));
  if (flags >> 11 & 3)
    return failMap("expected a layout without interleaving");
  TensorMapInfo info;
  info.address = endian::read64le(&bytes[0]);
  info.rank = (flags >> 4 & 7) + 1;
  const ElementCode *code = llvm::find_if(elementCodes, [&](const auto &e) {
    return e.code == (flags >> 7 & 15) && e.tf32 == bool(flags >> 16 & 1);
  });
  if (code == std::end(elementCodes))
    return failMap("expected a known element type, got " +
                   Twine(flags >> 7 & 15));
  info.element = code->element;
  unsigned swizzle = flags >> 13 & 3;
  info.swizzleBytes = swizzle ? 16 << swizzle : 0;
  info.nanFill = flags >> 15 & 1;
  for (unsigned i = 0; i < std::min(info.rank, 5u); ++i) {
    info.dims[i] = uint64_t(endian::read32le(&bytes[32 + 4 * i])) + 1;
    info.box[i] = uint32_t(bytes[55 + i]) + 1;
    info.elementStrides[i] = (endian::read16le(&bytes[52]) >> (3 * i) & 7) + 1;
    if (i)
      info.strides[i] =
          (uint64_t(endian::read32le(&bytes[8 + 4 * i])) << 4) |
          uint64_t(bytes[28 + (i - 1) / 2] >> (4 * ((i - 1) % 2)) & 15) << 36;
  }
  if (Error error = checkMap(info))
    return std::move(error);
  return info;
}

Error mlir::attn::sim::replaceTensorMapField(MutableArrayRef<uint8_t> bytes,
                                             TensorMapField field,
                                             unsigned ordinal, uint64_t value) {
  auto check = [&](unsigned dims, uint64_t least, uint64_t most) -> Error {
    if (ordinal >= dims)
      return failMap("expected a dimension below " + Twine(dims) + ", got " +
                     Twine(ordinal));
    if (value < least || value > most)
      return failMap("expected a field value between " + Twine(least) +
                     " and " + Twine(most) + ", got " + Twine(value));
    return Error::success();
  };
  auto put = [&](Error problem, llvm::function_ref<void()> write) -> Error {
    if (problem)
      return problem;
    write();
    return Error::success();
  };
  switch (field) {
  case TensorMapField::GlobalAddress:
    endian::write64le(&bytes[0], value);
    return Error::success();
  case TensorMapField::Rank:
    return put(check(1, 0, 4), [&] { putFlags(bytes, 4, 3, value); });
  case TensorMapField::BoxDim:
    return put(check(5, 1, 256), [&] { bytes[55 + ordinal] = value - 1; });
  case TensorMapField::GlobalDim:
    return put(check(5, 1, uint64_t(1) << 32), [&] {
      endian::write32le(&bytes[32 + 4 * ordinal], uint32_t(value - 1));
    });
  case TensorMapField::GlobalStride:
    return put(check(4, 0, (uint64_t(1) << 40) - 1),
               [&] { putStride(bytes, ordinal, value); });
  case TensorMapField::ElementStride:
    return put(check(5, 1, 8),
               [&] { putElementStride(bytes, ordinal, value); });
  case TensorMapField::ElementType:
    return put(check(1, 0, 15), [&] {
      // PTX counts tf32 as types 11 and 12.
      putFlags(bytes, 7, 4, value == 11 || value == 12 ? value - 4 : value);
      putFlags(bytes, 16, 1, value == 11 || value == 12);
    });
  case TensorMapField::Interleave:
    return put(check(1, 0, 2), [&] { putFlags(bytes, 11, 2, value); });
  case TensorMapField::SwizzleMode:
    return put(check(1, 0, 3), [&] { putFlags(bytes, 13, 2, value); });
  case TensorMapField::FillMode:
    return put(check(1, 0, 1), [&] { putFlags(bytes, 15, 1, value); });
  }
  return Error::success();
}
