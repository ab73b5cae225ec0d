//===- MmaOps.cpp - Matrix instructions -----------------------------------===//

#include "../ElementTypes.h"
#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

/// Shape and element type of a register tile or buffer operand.
static std::pair<ArrayRef<int64_t>, Type> describe(Value operand) {
  if (auto buffer = dyn_cast<BufferType>(operand.getType()))
    return {buffer.getShape(), buffer.getElementType()};
  auto tile = cast<RankedTensorType>(operand.getType());
  return {tile.getShape(), tile.getElementType()};
}

LogicalResult MmaOp::verify() {
  Attribute layout = getType().getEncoding();
  if (!isa_and_present<AutoLayoutAttr, MmaLayoutAttr>(layout))
    return emitOpError("expected an accumulator with an #attn.mma layout, got ")
           << getType();
  auto [shapeA, typeA] = describe(getA());
  auto [shapeB, typeB] = describe(getB());
  auto [shapeC, typeC] = describe(getC());
  for (auto [name, shape] :
       {std::pair("a", shapeA), std::pair("b", shapeB), std::pair("c", shapeC)})
    if (shape.size() != 2)
      return emitOpError("expected '")
             << name << "' of rank 2, got rank " << shape.size();
  if (shapeA[1] != shapeB[0])
    return emitOpError("expected the contraction extents of 'a' and 'b' to "
                       "agree, got ")
           << shapeA[1] << " and " << shapeB[0];
  int64_t parts = getDepthParts().value_or(1);
  if (getDepthParts() && (parts < 1 || parts > shapeA[1] || getColumn() ||
                          shapeA[1] % (parts * getDepthStep()) != 0))
    return emitOpError("expected 'depth_parts' without 'column' and a "
                       "contraction of whole steps of ")
           << getDepthStep() << " for each part, got " << parts << " of "
           << shapeA[1];
  if (getF16Sums() && (!typeA.isF16() || !typeC.isF32()))
    return emitOpError("expected operands of f16 and an f32 accumulator with "
                       "'f16_sums', got ")
           << typeA << " and " << typeC;
  std::optional<int64_t> column = getColumn();
  if (column && (*column < 0 || *column > shapeC[1] - shapeB[1]))
    return emitOpError("expected columns of 'c' from 'column' on for the ")
           << shapeB[1] << " of 'b', got column " << *column << " of "
           << shapeC[1];
  if (shapeA[0] != shapeC[0] || (!column && parts * shapeB[1] != shapeC[1]))
    return emitOpError("expected an accumulator of ")
           << shapeA[0] << " x " << parts * shapeB[1] << ", got " << shapeC[0]
           << " x " << shapeC[1];
  bool mixedFp8 = isFloat8(typeA) && isFloat8(typeB);
  if (widensB()) {
    if (!typeA.isF16())
      return emitOpError("expected a tile of f16 beside a buffer of 8-bit "
                         "floats, got ")
             << getA().getType();
    if (!typeC.isF32() || getDepthParts() || getF16Sums())
      return emitOpError("expected an f32 accumulator without 'depth_parts' "
                         "and 'f16_sums' beside a buffer of 8-bit floats that "
                         "become f16, got ")
             << typeC;
    return success();
  }
  if (getInterleaved() &&
      (!mixedFp8 || !isa<BufferType>(getB().getType()) || getDepthParts()))
    return emitOpError("expected a buffer 'b' of 8-bit floats beside such an "
                       "'a' without 'depth_parts' with 'interleaved', got ")
           << getA().getType() << " and " << getB().getType();
  if (typeA != typeB && !mixedFp8)
    return emitOpError("expected operands of one element type, got ")
           << typeA << " and " << typeB;
  if (!typeA.isF16() && !typeA.isBF16() && !mixedFp8)
    return emitOpError("expected operands of f16, bf16, f8E4M3FN or f8E5M2, "
                       "got ")
           << typeA;
  if (!typeC.isF32() && !(typeC.isF16() && typeA.isF16()))
    return emitOpError("expected an f32 accumulator (or f16 for f16 "
                       "operands), got ")
           << typeC;
  return success();
}

bool MmaOp::widensB() {
  return isa<BufferType>(getB().getType()) &&
         isFloat8(describe(getB()).second) &&
         !isFloat8(describe(getA()).second);
}

int MmaOp::getMinimumSM() {
  // What is widened is so by any target.
  return isFloat8(describe(getB()).second) && !widensB() ? 89 : 80;
}

Value MmaOp::getAccumulator() { return getC(); }

Value MmaOp::getProduct() { return getResult(); }

ProductCompletion MmaOp::getCompletion() { return ProductCompletion::AtOnce; }

int64_t MmaOp::getDepthStep() {
  return describe(getA()).second.getIntOrFloatBitWidth() == 8 ? 32 : 16;
}

void MmaOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand *operand : {&getAMutable(), &getBMutable()})
    if (isa<BufferType>(operand->get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), operand);
}
