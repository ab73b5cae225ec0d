//===- NamedLayouts.h - Fragments of the matrix instructions ----*- C++ -*-===//
//
// The register layouts that instructions prescribe, as TileLayouts over whole
// tiles. Formulas are those of the PTX ISA, "Matrix Fragments for mma.m16n8k16"
// and the sections beside it; unit tests compare each with a typed table.
//
// Conventions:
// - A tile: (m, k) = (dim0, dim1). B tile: (k, n). Accumulator: (m, n).
// - Warps form a grid of warpsM x warpsN, warp = wm + warpsM * wn. Warp wm has
//   the rows 16*wm ... 16*wm+15 of every 16*warpsM rows; warp wn has 8 of every
//   8*warpsN columns. Operands are copies along the other grid dimension.
// - Repetitions: accumulators n first, then m; A operands k first, then m; B
//   operands k first, then n. So the accumulator of one product, read as A
//   operand of the next, has every element in the register where it is
//   (accumulatorAsOperandA).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_NAMEDLAYOUTS_H
#define ATTN_LAYOUT_NAMEDLAYOUTS_H

#include "attn/Layout/TileLayout.h"

namespace mlir::attn {

/// A grid of warps over the accumulator: powers of two up to 32, or any number
/// up to 32 along m with one along n. With `copies`, a power of two beside
/// powers of two, there are so many grids, and each has all of the tile: warp =
/// wm + warpsM * wn + warpsM * warpsN * copy.
struct WarpGrid {
  unsigned m = 1;
  unsigned n = 1;
  unsigned copies = 1;
  /// Of accumulators: warp wn has one run of columns, a power of two, in place
  /// of 8 of every 8*warpsN.
  bool columnRuns = false;
  /// Of accumulators, with one warp along n: register 4u+2h+b of a unit of 16
  /// columns is column 4(l%4) + 2b + u.
  bool columnQuads = false;

  unsigned getWarps() const { return m * n * copies; }
};

/// C and D of mma.sync m16n8k*, f32 or f16: register 2h+b is row l/4 + 8h,
/// column 2(l%4) + b. m is a multiple of 16*grid.m (just that, where grid.m is
/// no power of two), n of 8*grid.n.
llvm::Expected<TileLayout> mmaAccumulator(int64_t m, int64_t n, WarpGrid grid);
/// A of mma.sync for elements of 16 or 8 bits; k is a multiple of shapeK, which
/// is 8 or 16 for 16-bit elements and 16 or 32 for 8-bit elements.
llvm::Expected<TileLayout> mmaOperandA(int64_t m, int64_t k,
                                       unsigned elementBits, unsigned shapeK,
                                       WarpGrid grid);
/// A of mma.sync m16n8k16 for 16-bit elements whose contraction is in the order
/// of 8-bit elements that ldmatrix loads: register 4u+2h+b is k 4(l%4) + 2u + b
/// of every 16.
llvm::Expected<TileLayout> mmaQuadOperandA(int64_t m, int64_t k, WarpGrid grid);
/// B of mma.sync, as (k, n).
llvm::Expected<TileLayout> mmaOperandB(int64_t k, int64_t n,
                                       unsigned elementBits, unsigned shapeK,
                                       WarpGrid grid);
/// The largest shapeK that divides k: 16 or 8 for 16-bit elements, 32 or 16 for
/// 8-bit elements; 0 when none does.
unsigned mmaShapeK(int64_t k, unsigned elementBits);

/// For each register of the A operand layout, the accumulator register that
/// holds its element in the same thread; nothing when elements would have to
/// move between threads. For 16-bit elements the map is the identity.
std::optional<llvm::SmallVector<unsigned>>
accumulatorAsOperandA(const TileLayout &accumulator, const TileLayout &operand);

/// Thread-block layout for plain copies: each thread holds `perThread` elements
/// (powers of two) for each dimension; lanes and warps fill the shape in
/// `order` (order[0] is the fastest dimension), and what is left is repeated.
/// Along each dimension lanes and warps take at most the power of two that
/// divides the extent; what finds no room holds copies.
llvm::Expected<TileLayout> blocked(llvm::ArrayRef<int64_t> shape,
                                   llvm::ArrayRef<int64_t> perThread,
                                   unsigned numWarps,
                                   llvm::ArrayRef<unsigned> order);

/// D of wgmma.mma_async m64nNk*: four warps for each warpgroup, 16 rows each;
/// register 4j+2h+b is row l/4 + 8h, column 8j + 2(l%4) + b. m is a multiple of
/// 64*warpgroups (stacked along m; just that, where they are no power of two),
/// n of 8.
llvm::Expected<TileLayout> wgmmaAccumulator(int64_t m, int64_t n,
                                            unsigned warpgroups);
/// A in registers of wgmma.mma_async: k16 for 16-bit, k32 for 8-bit elements.
llvm::Expected<TileLayout>
wgmmaOperandA(int64_t m, int64_t k, unsigned elementBits, unsigned warpgroups);

/// How warps transpose a k x n buffer of 8-bit elements, seen as 16-bit pairs
/// of neighbours: ldmatrix.trans gives `source`, k x (n / 2) pairs, and
/// stmatrix takes `dest`, n x (k / 2) pairs. Each 16-byte row of a matrix of
/// `dest` holds 16 values of k, of which a thread has 2t, 2t+1, 8+2t and 8+2t+1
/// in `source` (t = lane % 4) and puts them at 4t to 4t+3. Registers of both
/// come in units of 8, in one order: source register 4q + 2u + j is row 16q +
/// 8u + 2t + j of a unit and holds columns 2g and 2g+1 (g = lane / 4); dest
/// register 4q + 2s + j is row 8s + g of the unit in the order of
/// interleavedRows: it holds column 2g for s = 0 in the lower half of the lanes
/// and for s = 1 in the upper one, else 2g + 1. k is a multiple of 32 and n of
/// 16; an error if `numWarps` (a power of two) cannot share them.
struct TransposeTiles {
  TileLayout source, dest;
};
llvm::Expected<TransposeTiles> transposeTiles(int64_t k, int64_t n,
                                              unsigned numWarps);

/// A shape of tcgen05.ld and tcgen05.st: which cells of tensor memory a lane's
/// registers are (PTX ISA, "Data Movement Shape").
enum class TmemShape { S32x32b, S16x64b, S16x128b, S16x256b, S16x32bx2 };

/// All shapes.
llvm::ArrayRef<TmemShape> getTmemShapes();
/// The shape's name in an instruction, such as "16x256b".
llvm::StringRef stringifyTmemShape(TmemShape shape);
std::optional<TmemShape> symbolizeTmemShape(llvm::StringRef name);
/// TMEM lanes that one instruction of the shape reaches: 32 or 16.
unsigned getTmemLanes(TmemShape shape);

/// A tile of m x n words of 32 bits in the registers of tcgen05.ld and st. The
/// four warps of a warpgroup have m / 4 rows each: 32, which is all lanes of
/// tensor memory that a warp reaches, or 16, of which 32x32b has none.
/// Shapes of 16 lanes take two instructions for 32 rows; their registers take
/// turns. n is a multiple of 1, 2, 4, 8 or 2, in the order of the shapes. Half
/// of the lanes of 16x32bx2 have the columns behind those of the others, as far
/// away as the largest power of two says that fits twice into n.
llvm::Expected<TileLayout> tmemRegisters(TmemShape shape, int64_t m, int64_t n);
/// A tile of 64 x n words in the registers of 32x32b where half of each 128
/// columns, or of fewer, are 64 lanes behind the others: two warps have 32 rows
/// of each.
llvm::Expected<TileLayout> tmemHalfRegisters(int64_t n);

} // namespace mlir::attn

#endif // ATTN_LAYOUT_NAMEDLAYOUTS_H
