//===- MatrixAccess.h - ldmatrix and stmatrix from layouts ------*- C++ -*-===//
//
// Decides whether the fragments of a register tile can be moved by ldmatrix or
// stmatrix (8x8 matrices of 16-bit elements), with or without .trans, and lists
// the instructions. A matrix row is 16 contiguous bytes of the buffer. Without
// .trans lane l gets the 4 bytes l%4 of row l/4; with it, the elements of
// column l/4 in the rows 2*(l%4) and 2*(l%4)+1 (PTX ISA, ldmatrix).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_MATRIXACCESS_H
#define ATTN_LAYOUT_MATRIXACCESS_H

#include "attn/Layout/Access.h"

namespace mlir::attn {

/// One ldmatrix or stmatrix of a warp.
struct MatrixAccess {
  /// Matrices: 1, 2 or 4.
  unsigned num = 4;
  /// num * MatrixPlan::elementsPerWord tile registers: those of 32-bit word j
  /// (matrix j) are at [j * elementsPerWord, (j + 1) * elementsPerWord), low
  /// bits first.
  llvm::SmallVector<unsigned, 16> registers;
  /// Row address that each lane supplies. Lanes that the instruction does not
  /// read (num < 4) have valid addresses too.
  AccessAddress address;
};

/// All ldmatrix (or stmatrix) instructions of a register tile.
struct MatrixPlan {
  bool trans = false;
  unsigned elementsPerWord = 2;
  llvm::SmallVector<AddressForm, 2> forms;
  /// In the order of the lowest register that they fill.
  llvm::SmallVector<MatrixAccess> accesses;
  unsigned warpBroadcastMask = 0;
  unsigned blockBroadcastMask = 0;

  /// Index of the access that fills a register, and the word and element inside
  /// its result.
  struct Source {
    unsigned access = 0;
    unsigned word = 0;
    unsigned element = 0;
  };
  std::optional<Source> sourceOf(unsigned reg) const;
};

/// Plans ldmatrix for loading `tile` from `buffer` (a view with the tile's
/// dimension order, so a transposed one for K as B operand), or stmatrix for
/// the other direction: both move the same fragments. An error says why the
/// tile cannot be moved like that (use planSharedAccess then).
llvm::Expected<MatrixPlan> planMatrixAccess(const TileLayout &tile,
                                            const SharedLayout &buffer,
                                            unsigned maxMatrices = 4);

} // namespace mlir::attn

#endif // ATTN_LAYOUT_MATRIXACCESS_H
