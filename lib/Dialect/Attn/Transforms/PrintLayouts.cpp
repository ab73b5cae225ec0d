//===- PrintLayouts.cpp - Pictures of the layouts in a module -------------===//
//
// Draws each layout once. Types that differ in what the picture does not show
// (an f16 and an f32 tile of the same fragments) share one.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/TextCheck.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Layout/Picture.h"
#include "attn/Target/ToolMain.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <variant>

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNPRINTLAYOUTSPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

/// A layout to draw.
struct Drawing {
  Attribute attribute;
  SmallVector<int64_t> shape;
  Type elementType;
  /// Slots of a ring; only the first one is drawn.
  int64_t slots = 1;
  std::variant<TileLayout, SharedLayout> layout;

  bool isTile() const { return std::holds_alternative<TileLayout>(layout); }
  /// The linear map in text.
  std::string map() const {
    return std::visit([](const auto &layout) { return layout.str(); }, layout);
  }
  /// "64x16xf32".
  std::string shapeText() const;
  std::string title() const;
  /// A file name that says what the picture is of, without extension.
  std::string stem(size_t index) const;
};

struct AttnPrintLayoutsPass
    : attn::impl::AttnPrintLayoutsPassBase<AttnPrintLayoutsPass> {
  using Base::Base;
  void runOnOperation() override;

private:
  FailureOr<Drawing> drawingOfOptions();
  LogicalResult collect(SmallVectorImpl<Drawing> &drawings);
  LogicalResult print(const Drawing &drawing, size_t index);
};

} // namespace

std::string Drawing::shapeText() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int64_t extent : shape)
    os << extent << 'x';
  os << elementType;
  return text;
}

std::string Drawing::title() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << (isTile() ? "tile " : "buffer ") << shapeText() << ", " << attribute;
  if (slots > 1)
    os << ", the first of " << slots << " slots";
  return text;
}

std::string Drawing::stem(size_t index) const {
  // "#attn.mma<warps = [4, 1]>" gives "mma".
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  StringRef name = StringRef(text).split('.').second.take_while(
      [](char c) { return llvm::isAlnum(c) || c == '_'; });
  return llvm::formatv("{0}-{1}-{2}-{3}", index, isTile() ? "tile" : "buffer",
                       name, shapeText());
}

/// The layout `attribute` of a tile or of a buffer's slot. An error if it
/// cannot hold the shape or is not a layout of known places.
static llvm::Expected<Drawing>
getDrawing(Attribute attribute, ArrayRef<int64_t> shape, Type elementType) {
  Drawing drawing;
  drawing.attribute = attribute;
  drawing.shape.assign(shape.begin(), shape.end());
  drawing.elementType = elementType;
  unsigned bits = elementType.getIntOrFloatBitWidth();
  if (auto tile = dyn_cast<TileLayoutAttrInterface>(attribute)) {
    llvm::Expected<TileLayout> layout = tile.toTileLayout(shape, bits);
    if (!layout)
      return layout.takeError();
    drawing.layout = *layout;
    return drawing;
  }
  if (auto buffer = dyn_cast<BufferLayoutAttrInterface>(attribute)) {
    llvm::Expected<SharedLayout> layout = buffer.toSharedLayout(shape, bits);
    if (!layout)
      return layout.takeError();
    drawing.layout = *layout;
    return drawing;
  }
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return llvm::createStringError(
      "expected a layout of a tile or a buffer, got " + text);
}

/// The drawing of a type; nothing if it has no layout that is chosen. Verifiers
/// of types have built the same layouts, so there is no error.
static std::optional<Drawing> getDrawing(Type type) {
  if (auto tile = dyn_cast<RankedTensorType>(type)) {
    Attribute layout = tile.getEncoding();
    if (isa_and_nonnull<TileLayoutAttrInterface>(layout))
      return llvm::cantFail(
          getDrawing(layout, tile.getShape(), tile.getElementType()));
  } else if (auto buffer = dyn_cast<BufferType>(type)) {
    // In tensor memory rows are lanes, and there is nothing to see.
    if (isAuto(buffer.getLayout()) || buffer.isTmem())
      return std::nullopt;
    Drawing drawing = llvm::cantFail(getDrawing(
        buffer.getLayout(), buffer.getSlotShape(), buffer.getElementType()));
    drawing.slots = buffer.getNumSlots();
    return drawing;
  }
  return std::nullopt;
}

FailureOr<Drawing> AttnPrintLayoutsPass::drawingOfOptions() {
  ModuleOp module = getOperation();
  MLIRContext *context = &getContext();
  SmallVector<int64_t> extents;
  SmallVector<StringRef> pieces;
  StringRef(shape).split(pieces, 'x');
  for (StringRef piece : pieces) {
    int64_t extent;
    if (piece.getAsInteger(10, extent) || extent < 1) {
      module.emitError("expected a shape such as 64x16 with the layout to "
                       "print, got '")
          << shape << "'";
      return failure();
    }
    extents.push_back(extent);
  }
  for (StringRef text : {StringRef(element), StringRef(layout)})
    if (std::optional<TextProblem> problem = findTextProblem(text)) {
      module.emitError("cannot read an option's text: ") << problem->message;
      return failure();
    }
  Type elementType = parseType(element, context);
  if (!elementType)
    return failure();
  if (!elementType.isIntOrFloat()) {
    module.emitError("expected an integer or float as the element to print, "
                     "got ")
        << elementType;
    return failure();
  }
  Attribute attribute = parseAttribute(layout, context);
  if (!attribute)
    return failure();
  llvm::Expected<Drawing> drawing = getDrawing(attribute, extents, elementType);
  if (!drawing) {
    module.emitError(llvm::toString(drawing.takeError()));
    return failure();
  }
  return std::move(*drawing);
}

LogicalResult
AttnPrintLayoutsPass::collect(SmallVectorImpl<Drawing> &drawings) {
  if (!layout.empty()) {
    FailureOr<Drawing> drawing = drawingOfOptions();
    if (failed(drawing))
      return failure();
    drawings.push_back(std::move(*drawing));
    return success();
  }
  llvm::StringSet<> seen;
  AttrTypeWalker types;
  types.addWalk([&](Type type) {
    std::optional<Drawing> drawing = getDrawing(type);
    if (!drawing)
      return;
    std::string key;
    llvm::raw_string_ostream(key) << drawing->attribute << drawing->map();
    if (seen.insert(key).second)
      drawings.push_back(std::move(*drawing));
  });
  getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
    types.walk(op->getAttrDictionary());
    for (Type type : op->getResultTypes())
      types.walk(type);
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        types.walk(argument.getType());
  });
  return success();
}

LogicalResult AttnPrintLayoutsPass::print(const Drawing &drawing,
                                          size_t index) {
  ModuleOp module = getOperation();
  auto draw = [&](PictureFormat format, raw_ostream &os) -> LogicalResult {
    llvm::Error error = std::visit(
        [&](const auto &layout) { return printPicture(layout, format, os); },
        drawing.layout);
    if (error)
      return module.emitError(llvm::toString(std::move(error)));
    return success();
  };
  if (!svg) {
    llvm::outs() << drawing.title() << "\n" << drawing.map() << "\n";
    LogicalResult result = draw(PictureFormat::Text, llvm::outs());
    llvm::outs() << "\n";
    return result;
  }
  if (std::error_code code = llvm::sys::fs::create_directories(outputDir))
    return module.emitError("cannot make the folder '")
           << outputDir << "': " << code.message();
  SmallString<128> path(outputDir);
  llvm::sys::path::append(path, drawing.stem(index) + ".svg");
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (failed(draw(PictureFormat::Svg, stream)))
    return failure();
  if (llvm::Error error = writeOutput(path, text))
    return module.emitError(llvm::toString(std::move(error)));
  llvm::outs() << drawing.title() << ": " << path << "\n";
  return success();
}

void AttnPrintLayoutsPass::runOnOperation() {
  markAllAnalysesPreserved();
  SmallVector<Drawing, 0> drawings;
  if (failed(collect(drawings)))
    return signalPassFailure();
  for (auto [index, drawing] : llvm::enumerate(drawings))
    if (failed(print(drawing, index)))
      return signalPassFailure();
}
