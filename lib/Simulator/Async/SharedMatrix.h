//===- SharedMatrix.h - Products' operands in shared memory -----*- C++ -*-===//
//
// Where element (row, k) of an operand lies. Swizzles act on the absolute
// shared address, less 128 bytes for each unit of the base offset, so a
// descriptor may start inside of a swizzle span.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_ASYNC_SHAREDMATRIX_H
#define ATTN_LIB_SIMULATOR_ASYNC_SHAREDMATRIX_H

#include "../Machine/AddressSpace.h"
#include "../Machine/Cluster.h"
#include "../PTX/Types.h"

namespace mlir::attn::sim {

struct MatrixDescriptor {
  uint32_t start = 0; ///< absolute shared address without rank bits
  uint32_t leading = 0, stride = 0; ///< bytes
  uint32_t base = 0;                ///< base offset, in bytes
  unsigned span = 0;                ///< 0, 32, 64, 128 bytes
  bool atom32 = false;              ///< 128-byte swizzle with 32-byte atoms
  bool valid = true;

  /// wgmma's fields.
  static MatrixDescriptor wgmma(uint64_t d) {
    MatrixDescriptor m = common(d);
    static const unsigned spans[] = {0, 128, 64, 32};
    m.span = spans[d >> 62];
    return m;
  }
  /// tcgen05's fields: three swizzle bits and a version.
  static MatrixDescriptor tcgen05(uint64_t d) {
    MatrixDescriptor m = common(d);
    switch (d >> 61) {
    case 0:
      m.span = 0;
      break;
    case 1:
      m.span = 128;
      m.atom32 = true;
      break;
    case 2:
      m.span = 128;
      break;
    case 4:
      m.span = 64;
      break;
    case 6:
      m.span = 32;
      break;
    default:
      m.valid = false;
      break;
    }
    m.valid &= (d >> 46 & 7) == 1;
    return m;
  }

  uint32_t swizzle(uint32_t address) const {
    uint32_t pattern = address - base;
    if (atom32)
      return address ^ (pattern >> 2 & 0x60);
    switch (span) {
    case 32:
      return address ^ (pattern >> 3 & 0x10);
    case 64:
      return address ^ (pattern >> 3 & 0x30);
    case 128:
      return address ^ (pattern >> 3 & 0x70);
    default:
      return address;
    }
  }

  /// Absolute address of the byte at `kByte` of row `row`, K-major.
  uint32_t kMajor(unsigned row, unsigned kByte) const {
    if (!span)
      return start + row / 8 * stride + row % 8 * 16 + kByte / 16 * leading +
             kByte % 16;
    // Inside of the first span: steps along K move the start.
    return swizzle(start + row / 8 * stride + row % 8 * span + kByte % span +
                   kByte / span * leading);
  }
  /// Absolute address of element `row` (in bytes along MN) at k, MN-major.
  uint32_t mnMajor(unsigned rowByte, unsigned k) const {
    if (!span)
      return start + rowByte / 16 * stride + k / 8 * leading + k % 8 * 16 +
             rowByte % 16;
    return swizzle(start + rowByte / span * leading + k / 8 * stride +
                   k % 8 * span + rowByte % span);
  }

private:
  static MatrixDescriptor common(uint64_t d) {
    MatrixDescriptor m;
    m.start = (d & 0x3fff) << 4;
    m.leading = (d >> 16 & 0x3fff) << 4;
    m.stride = (d >> 32 & 0x3fff) << 4;
    m.base = (d >> 49 & 7) << 7;
    return m;
  }
};

/// An operand read into floats, with the cells that were never written.
struct MatrixTile {
  unsigned rows = 0, k = 0;
  std::vector<float> values;      ///< in the order that was asked for
  std::vector<uint8_t> undefined; ///< by row
  bool anyUndefined = false;
};

/// The order of a tile's values: those of a row, or those of a k side by side.
enum class TileOrder { ByRow, ByK };

/// Reads rows [firstRow, firstRow + rows) of an operand from a CTA's shared
/// memory. False when it leaves the memory. Sixteen elements of 4 or 6 bits are
/// padded to 16 bytes, unless `dense` says that 4 bits are not.
bool readMatrix(const Cta &cta, const MatrixDescriptor &d, Type type,
                bool mnMajor, unsigned firstRow, unsigned rows, unsigned k,
                MatrixTile &tile, TileOrder order, bool dense = false);

/// Calls fn(offset) for each 16-byte chunk that the operand covers.
template <typename Fn>
void forChunks(const MatrixDescriptor &d, unsigned elementBytes, bool mnMajor,
               unsigned firstRow, unsigned rows, unsigned k, Fn &&fn) {
  if (mnMajor) {
    for (unsigned i = 0; i < k; ++i)
      for (unsigned b = firstRow * elementBytes,
                    e = (firstRow + rows) * elementBytes;
           b < e; b += 16)
        fn(d.mnMajor(b, i) - SharedBase);
  } else {
    for (unsigned r = firstRow; r < firstRow + rows; ++r)
      for (unsigned b = 0; b < k * elementBytes; b += 16)
        fn(d.kMajor(r, b) - SharedBase);
  }
}

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_ASYNC_SHAREDMATRIX_H
