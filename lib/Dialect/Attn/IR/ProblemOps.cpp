//===- ProblemOps.cpp - What to compute -----------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

double AttentionOp::getEffectiveScale() {
  if (std::optional<APFloat> scale = getScale())
    return scale->convertToFloat();
  return 1.0 / std::sqrt(static_cast<double>(getHeadDim()));
}

MaskAttr AttentionOp::getEffectiveMask() {
  if (std::optional<MaskAttr> mask = getMask())
    return *mask;
  return MaskAttr::get(getContext(), MaskKind::None, MaskAlign::TopLeft, -1,
                       -1);
}

MutableOperandRange AttentionOp::getDpsInitsMutable() {
  return MutableOperandRange(getOperation(), 3, getLse() ? 2 : 1);
}

/// Inputs are read and outputs written, where they are memory.
static void memoryEffects(
    DestinationStyleOpInterface op,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    if (op.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
    else
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  }
}

void AttentionOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  memoryEffects(*this, effects);
}

LogicalResult AttentionOp::verify() { return success(); }
LogicalResult AttentionOp::verifyRegions() { return success(); }

MutableOperandRange CombineOp::getDpsInitsMutable() {
  return MutableOperandRange(getOperation(), 2, getLse() ? 2 : 1);
}

void CombineOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  memoryEffects(*this, effects);
}

LogicalResult CombineOp::verify() { return success(); }
