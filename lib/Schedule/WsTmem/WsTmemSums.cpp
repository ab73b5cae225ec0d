//===- WsTmemSums.cpp - Row sums by the tensor core -----------------------===//
//
// Probabilities times ones are their sums, in columns of their own beside the
// results, which are rescaled as these are. An instruction has 16 columns at
// least, all the same; the first one is read and rescaled.
//
//===----------------------------------------------------------------------===//

#include "WsTmemEmitter.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;

void WsTmemEmitter::makeOnes() {
  int64_t columns = getSumColumns(plan);
  if (columns == 0)
    return;
  ones = alloc("ones", bufferType({plan.getBlockN(), columns}));
  for (auto [number, tile] : llvm::enumerate(tiles))
    tile.sums =
        TmemAllocOp::create(b, tensorType({kTmemRows, columns}, b.getF32Type()),
                            b.getStringAttr("l" + llvm::Twine(number)),
                            /*column=*/IntegerAttr(), /*fields=*/ArrayAttr());
}

void WsTmemEmitter::emitOnes() {
  if (!ones)
    return;
  auto type = cast<BufferType>(ones.getType());
  Type element = type.getElementType();
  Value tile = arith::ConstantOp::create(
      b, DenseElementsAttr::get(tileType(type.getShape(), element),
                                b.getFloatAttr(element, 1)));
  LocalStoreOp::create(b, tile, ones);
  // One lane starts the products that read them.
  NVVM::SyncWarpOp::create(b, arith::ConstantIntOp::create(b, -1, 32));
}

void WsTmemEmitter::emitSumProduct(int64_t number, Value accumulate,
                                   IntegerAttr depth, IntegerAttr first) {
  if (ones)
    Tcgen05MmaOp::create(b, tiles[number].probabilities, ones,
                         tiles[number].sums, accumulate, depth, first);
}
