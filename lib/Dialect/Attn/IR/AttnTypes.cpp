//===- AttnTypes.cpp - Buffers and views of global memory -----------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::attn;

#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Attn/IR/AttnTypes.cpp.inc"

void AttnDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "attn/Dialect/Attn/IR/AttnTypes.cpp.inc"
      >();
}

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

//===----------------------------------------------------------------------===//
// BufferType: !attn.buffer<2x64x128xf16, #layout, shared>
//===----------------------------------------------------------------------===//

Type BufferType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type elementType;
  Attribute layout;
  StringRef space;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType) || parser.parseComma() ||
      parser.parseAttribute(layout) || parser.parseComma() ||
      parser.parseKeyword(&space))
    return {};
  std::optional<MemorySpace> memory = symbolizeMemorySpace(space);
  if (!memory) {
    parser.emitError(parser.getCurrentLocation(),
                     "expected the memory space shared or tmem, got ")
        << space;
    return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<BufferType>(loc, parser.getContext(), shape,
                                       elementType, layout, *memory);
}

void BufferType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printDimensionList(getShape());
  printer << 'x' << getElementType() << ", " << getLayout() << ", "
          << stringifyMemorySpace(getSpace()) << '>';
}

LogicalResult BufferType::verify(EmitErrorFn emitError, ArrayRef<int64_t> shape,
                                 Type elementType, Attribute layout,
                                 MemorySpace) {
  if (shape.empty() || shape.size() > 3)
    return emitError() << "expected a buffer of rank 1, 2 or 3, got rank "
                       << shape.size();
  for (int64_t extent : shape)
    if (extent < 1)
      return emitError() << "expected positive extents, got " << extent;
  if (!elementType.isIntOrFloat() ||
      elementType.getIntOrFloatBitWidth() % 8 != 0)
    return emitError() << "expected elements of whole bytes, got "
                       << elementType;
  if (isa<AutoLayoutAttr>(layout))
    return success();
  auto chosen = dyn_cast<BufferLayoutAttrInterface>(layout);
  if (!chosen)
    return emitError() << "expected a buffer layout or #attn.auto, got "
                       << layout;
  auto result =
      chosen.toSharedLayout(shape.size() == 3 ? shape.drop_front() : shape,
                            elementType.getIntOrFloatBitWidth());
  if (!result)
    return emitError() << llvm::toString(result.takeError());
  return success();
}

int64_t BufferType::getNumSlots() const {
  return getRank() == 3 ? getShape().front() : 1;
}

ArrayRef<int64_t> BufferType::getSlotShape() const {
  return getRank() == 3 ? getShape().drop_front() : getShape();
}

llvm::Expected<int64_t> BufferType::getSlotBytes() const {
  auto layout = getSharedLayout(*this);
  if (!layout)
    return layout.takeError();
  return llvm::alignTo(layout->sizeBytes(), layout->alignment());
}

BufferType BufferType::withLayout(Attribute layout) const {
  return get(getContext(), getShape(), getElementType(), layout, getSpace());
}

//===----------------------------------------------------------------------===//
// GlobalType: !attn.global<?x128xf16>
//===----------------------------------------------------------------------===//

Type GlobalType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type elementType;
  if (parser.parseLess() || parser.parseDimensionList(shape) ||
      parser.parseType(elementType) || parser.parseGreater())
    return {};
  return parser.getChecked<GlobalType>(loc, parser.getContext(), shape,
                                       elementType);
}

void GlobalType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printDimensionList(getShape());
  printer << 'x' << getElementType() << '>';
}

LogicalResult GlobalType::verify(EmitErrorFn emitError, ArrayRef<int64_t> shape,
                                 Type elementType) {
  if (shape.size() != 1 && shape.size() != 2)
    return emitError() << "expected a view of rank 1 or 2, got rank "
                       << shape.size();
  if (!ShapedType::isDynamic(shape[0]))
    return emitError() << "expected ? as the number of rows, got " << shape[0];
  if (shape.size() == 2 && shape[1] < 1)
    return emitError() << "expected a positive number of columns";
  if (!elementType.isIntOrFloat() ||
      elementType.getIntOrFloatBitWidth() % 8 != 0)
    return emitError() << "expected elements of whole bytes, got "
                       << elementType;
  return success();
}
