//===- Widening.cpp - What a partition that widens keys does --------------===//

#include "Widening.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::attn;

Value attn::loadNarrowRows(ImplicitLocOpBuilder &b, Value slot) {
  auto type = cast<BufferType>(slot.getType());
  auto layout = BlockedLayoutAttr::get(b.getContext(), /*perThread=*/{1, 16},
                                       kWarpgroupWarps, /*order=*/{0, 1});
  return LocalLoadOp::create(
      b, RankedTensorType::get(type.getShape(), type.getElementType(), layout),
      slot);
}

Value attn::emitWidened(ImplicitLocOpBuilder &b, Value tile, Type type) {
  return arith::ExtFOp::create(
      b, cast<RankedTensorType>(tile.getType()).clone(type), tile);
}
