//===- TeamOps.cpp - Teams of a CTA's warps -------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

LogicalResult TeamTakeOp::verify() {
  if (getTiles().empty())
    return emitOpError("expected a tile to take, got none");
  for (Value tile : getTiles())
    if (auto type = cast<RankedTensorType>(tile.getType());
        !type.getElementType().isF32())
      return emitOpError("expected tiles of f32, got ") << type;
  BufferType buffer = getBuffer().getType();
  if (!buffer.getElementType().isF32() || buffer.getRank() != 1)
    return emitOpError("expected a buffer of f32 with one dimension, got ")
           << buffer;
  int64_t from = getFrom();
  if (from < 1)
    return emitOpError("expected at least one team that takes, got ") << from;
  return success();
}
