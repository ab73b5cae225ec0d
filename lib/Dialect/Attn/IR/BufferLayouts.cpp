//===- BufferLayouts.cpp - Layouts of shared and tensor memory ------------===//

#include "LayoutErrors.h"
#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

LogicalResult SwizzledLayoutAttr::verify(EmitErrorFn emitError, int64_t span,
                                         bool columnQuads) {
  if (span != 0 && span != 32 && span != 64 && span != 128)
    return emitError() << "expected a span of 0, 32, 64 or 128 bytes, got "
                       << span;
  if (columnQuads && span == 0)
    return emitError() << "expected a span with column_quads, got 0";
  return success();
}

llvm::Expected<SharedLayout>
SwizzledLayoutAttr::toSharedLayout(ArrayRef<int64_t> shape,
                                   unsigned elementBits) const {
  if (shape.size() != 2)
    return makeError("expected a slot of rank 2 for #attn.swizzled, got rank " +
                     Twine(shape.size()));
  if (getSpan() == 0)
    return SharedLayout::choose(shape[0], shape[1], elementBits);
  llvm::Expected<SharedLayout> layout =
      SharedLayout::swizzled(shape[0], shape[1], elementBits, getSpan());
  return layout && getColumnQuads() ? layout->quadColumns() : std::move(layout);
}

llvm::Expected<SharedLayout>
RowLayoutAttr::toSharedLayout(ArrayRef<int64_t> shape,
                              unsigned elementBits) const {
  if (shape.size() == 1)
    return SharedLayout::linear(shape[0], elementBits);
  if (shape.size() != 2)
    return makeError(
        "expected a slot of rank 1 or 2 for #attn.rows, got rank " +
        Twine(shape.size()));
  return SharedLayout::swizzled(shape[0], shape[1], elementBits, 0);
}

LogicalResult TransposedLayoutAttr::verify(EmitErrorFn emitError,
                                           Attribute inner) {
  if (!isa<BufferLayoutAttrInterface>(inner) || isa<TmemLayoutAttr>(inner))
    return emitError() << "expected a buffer layout inside, got " << inner;
  // Twice is not at all; a chain of them could be as deep as a file is long.
  if (isa<TransposedLayoutAttr>(inner))
    return emitError() << "expected a layout inside that is not transposed "
                          "itself, got "
                       << inner;
  return success();
}

llvm::Expected<SharedLayout>
TransposedLayoutAttr::toSharedLayout(ArrayRef<int64_t> shape,
                                     unsigned elementBits) const {
  if (shape.size() != 2)
    return makeError(
        "expected a slot of rank 2 for #attn.transposed, got rank " +
        Twine(shape.size()));
  auto inner = cast<BufferLayoutAttrInterface>(getInner())
                   .toSharedLayout({shape[1], shape[0]}, elementBits);
  if (!inner)
    return inner.takeError();
  return inner->transposed();
}

LogicalResult TmemLayoutAttr::verify(EmitErrorFn emitError, int64_t m,
                                     bool halves) {
  if (m != 64 && m != 128)
    return emitError() << "expected m = 64 or m = 128, got " << m;
  if (halves && m != 64)
    return emitError() << "expected m = 64 with halves, got " << m;
  return success();
}

llvm::Expected<TensorMemoryLayout>
TmemLayoutAttr::toTensorMemoryLayout(ArrayRef<int64_t> shape,
                                     unsigned elementBits) const {
  if (shape.size() != 2 || shape[0] != getM())
    return makeError("expected a slot of " + Twine(getM()) +
                     " rows of one or more columns for #attn.tmem, got " +
                     Twine(shape[0]) + " x " +
                     Twine(shape.size() == 2 ? shape[1] : 1));
  if (getHalves() && elementBits != 32)
    return makeError("expected elements of 32 bits in halves, got " +
                     Twine(elementBits));
  auto layout = getHalves()
                    ? TensorMemoryLayout::getHalves(shape[1])
                    : TensorMemoryLayout::get(shape[0], shape[1], elementBits);
  if (layout && layout->columns() > kTmemColumns)
    return makeError("expected at most " + Twine(kTmemColumns) +
                     " columns of 32 bits in tensor memory, got " +
                     Twine(layout->columns()));
  return layout;
}

LogicalResult FieldAttr::verify(EmitErrorFn emitError, StringRef name,
                                int64_t first, int64_t columns) {
  if (name.empty())
    return emitError() << "expected a field with a name, got none";
  if (first < 0 || columns < 1 || first > kTmemColumns ||
      columns > kTmemColumns - first)
    return emitError() << "expected columns between 0 and " << kTmemColumns
                       << " for field '" << name << "', got " << columns
                       << " from " << first << " on";
  return success();
}

llvm::Expected<SharedLayout> attn::getSharedLayout(BufferType type) {
  auto layout = dyn_cast<BufferLayoutAttrInterface>(type.getLayout());
  if (!layout)
    return makeError("expected a buffer whose layout is chosen");
  return layout.toSharedLayout(type.getSlotShape(),
                               type.getElementType().getIntOrFloatBitWidth());
}

llvm::Expected<TensorMemoryLayout>
attn::getTensorMemoryLayout(BufferType type) {
  auto layout = dyn_cast<BufferLayoutAttrInterface>(type.getLayout());
  if (!layout)
    return makeError("expected a buffer whose layout is chosen");
  return layout.toTensorMemoryLayout(
      type.getSlotShape(), type.getElementType().getIntOrFloatBitWidth());
}
