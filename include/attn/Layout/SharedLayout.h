//===- SharedLayout.h - Buffers in shared memory ----------------*- C++ -*-===//
//
// Where an element of a buffer lives in shared memory. Like a TileLayout, it is
// a power-of-two unit, here a LinearLayout from (dim0, dim1, ...) to an element
// offset, repeated any number of times along each dimension with a stride.
//
// The swizzled family is the one that TMA, wgmma and tcgen05 use and that
// cp.async and ldmatrix are free to use: spans of 32, 64 or 128 bytes of a row,
// rows after each other inside a span, 16-byte chunks permuted by XOR with bits
// 7..9 of the address (PTX ISA, tensor swizzling modes):
//   offset = (col / span) * (rows * span) + row * span + swizzle(row % 8,
//   col % span)
//
// A ring of slots is the same layout at multiples of slotBytes.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_SHAREDLAYOUT_H
#define ATTN_LAYOUT_SHAREDLAYOUT_H

#include "attn/Layout/LinearLayout.h"

namespace mlir::attn {

inline constexpr llvm::StringLiteral kOffsetDim("offset");

/// Repetitions of a shared unit along one dimension.
struct SharedRepetition {
  int64_t count = 1;
  /// In elements.
  int64_t stride = 0;

  bool operator==(const SharedRepetition &other) const {
    return count == other.count && stride == other.stride;
  }
};

/// The placement of a buffer's elements in shared memory.
class SharedLayout {
public:
  SharedLayout() = default;

  /// A layout from its unit (axes dim0, dim1, ... to dimension offset, in
  /// elements), one repetition for each dimension and the element size in bits
  /// (a multiple of 8).
  static llvm::Expected<SharedLayout>
  get(const LinearLayout &unit, llvm::ArrayRef<SharedRepetition> repetitions,
      unsigned elementBits);

  /// Row-major rows x cols with the TMA swizzle of the given span: 0, 32, 64 or
  /// 128 bytes. A swizzled layout needs cols to be a multiple of the span. With
  /// several spans side by side the rows are kept at a multiple of 8, so that
  /// every span starts at an atom. Span 0 is plain row-major with rows
  /// `pitch` elements apart (0: cols).
  static llvm::Expected<SharedLayout> swizzled(int64_t rows, int64_t cols,
                                               unsigned elementBits,
                                               unsigned spanBytes,
                                               int64_t pitch = 0);
  /// The swizzled layout with the widest span that divides a row. Rows that no
  /// span divides are kept at an odd number of 16-byte chunks, which is free of
  /// conflicts too; a pitch is padded where it needs to be.
  static llvm::Expected<SharedLayout> choose(int64_t rows, int64_t cols,
                                             unsigned elementBits);
  /// The span that choose takes: 128, 64, 32 or 0.
  static unsigned chooseSpan(int64_t cols, unsigned elementBits);
  /// One-dimensional, contiguous.
  static llvm::Expected<SharedLayout> linear(int64_t size,
                                             unsigned elementBits);

  const LinearLayout &unit() const { return unitLayout; }
  llvm::ArrayRef<SharedRepetition> repetitions() const { return reps; }
  unsigned rank() const { return extents.size(); }
  const Coords &shape() const { return extents; }
  Coords unitShape() const;
  unsigned elementBits() const { return bits; }
  unsigned elementBytes() const { return bits / 8; }
  /// The swizzle span in bytes, 0 when the unit is not a TMA swizzle.
  unsigned spanBytes() const { return span; }

  /// Byte offset of an element from the buffer's base (slot 0).
  int64_t offset(llvm::ArrayRef<int64_t> coords) const;
  /// The element at a byte offset; nothing for padding.
  std::optional<Coords> find(int64_t byteOffset) const;
  /// Bytes from the base to the end of the last unit of the whole buffer.
  int64_t sizeBytes() const;
  /// What the base and every slot must be a multiple of, so that XOR on offsets
  /// is XOR on absolute addresses: the bytes of a unit that permutes chunks,
  /// which are 1024, 512 or 256 of a swizzle, else 16.
  unsigned alignment() const;
  /// Dimension along which offsets grow by one element, when there is one.
  std::optional<unsigned> contiguousDim() const;
  /// Elements, aligned to their number, that are contiguous along
  /// contiguousDim everywhere in the layout.
  int64_t contiguousElements() const;

  /// The same memory with neighbours of a row of a swizzled buffer as one
  /// element: half as many columns of twice the bits.
  llvm::Expected<SharedLayout> inPairs() const;
  /// The same memory of a swizzled buffer with its rows in another order: in
  /// every 16, row 8s + r (s < 2, r < 8) is row 2r + s for r < 4 and 2r + 1 - s
  /// for the others. Rows 8s to 8s + 7 then lie in different banks under every
  /// swizzle, as rows of one parity do not. An error if the number of rows is
  /// no multiple of 16.
  llvm::Expected<SharedLayout> interleavedRows() const;
  /// The same memory of a swizzled buffer of 16-bit elements with its columns
  /// in another order: in every 16, column 8h + 2t + i (h, i < 2, t < 4) is
  /// column 4t + 2h + i. What ldmatrix gives thread t of those that share a row
  /// are then four columns in a row. An error for other elements.
  llvm::Expected<SharedLayout> quadColumns() const;
  /// The same memory with dimensions in another order.
  SharedLayout permuted(llvm::ArrayRef<unsigned> order) const;
  /// The same memory with the two dimensions swapped.
  SharedLayout transposed() const { return permuted({1, 0}); }
  /// A column of plain rows, from its first element on; an error for others.
  llvm::Expected<SharedLayout> column() const;
  /// The part that starts at `offsets` and has the shape `sizes`. Offsets stay
  /// relative to the whole buffer's base.
  llvm::Expected<SharedLayout> subview(llvm::ArrayRef<int64_t> offsets,
                                       llvm::ArrayRef<int64_t> sizes) const;
  /// The coordinates of the view's first element in the whole buffer.
  const Coords &viewOffsets() const { return origin; }
  /// A ring of `slots` copies; `slotBytes` apart, or packed as close as the
  /// alignment allows when 0.
  llvm::Expected<SharedLayout> ring(int64_t slots, int64_t slotBytes = 0) const;
  int64_t numSlots() const { return slots; }
  int64_t slotBytes() const { return slotStride; }
  /// Bytes of the whole ring.
  int64_t totalBytes() const;

  bool operator==(const SharedLayout &other) const;
  bool operator!=(const SharedLayout &other) const { return !(*this == other); }

  /// `16-bit {dim0: ... -> offset: 512} * (16 @ 512, 2 @ 8192)`, followed where
  /// they are not the default by `shape (124, 128)`, `origin (0, 64)` and
  /// `slots 2 @ 32768` (in bytes; the strides before are in elements).
  void print(llvm::raw_ostream &os) const;
  std::string str() const;
  static llvm::Expected<SharedLayout> parse(llvm::StringRef text);

private:
  LinearLayout unitLayout;
  llvm::SmallVector<SharedRepetition, 2> reps;
  Coords extents;
  Coords origin;
  unsigned bits = 0;
  unsigned span = 0;
  int64_t slots = 1;
  int64_t slotStride = 0;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os,
                                     const SharedLayout &layout) {
  layout.print(os);
  return os;
}

} // namespace mlir::attn

#endif // ATTN_LAYOUT_SHAREDLAYOUT_H
