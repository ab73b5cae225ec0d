//===- DividedRows.cpp - Rows whose columns warps divide ------------------===//

#include "DividedRows.h"

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
  return ConvertLayoutOp::create(
      b, getSharedType(type.getShape()[1], type.getElementType()), partial);
}

Value DividedRows::spread(ImplicitLocOpBuilder &b, Value values) const {
  auto type = cast<RankedTensorType>(values.getType());
  return ConvertLayoutOp::create(
      b,
      RankedTensorType::get(type.getShape(), type.getElementType(),
                            SliceLayoutAttr::get(b.getContext(), 1, divided)),
      values);
}
