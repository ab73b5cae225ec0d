//===- TensorMemoryLayout.h - Buffers in tensor memory ----------*- C++ -*-===//
//
// Where an element of a matrix lives in tensor memory, which has 128 lanes of
// 512 columns of 32 bits (PTX ISA, "Tensor Memory Addressing"). The accumulator
// of a product of M = 128 has row r in lane r; that of M = 64 has 16 rows in
// the first 16 lanes of each 32 (PTX ISA, "Data path layout organization", D
// and F). That of M = 128 in a pair has 64 rows in each CTA, and half of the
// columns of each row 64 lanes behind the others (B). Columns of 32 bits follow
// each other; narrower elements are packed, the lower columns in the lower
// bits, as operand a of tcgen05.mma is.
//
// Like a SharedLayout it is a power-of-two unit, a LinearLayout from (dim0,
// dim1) to (lane, byte), repeated along dim1, one column further each time.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_TENSORMEMORYLAYOUT_H
#define ATTN_LAYOUT_TENSORMEMORYLAYOUT_H

#include "attn/Layout/NamedLayouts.h"

namespace mlir::attn {

/// Lanes and columns of tensor memory (PTX ISA, "Tensor Memory Addressing").
inline constexpr int64_t kTmemLanes = 128;
inline constexpr int64_t kTmemColumns = 512;
/// Lanes that a warp reaches: those from 32 times its number modulo 4 on.
inline constexpr int64_t kTmemWarpLanes = 32;

/// Columns of a pair's product of M = 128 of which one CTA's operand b has the
/// first half and the other one's the second.
inline constexpr int64_t kHalvedColumns = 128;

/// A byte of tensor memory, relative to a buffer's first column.
struct TmemCell {
  int64_t lane = 0;
  int64_t column = 0;
  int64_t byte = 0;

  bool operator==(const TmemCell &other) const {
    return lane == other.lane && column == other.column && byte == other.byte;
  }
};

/// The placement of a matrix in tensor memory.
class TensorMemoryLayout {
public:
  TensorMemoryLayout() = default;

  /// rows x cols elements of 32, 16 or 8 bits. rows is 64 or 128; rows of
  /// elements that are packed fill whole columns.
  static llvm::Expected<TensorMemoryLayout> get(int64_t rows, int64_t cols,
                                                unsigned elementBits);
  /// 64 rows of `cols` elements of 32 bits, a multiple of kHalvedColumns: of
  /// each so many the second half lies 64 lanes behind the first one. Or a part
  /// of these: a power of two, of which each group of lanes has a half.
  static llvm::Expected<TensorMemoryLayout> getHalves(int64_t cols);

  /// (dim0, dim1) -> (lane, byte).
  const LinearLayout &unit() const { return unitLayout; }
  const Coords &shape() const { return extents; }
  unsigned elementBits() const { return bits; }
  /// Elements in a column of a lane: 1, 2 or 4.
  int64_t elementsPerColumn() const { return 32 / bits; }
  /// Columns of 32 bits.
  int64_t columns() const {
    return extents[1] / elementsPerColumn() / (half ? 2 : 1);
  }
  /// Columns of a row that follow each other in lanes next to each other.
  int64_t neighbours() const { return half ? half : extents[1]; }
  /// Where an element lies.
  TmemCell cell(int64_t row, int64_t col) const;

  void print(llvm::raw_ostream &os) const;
  std::string str() const;

private:
  LinearLayout unitLayout;
  Coords extents;
  unsigned bits = 0;
  /// Columns side by side in a lane of which others follow 64 lanes behind; 0
  /// where none do. The unit is that of the former then.
  int64_t half = 0;
};

/// One tcgen05.ld or tcgen05.st of a warp.
struct TmemAccess {
  /// Repetitions of the shape: the number behind x.
  unsigned count = 1;
  /// Relative to the first lane that the warp reaches, 0 or 16, and to the
  /// buffer's first column.
  int64_t lane = 0;
  int64_t column = 0;
  /// The tile's words of 32 bits in the order of the instruction's registers:
  /// word w is the tile's registers from w * elementsPerWord on.
  llvm::SmallVector<unsigned> words;
};

/// All instructions that move a tile.
struct TmemPlan {
  TmemShape shape = TmemShape::S32x32b;
  unsigned elementsPerWord = 1;
  /// Columns between the halves of 16x32bx2; 0 for other shapes.
  int64_t split = 0;
  llvm::SmallVector<TmemAccess> accesses;
};

/// Divides the layout of a tile by the shapes' registers, and finds the one
/// whose multiple it is, in as few instructions as there are powers of two of
/// neighbouring columns. Nothing is moved between threads: an error says so
/// when no shape has each element in the thread that holds it.
llvm::Expected<TmemPlan> planTmemAccess(const TileLayout &tile,
                                        const TensorMemoryLayout &buffer);

} // namespace mlir::attn

#endif // ATTN_LAYOUT_TENSORMEMORYLAYOUT_H
