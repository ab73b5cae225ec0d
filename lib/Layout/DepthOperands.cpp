//===- DepthOperands.cpp - Operands whose depth warps divide --------------===//
//
// The fragments are those of NamedLayouts.cpp; only the bases of the warps that
// share rows differ, which move along the contraction.
//
//===----------------------------------------------------------------------===//

#include "attn/Layout/DepthOperands.h"
#include "UnitBases.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::Expected;

/// A tile of `outer` x k, with the contraction along dimension `kDim`: `others`
/// are the registers beside those of a word, `stepM` is where the next warp
/// along the rows is.
static Expected<TileLayout> buildOperand(int64_t outer, int64_t outerUnit,
                                         int64_t k, unsigned kDim,
                                         unsigned elementBits, WarpGrid grid,
                                         ArrayRef<Coords> others,
                                         int64_t stepM) {
  assert((elementBits == 8 || elementBits == 16) &&
         llvm::isPowerOf2_32(grid.m) && llvm::isPowerOf2_32(grid.n) &&
         grid.copies == 1 && "verified by the product");
  int64_t perWord = 32 / elementBits, step = 8 * perWord, unitK = step * grid.n;
  assert(k > 0 && k % unitK == 0 && outer > 0 && outer % outerUnit == 0 &&
         "verified by the product and its layout");
  auto along = [&](unsigned dim, int64_t value) {
    Coords basis(2, 0);
    basis[dim] = value;
    return basis;
  };
  UnitBases bases;
  for (int64_t element = 1; element < perWord; element *= 2)
    bases.registers.push_back(along(kDim, element));
  bases.registers.append(others.begin(), others.end());
  bases.registers.push_back(along(kDim, step / 2));
  for (int64_t word : {perWord, 2 * perWord})
    bases.lanes.push_back(along(kDim, word));
  for (int64_t row : {1, 2, 4})
    bases.lanes.push_back(along(1 - kDim, row));
  for (unsigned bit = 0; bit < llvm::Log2_32(grid.m); ++bit)
    bases.warps.push_back(along(1 - kDim, stepM << bit));
  for (unsigned bit = 0; bit < llvm::Log2_32(grid.n); ++bit)
    bases.warps.push_back(along(kDim, step << bit));

  int64_t rows = kDim == 1 ? outerUnit : unitK;
  int64_t columns = kDim == 1 ? unitK : outerUnit;
  Repetition ofK = {kDim, k / unitK}, ofOuter = {1 - kDim, outer / outerUnit};
  return bases.build(rows, columns, {ofK, ofOuter}, grid.m * grid.n);
}

Expected<TileLayout> mlir::attn::mmaDepthOperandA(int64_t m, int64_t k,
                                                  unsigned elementBits,
                                                  WarpGrid grid) {
  return buildOperand(m, int64_t(16) * grid.m, k, /*kDim=*/1, elementBits, grid,
                      {Coords{8, 0}}, /*stepM=*/16);
}

Expected<TileLayout> mlir::attn::mmaDepthOperandB(int64_t k, int64_t n,
                                                  unsigned elementBits,
                                                  WarpGrid grid) {
  return buildOperand(n, 8, k, /*kDim=*/0, elementBits, grid, {}, /*stepM=*/0);
}
