//===- UnitBases.h - Bases of a repeated unit -------------------*- C++ -*-===//

#ifndef ATTN_LIB_LAYOUT_UNITBASES_H
#define ATTN_LIB_LAYOUT_UNITBASES_H

#include "attn/Layout/TileLayout.h"

namespace mlir::attn {

/// Bases of a two-dimensional unit, axis by axis.
struct UnitBases {
  llvm::SmallVector<Coords> registers;
  llvm::SmallVector<Coords> lanes;
  llvm::SmallVector<Coords> warps;

  llvm::Expected<TileLayout> build(int64_t rows, int64_t cols,
                                   llvm::ArrayRef<Repetition> reps,
                                   unsigned numWarps) const {
    llvm::Expected<LinearLayout> unit =
        LinearLayout::get({{"dim0", rows}, {"dim1", cols}});
    if (!unit)
      return unit.takeError();
    if (llvm::Error error = unit->addAxis(kRegisterAxis, registers))
      return std::move(error);
    if (llvm::Error error = unit->addAxis(kLaneAxis, lanes))
      return std::move(error);
    if (llvm::Error error = unit->addAxis(kWarpAxis, warps))
      return std::move(error);
    return TileLayout::get(*unit, reps, numWarps);
  }
};

} // namespace mlir::attn

#endif // ATTN_LIB_LAYOUT_UNITBASES_H
