//===- AddressAlgebra.cpp - Addresses from bases and constants ------------===//
//
// A coordinate is split at the buffer's unit size, a power of two. The low part
// goes through the unit, which is linear over F2: it gives the XOR part. The
// high part counts repetitions: it is multiplied by a stride that may be any
// number, so that every one of its bits must have a single source, and gives
// the ADD part.
//
//===----------------------------------------------------------------------===//

#include "AddressAlgebra.h"
#include "Errors.h"

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::Expected;
using llvm::SmallVector;

ThreadBases mlir::attn::threadBases(const TileLayout &tile) {
  ThreadBases result;
  for (unsigned bit = 0; bit < TileLayout::laneBits; ++bit)
    result.lanes.push_back(tile.laneBasis(bit));
  for (unsigned bit = 0; bit < tile.warpBits(); ++bit)
    result.warps.push_back(tile.warpBasis(bit));
  for (unsigned bit = 0; bit < tile.blockBits(); ++bit)
    result.blocks.push_back(tile.blockBasis(bit));
  return result;
}

namespace {
/// The two parts of an address, in bytes.
struct Parts {
  int64_t xorPart = 0;
  int64_t addPart = 0;
};
} // namespace

/// Address parts of whole-buffer coordinates.
static Parts split(const SharedLayout &buffer, ArrayRef<int64_t> coords) {
  Coords unit = buffer.unitShape(), inUnit;
  Parts result;
  for (auto [dim, coord] : llvm::enumerate(coords)) {
    inUnit.push_back(coord % unit[dim]);
    result.addPart += coord / unit[dim] * buffer.repetitions()[dim].stride;
  }
  result.addPart *= buffer.elementBytes();
  result.xorPart = buffer.unit().applyFlat(buffer.unit().flattenInput(inUnit)) *
                   buffer.elementBytes();
  return result;
}

Expected<ElementAddresses> mlir::attn::computeAddresses(
    const ThreadBases &thread, ArrayRef<Coords> constants,
    const SharedLayout &buffer, ArrayRef<int64_t> origin) {
  Coords unit = buffer.unitShape();
  // Bits that threads set, for each dimension: all, and those of the high part
  // that have one source.
  SmallVector<int64_t, 2> threadBits(buffer.rank(), 0);
  for (const auto &axis :
       {ArrayRef<Coords>(thread.lanes), ArrayRef<Coords>(thread.warps),
        ArrayRef<Coords>(thread.blocks)})
    for (const Coords &basis : axis)
      for (unsigned dim = 0; dim < buffer.rank(); ++dim) {
        if ((basis[dim] / unit[dim]) & (threadBits[dim] / unit[dim]))
          return makeError("expected every bit of dim{0} above {1} to have one "
                           "source, got several threads' bits",
                           dim, unit[dim]);
        threadBits[dim] |= basis[dim];
      }

  ElementAddresses result;
  auto addAxis = [&](ArrayRef<Coords> bases, auto &xorList, auto &addList) {
    for (const Coords &basis : bases) {
      Parts parts = split(buffer, basis);
      xorList.push_back(parts.xorPart);
      addList.push_back(parts.addPart);
    }
  };
  addAxis(thread.lanes, result.form.laneXor, result.form.laneAdd);
  addAxis(thread.warps, result.form.warpXor, result.form.warpAdd);
  addAxis(thread.blocks, result.form.blockXor, result.form.blockAdd);

  int64_t mask = result.form.xorMask();
  for (const Coords &constant : constants) {
    Coords moved;
    for (unsigned dim = 0; dim < buffer.rank(); ++dim) {
      int64_t coord = constant[dim] + origin[dim];
      // Adding the origin must not carry into bits of the thread.
      bool carries = origin[dim] && ((constant[dim] | coord) & threadBits[dim]);
      if (carries || ((coord / unit[dim]) & (threadBits[dim] / unit[dim])))
        return makeError(
            "expected dim{0} of the tile to start at a multiple of "
            "its unit in the buffer, got offset {1}",
            dim, origin[dim]);
      moved.push_back(coord);
    }
    Parts parts = split(buffer, moved);
    result.registers.push_back(
        {0, parts.xorPart & mask, parts.addPart + (parts.xorPart & ~mask)});
  }
  return result;
}
