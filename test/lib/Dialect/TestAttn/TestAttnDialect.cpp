//===- TestAttnDialect.cpp - Ops that only tests use ----------------------===//

#include "TestAttnDialect.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::test;

#include "TestAttnDialect.cpp.inc"

#define GET_OP_CLASSES
#include "TestAttnOps.cpp.inc"

void TestAttnDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "TestAttnOps.cpp.inc"
      >();
}

ChannelUse AsyncFillOp::getChannelUse() {
  return getToken() ? ChannelUse::Fill : ChannelUse::None;
}

OpOperand *AsyncFillOp::getUsedHandle() {
  return getToken() ? &*getTokenMutable().begin() : nullptr;
}

int64_t AsyncFillOp::getFilledBytes() {
  BufferType type = getDest().getType();
  return ShapedType::getNumElements(type.getShape()) *
         type.getElementType().getIntOrFloatBitWidth() / 8;
}

void AsyncFillOp::setFillBarrier(Value barriers, Value index, IntegerAttr) {
  getBarriersMutable().assign(barriers);
  getIndexMutable().assign(index);
  getTokenMutable().clear();
}

ChannelUse BulkFillOp::getChannelUse() { return ChannelUse::Fill; }

OpOperand *BulkFillOp::getUsedHandle() { return &getTokenMutable(); }

int64_t BulkFillOp::getFilledBytes() {
  return cast<BulkCopyOpInterface>(getOperation()).getCopiedBytes();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value ProductOp::getAccumulator() { return getC(); }
Value ProductOp::getProduct() { return getResult(); }
ProductCompletion ProductOp::getCompletion() { return ProductCompletion::Wait; }
int64_t ProductOp::getDepthStep() { return 16; }
int64_t ProductOp::getWarpgroups() { return getType().getShape()[0] / 64; }
bool ProductOp::canRepeatInWarp() {
  return !getWhole() && isa<BufferType>(getA().getType());
}

Value ProductOp::repeatInWarp(OpBuilder &builder, Location loc,
                              RankedTensorType tile) {
  Value zero = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(tile, builder.getF32FloatAttr(0)));
  return MmaOp::create(builder, loc, tile, getA(), getB(), zero);
}

Attribute ProductOp::getOperandLayout(OpOperand &operand,
                                      MmaLayoutAttr accumulator) {
  if (operand.getOperandNumber() == 0)
    return OperandLayoutAttr::get(getContext(), 0, accumulator);
  return accumulator;
}

void ProductOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand *operand : {&getAMutable(), &getBMutable()})
    if (isa<BufferType>(operand->get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), operand);
  effects.emplace_back(MemoryEffects::Write::get(), AsyncGroups::get());
}

void ProductWaitOp::setPendingGroups(int64_t groups) { setPending(groups); }

Value ProductWaitOp::resume(OpBuilder &builder, Location loc, Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  return ProductResumeOp::create(
      builder, loc,
      InFlightType::get(getContext(), type.getShape(), type.getElementType()),
      tile);
}

void ProductWaitOp::getLayoutAnchors(MmaLayoutAttr accumulator,
                                     SmallVectorImpl<LayoutAnchor> &anchors) {
  for (Value result : getResults())
    anchors.push_back({result, accumulator});
}

Value BufferProductOp::getAccumulator() { return getD(); }
Value BufferProductOp::getProduct() { return getD(); }
ProductCompletion BufferProductOp::getCompletion() {
  return ProductCompletion::Barrier;
}
int64_t BufferProductOp::getDepthStep() { return 16; }
