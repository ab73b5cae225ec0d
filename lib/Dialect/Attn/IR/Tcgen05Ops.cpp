//===- Tcgen05Ops.cpp - Matrix instructions of one thread -----------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

LogicalResult Tcgen05CommitOp::verify() {
  if ((*this)->getParentOfType<ElectOp>())
    return success();
  return emitOpError(
      "expected to stand in an attn.elect, since a commit is for "
      "what its thread has started");
}
