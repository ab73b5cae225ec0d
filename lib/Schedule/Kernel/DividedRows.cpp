//===- DividedRows.cpp - Rows whose columns warps divide ------------------===//

#include "attn/Schedule/Kernel/DividedRows.h"

using namespace mlir;
using namespace mlir::attn;

RankedTensorType DividedRows::getPartialType() const {
  MLIRContext *context = divided.getContext();
  return RankedTensorType::get({rows, kRowOwners * divided.getWarps()[1]},
                               Float32Type::get(context),
                               PartialLayoutAttr::get(context, divided));
}

void DividedRows::allocExchange(ImplicitLocOpBuilder &b, StringRef name) {
  RankedTensorType type = getPartialType();
  auto layout = SwizzledLayoutAttr::get(
      b.getContext(), SharedLayout::chooseSpan(type.getShape()[1], 32));
  exchange = AllocOp::create(
      b,
      BufferType::get(b.getContext(), type.getShape(), b.getF32Type(), layout,
                      MemorySpace::Shared),
      b.getStringAttr(name), IntegerAttr(), StringAttr());
}

Value DividedRows::gather(ImplicitLocOpBuilder &b, Value partial) const {
  auto type = cast<RankedTensorType>(partial.getType());
  RankedTensorType shared =
      getSharedType(type.getShape()[1], type.getElementType());
  if (!exchange)
    return ConvertLayoutOp::create(b, shared, partial);
  LocalStoreOp::create(b, partial, exchange);
  return LocalLoadOp::create(b, shared, exchange);
}

Value DividedRows::spread(ImplicitLocOpBuilder &b, Value values) const {
  auto type = cast<RankedTensorType>(values.getType());
  return ConvertLayoutOp::create(
      b,
      RankedTensorType::get(type.getShape(), type.getElementType(),
                            SliceLayoutAttr::get(b.getContext(), 1, divided)),
      values);
}
