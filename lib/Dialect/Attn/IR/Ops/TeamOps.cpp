//===- TeamOps.cpp - Teams of a CTA's warps -------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

/// The rules of all ops by which teams read each other's registers.
template <typename Op>
static LogicalResult verifyExchange(Op op) {
  if (op.getTiles().empty())
    return op.emitOpError("expected a tile to take, got none");
  for (Value tile : op.getTiles())
    if (auto type = cast<RankedTensorType>(tile.getType());
        !type.getElementType().isF32())
      return op.emitOpError("expected tiles of f32, got ") << type;
  BufferType buffer = op.getBuffer().getType();
  if (!buffer.getElementType().isF32() || buffer.getRank() != 1)
    return op.emitOpError("expected a buffer of f32 with one dimension, got ")
           << buffer;
  return success();
}

LogicalResult TeamTakeOp::verify() {
  if (failed(verifyExchange(*this)))
    return failure();
  int64_t from = getFrom();
  if (from < 1)
    return emitOpError("expected at least one team that takes, got ") << from;
  return success();
}

LogicalResult TeamShareOp::verify() {
  if (failed(verifyExchange(*this)))
    return failure();
  size_t tiles = getTiles().size(), results = getResults().size();
  if (results == 0 || results % tiles != 0)
    return emitOpError("expected results of each team for ")
           << tiles << " tiles, got " << results;
  int64_t teams = countTeams();
  for (auto [i, result] : llvm::enumerate(getResults())) {
    auto tile = cast<RankedTensorType>(getTiles()[i % tiles].getType());
    SmallVector<int64_t> shape(tile.getShape());
    if (tile.getRank() == 2) {
      if (shape[1] % teams != 0)
        return emitOpError("expected columns that ")
               << teams << " teams divide, got " << tile;
      shape[1] /= teams;
    }
    auto type = cast<RankedTensorType>(result.getType());
    if (type.getShape() != ArrayRef(shape) || !type.getElementType().isF32())
      return emitOpError("expected a part of ")
             << tile << " for each of " << teams << " teams, got " << type;
  }
  return success();
}
