//===- SlicedProducts.cpp - Products of slices of columns -----------------===//

#include "SlicedProducts.h"

using namespace mlir;
using namespace mlir::attn;

/// Returns `columns`, or null if a slot has as many.
static IntegerAttr unlessAll(ImplicitLocOpBuilder &b, int64_t columns,
                             int64_t all) {
  return columns == all ? IntegerAttr() : b.getI64IntegerAttr(columns);
}

/// Returns the rows of an operand in shared memory or in registers.
static int64_t countRows(Value operand) {
  if (auto buffer = dyn_cast<BufferType>(operand.getType()))
    return buffer.getShape()[0];
  return cast<RankedTensorType>(operand.getType()).getShape()[0];
}

Value attn::multiplyKeys(ImplicitLocOpBuilder &b, Value query, Value key,
                         int64_t columns, Value sum) {
  auto type = cast<BufferType>(key.getType());
  int64_t keys = type.getShape()[0], slice = type.getShape()[1];
  int64_t rows = countRows(query);
  Value transposed = TransposeOp::create(
      b,
      BufferType::get(b.getContext(), {slice, keys}, type.getElementType(),
                      AutoLayoutAttr::get(b.getContext()), MemorySpace::Shared),
      key);
  return WgmmaOp::create(
      b, InFlightType::get(b.getContext(), {rows, keys}, b.getF32Type()), query,
      transposed, sum, /*columns=*/IntegerAttr(), unlessAll(b, columns, slice),
      /*first=*/IntegerAttr());
}

Value attn::multiplyValues(ImplicitLocOpBuilder &b, Value p, Value value,
                           int64_t columns, Value sum) {
  int64_t rows = countRows(p);
  int64_t slice = cast<BufferType>(value.getType()).getShape()[1];
  return WgmmaOp::create(
      b, InFlightType::get(b.getContext(), {rows, columns}, b.getF32Type()), p,
      value, sum, unlessAll(b, columns, slice), /*depth=*/IntegerAttr(),
      /*first=*/IntegerAttr());
}

SmallVector<Value> attn::awaitProducts(ImplicitLocOpBuilder &b,
                                       ValueRange products, int64_t pending) {
  SmallVector<Type> types;
  for (Value product : products) {
    auto type = cast<InFlightType>(product.getType());
    types.push_back(RankedTensorType::get(type.getShape(),
                                          type.getElementType(),
                                          AutoLayoutAttr::get(b.getContext())));
  }
  auto op = WgmmaWaitOp::create(b, types, products, pending);
  return llvm::to_vector(ValueRange(op.getResults()));
}
