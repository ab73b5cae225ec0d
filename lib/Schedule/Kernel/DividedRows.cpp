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
