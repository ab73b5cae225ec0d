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
                                 MemorySpace space) {
  if (shape.empty() || shape.size() > 3)
    return emitError() << "expected a buffer of rank 1, 2 or 3, got rank "
                       << shape.size();
  for (int64_t extent : shape)
    if (extent < 1)
      return emitError() << "expected positive extents, got " << extent;
  if (!elementType.isIntOrFloat() ||
      elementType.getIntOrFloatBitWidth() % 8 != 0 ||
      elementType.getIntOrFloatBitWidth() > 128)
    return emitError() << "expected elements of whole bytes up to 16, got "
                       << elementType;
  // Shared memory of any target is smaller, and products of extents below it
  // are numbers.
  constexpr uint64_t maxBytes = kMostSharedBytes;
  uint64_t bytes = elementType.getIntOrFloatBitWidth() / 8;
  for (int64_t extent : shape)
    bytes = llvm::SaturatingMultiply<uint64_t>(bytes, extent);
  if (bytes > maxBytes)
    return emitError() << "expected a buffer of at most " << maxBytes
                       << " bytes, got " << bytes;
  if (isa<AutoLayoutAttr>(layout))
    return success();
  auto chosen = dyn_cast<BufferLayoutAttrInterface>(layout);
  if (!chosen)
    return emitError() << "expected a buffer layout or #attn.auto, got "
                       << layout;
  ArrayRef<int64_t> slot = shape.size() == 3 ? shape.drop_front() : shape;
  unsigned bits = elementType.getIntOrFloatBitWidth();
  if (space == MemorySpace::Tmem) {
    if (auto result = chosen.toTensorMemoryLayout(slot, bits); !result)
      return emitError() << llvm::toString(result.takeError());
  } else if (auto result = chosen.toSharedLayout(slot, bits); !result) {
    return emitError() << llvm::toString(result.takeError());
  }
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

int64_t BufferType::getSlotColumns() const {
  return llvm::cantFail(getTensorMemoryLayout(*this)).columns();
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

//===----------------------------------------------------------------------===//
// MBarriersType, ChannelType
//===----------------------------------------------------------------------===//

LogicalResult MBarriersType::verify(EmitErrorFn emitError, int64_t count) {
  // More do not fit into shared memory, 8 bytes each.
  constexpr int64_t maxCount = 32768;
  if (count < 1 || count > maxCount)
    return emitError() << "expected 1 to " << maxCount << " barriers, got "
                       << count;
  return success();
}

LogicalResult ChannelType::verify(EmitErrorFn emitError, int64_t depth) {
  if (depth < 1 || depth > 256)
    return emitError() << "expected 1 to 256 slots, got " << depth;
  return success();
}

//===----------------------------------------------------------------------===//
// TensorMapType: !attn.tensor_map<1x1x128x64xf16, swizzle = 128>
//===----------------------------------------------------------------------===//

Type TensorMapType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> box;
  Type elementType;
  int64_t swizzle = 0;
  if (parser.parseLess() ||
      parser.parseDimensionList(box, /*allowDynamic=*/false) ||
      parser.parseType(elementType) || parser.parseComma() ||
      parser.parseKeyword("swizzle") || parser.parseEqual() ||
      parser.parseInteger(swizzle) || parser.parseGreater())
    return {};
  return parser.getChecked<TensorMapType>(loc, parser.getContext(), box,
                                          elementType, swizzle);
}

void TensorMapType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printDimensionList(getBox());
  printer << 'x' << getElementType() << ", swizzle = " << getSwizzle() << '>';
}

LogicalResult TensorMapType::verify(EmitErrorFn emitError,
                                    ArrayRef<int64_t> box, Type elementType,
                                    int64_t swizzle) {
  if (box.size() < 2 || box.size() > 5)
    return emitError() << "expected a box of rank 2 to 5, got rank "
                       << box.size();
  for (int64_t extent : box)
    if (extent < 1 || extent > 256)
      return emitError() << "expected extents from 1 to 256, got " << extent;
  if (!elementType.isIntOrFloat() ||
      elementType.getIntOrFloatBitWidth() % 8 != 0)
    return emitError() << "expected elements of whole bytes, got "
                       << elementType;
  if (!llvm::is_contained({0, 32, 64, 128}, swizzle))
    return emitError() << "expected a swizzle of 0, 32, 64 or 128 bytes, got "
                       << swizzle;
  int64_t bytes = box.back() * elementType.getIntOrFloatBitWidth() / 8;
  if (bytes % 16 != 0 || (swizzle != 0 && bytes > swizzle))
    return emitError() << "expected rows of whole 16 bytes, not longer than "
                          "the swizzle, got "
                       << bytes << " bytes";
  return success();
}

//===----------------------------------------------------------------------===//
// InFlightType: !attn.inflight<128x64xf32>, !attn.inflight<128x64xf32, #layout>
//===----------------------------------------------------------------------===//

Type InFlightType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type elementType;
  Attribute layout;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType) ||
      (succeeded(parser.parseOptionalComma()) &&
       parser.parseAttribute(layout)) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<InFlightType>(loc, parser.getContext(), shape,
                                         elementType, layout);
}

void InFlightType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printDimensionList(getShape());
  printer << 'x' << getElementType();
  if (getLayout())
    printer << ", " << getLayout();
  printer << '>';
}

LogicalResult InFlightType::verify(EmitErrorFn emitError,
                                   ArrayRef<int64_t> shape, Type elementType,
                                   Attribute layout) {
  if (layout) {
    auto chosen = dyn_cast<TileLayoutAttrInterface>(layout);
    if (!chosen)
      return emitError() << "expected a layout of a register tile, got "
                         << layout;
    if (!elementType.isIntOrFloat() ||
        elementType.getIntOrFloatBitWidth() != 32)
      return emitError() << "expected elements of 32 bits, got " << elementType;
    auto tile = chosen.toTileLayout(shape, elementType.getIntOrFloatBitWidth());
    if (!tile)
      return emitError() << llvm::toString(tile.takeError());
    return success();
  }
  if (shape.size() != 2)
    return emitError() << "expected an accumulator of rank 2, got rank "
                       << shape.size();
  if (!elementType.isF32())
    return emitError() << "expected f32 elements, got " << elementType;
  return success();
}
