//===- Products.cpp - Products of a block by wgmma ------------------------===//

#include "Products.h"
#include "WgmmaFacts.h"

using namespace mlir;
using namespace mlir::attn;

static InFlightType inFlight(RankedTensorType type) {
  return InFlightType::get(type.getContext(), type.getShape(),
                           type.getElementType());
}

static IntegerAttr unlessWhole(OpBuilder &b, int64_t used, int64_t columns) {
  return used == columns ? IntegerAttr() : b.getI64IntegerAttr(used);
}

Value attn::multiplyKeys(RingEmitter &kernel, Value queries, Value slot) {
  ImplicitLocOpBuilder &b = kernel.b;
  const ProblemFacts &facts = kernel.facts;
  int64_t blockN = kernel.tilePlan.blockN, columns = getKeyColumns(facts);
  Value transposed = TransposeOp::create(
      b, kernel.bufferType({columns, blockN}, kernel.getOperandType()), slot);
  return WgmmaOp::create(b, inFlight(kernel.f32Tile({kernel.blockM, blockN})),
                         queries, transposed, /*c=*/Value(),
                         /*columns=*/IntegerAttr(),
                         unlessWhole(b, getKeyDepth(facts), columns),
                         /*first=*/IntegerAttr());
}

Value attn::multiplyValues(RingEmitter &kernel, Value p, Value values,
                           Value sum) {
  ImplicitLocOpBuilder &b = kernel.b;
  const ProblemFacts &facts = kernel.facts;
  // Slots of 8-bit values are transposed by whoever fills them.
  if (facts.isNarrow() || facts.hasTransposedValues()) {
    int64_t rows = cast<BufferType>(values.getType()).getShape()[0];
    values = TransposeOp::create(
        b, kernel.bufferType({kernel.tilePlan.blockN, rows}), values);
  }
  return WgmmaOp::create(
      b, inFlight(kernel.f32Tile({kernel.blockM, facts.valueDim})), p, values,
      sum, unlessWhole(b, facts.valueDim, getValueColumns(facts)),
      /*depth=*/IntegerAttr(), /*first=*/IntegerAttr());
}

Value attn::awaitProduct(RingEmitter &kernel, Value product) {
  auto type = cast<InFlightType>(product.getType());
  auto op = WgmmaWaitOp::create(kernel.b, kernel.f32Tile(type.getShape()),
                                product, /*pending=*/0);
  return op.getResults().front();
}

Value attn::makeOperand(RingEmitter &kernel, Value p, bool keyQuads) {
  const ProblemFacts &facts = kernel.facts;
  RankedTensorType type = kernel.tileType(
      {kernel.blockM, kernel.tilePlan.blockN}, kernel.getOperandType());
  if (!facts.isNarrow())
    return arith::TruncFOp::create(kernel.b, type, p);
  KeyOrder order = KeyOrder::Interleaved;
  if (!needsTransposer(facts))
    order = keyQuads ? KeyOrder::Quads : KeyOrder::Plain;
  return NarrowOperandOp::create(kernel.b, type, p, order);
}

void attn::setNarrowRange(OnlineSoftmaxOp softmax) {
  bool bets = softmax.getPolicy() == SoftmaxPolicy::Optimistic;
  softmax.setOffset(APFloat(bets ? 3.0f : 8.0f));
  softmax.setGrowth(APFloat(bets ? 4.0f : 0.0f));
  softmax.setLimit(APFloat(440.0f));
}
