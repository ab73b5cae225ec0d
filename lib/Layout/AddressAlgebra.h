//===- AddressAlgebra.h - Addresses from bases and constants ----*- C++ -*-===//

#ifndef ATTN_LIB_LAYOUT_ADDRESSALGEBRA_H
#define ATTN_LIB_LAYOUT_ADDRESSALGEBRA_H

#include "attn/Layout/AddressForm.h"
#include "attn/Layout/SharedLayout.h"
#include "attn/Layout/TileLayout.h"

namespace mlir::attn {

/// What each bit of the lane, warp and block index adds to the coordinates.
struct ThreadBases {
  llvm::SmallVector<Coords, 10> lanes;
  llvm::SmallVector<Coords, 4> warps;
  llvm::SmallVector<Coords, 2> blocks;
};

/// Bases of a register tile.
ThreadBases threadBases(const TileLayout &tile);

/// Addresses of the elements `origin + (constant ^ thread part)`, where the
/// thread part is the XOR of the bases of the set bits and all coordinates are
/// those of the whole buffer. The result is normalised.
llvm::Expected<ElementAddresses>
computeAddresses(const ThreadBases &thread, llvm::ArrayRef<Coords> constants,
                 const SharedLayout &buffer, llvm::ArrayRef<int64_t> origin);

/// The different xorConst values of a range of objects, in order of appearance.
template <typename Range, typename Get>
llvm::SmallVector<int64_t> distinctConstants(const Range &range, Get get) {
  llvm::SmallVector<int64_t> result;
  for (const auto &item : range)
    if (!llvm::is_contained(result, get(item)))
      result.push_back(get(item));
  return result;
}

} // namespace mlir::attn

#endif // ATTN_LIB_LAYOUT_ADDRESSALGEBRA_H
