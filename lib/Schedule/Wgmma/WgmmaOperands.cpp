//===- WgmmaOperands.cpp - What wgmma multiplies --------------------------===//

#include "WgmmaOperands.h"
#include "WgmmaFacts.h"

using namespace mlir;
using namespace mlir::attn;

Value attn::makeProbabilityOperand(const AttentionTile &tile, Value p,
                                   bool keyQuads) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(p.getType()).getShape();
  RankedTensorType type = tile.tileType(shape, tile.getOperandType());
  if (tile.facts.isNarrow()) {
    KeyOrder order = KeyOrder::Interleaved;
    if (!needsTransposer(tile.facts))
      order = keyQuads ? KeyOrder::Quads : KeyOrder::Plain;
    return NarrowOperandOp::create(tile.b, type, p, order);
  }
  return arith::TruncFOp::create(tile.b, type, p);
}

Value attn::makeValueOperand(const AttentionTile &tile, Value slot) {
  // Slots of 8-bit values are transposed by the role that fills them.
  if (!tile.facts.isNarrow() && !tile.facts.hasTransposedValues())
    return slot;
  ArrayRef<int64_t> shape = cast<BufferType>(slot.getType()).getShape();
  return TransposeOp::create(tile.b, tile.bufferType({shape[1], shape[0]}),
                             slot);
}
