//===- PlanTiles.h - Tiles that begin where documents do --------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_PLANTILES_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_PLANTILES_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn::lowering {

/// Emits what writes the records of the op; `lane` is this thread's number.
void emitTilePlan(PlanTilesOp op, Value lane);

} // namespace mlir::attn::lowering

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_PLANTILES_H
