//===- CopyOps.cpp - Global memory and asynchronous copies ----------------===//

#include "../Completion.h"
#include "../RowNumbers.h"
#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

/// Checks the alignment of a view's rows.
static LogicalResult verifyAlignment(Operation *op, GlobalType type,
                                     std::optional<uint64_t> alignment) {
  int64_t elementBytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  if (!alignment || (llvm::isPowerOf2_64(*alignment) &&
                     static_cast<int64_t>(*alignment) >= elementBytes))
    return success();
  return op->emitOpError("expected an alignment that is a power of two of at "
                         "least ")
         << elementBytes << " bytes, got " << *alignment;
}

LogicalResult GlobalViewOp::verify() {
  if (getGroup().has_value() != static_cast<bool>(getMembers()))
    return emitOpError("expected both 'group' and 'members' or neither, got "
                       "one");
  if (std::optional<uint64_t> group = getGroup();
      group && static_cast<int64_t>(*group) < 1)
    return emitOpError("expected groups of at least one row, got ")
           << static_cast<int64_t>(*group);
  if (std::optional<uint64_t> present = getPresent();
      present && (*present < 1 || *present > getGroup().value_or(0)))
    return emitOpError("expected 1 to ")
           << getGroup().value_or(0) << " rows of a group in 'present', got "
           << static_cast<int64_t>(*present);
  GlobalType type = getType();
  if (Type element = type.getElementType();
      getFirst() &&
      (type.getRank() != 1 ||
       (element.getIntOrFloatBitWidth() != 8 && !element.isInteger(32))))
    return emitOpError("expected in tiles one element of 8 bits or i32 a row, "
                       "got ")
           << type;
  return verifyAlignment(*this, getType(), getAlignment());
}

LogicalResult PageRowsOp::verify() {
  return verifyRowNumbers(*this, getDest().getType());
}

LogicalResult PagedViewOp::verify() {
  int64_t page = getPage();
  if (page < 1 || page >= int64_t(1) << 31)
    return emitOpError("expected 'page' in [1, 2^31), got ") << page;
  return verifyAlignment(*this, getType(), getAlignment());
}

LogicalResult JoinedViewOp::verify() {
  for (auto [name, view] :
       {std::pair("front", getFront()), std::pair("back", getBack())})
    if (!view.getDefiningOp<PagedViewOp>())
      return emitOpError("expected '")
             << name << "' to be a result of attn.paged_view";
  return success();
}

/// Checks that rows of a view can be moved to or from something of `shape`.
static LogicalResult verifyRows(Operation *op, GlobalType view,
                                ArrayRef<int64_t> shape, Type elementType,
                                bool allowPadding) {
  if (view.getElementType() != elementType)
    return op->emitOpError("expected the element type ")
           << view.getElementType() << " of the view, got " << elementType;
  if (static_cast<int64_t>(shape.size()) != view.getRank())
    return op->emitOpError("expected rank ")
           << view.getRank() << " of the view, got rank " << shape.size();
  if (view.getRank() == 1)
    return success();
  if (shape[1] < view.getColumns() ||
      (!allowPadding && shape[1] != view.getColumns()))
    return op->emitOpError("expected ")
           << (allowPadding ? "at least " : "") << view.getColumns()
           << " columns, got " << shape[1];
  return success();
}

LogicalResult CpAsyncOp::verify() {
  BufferType dest = getDest().getType();
  return verifyRows(*this, getSource().getType(), dest.getShape(),
                    dest.getElementType(), /*allowPadding=*/true);
}

void CpAsyncOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getSourceMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getDestMutable());
  effects.emplace_back(MemoryEffects::Write::get(), AsyncGroups::get());
}

LogicalResult CpAsyncWaitOp::verify() {
  return verifyPendingGroups(*this, getPending());
}

LogicalResult GlobalLoadOp::verify() {
  auto tile = cast<RankedTensorType>(getType());
  return verifyRows(*this, getSource().getType(), tile.getShape(),
                    tile.getElementType(), /*allowPadding=*/false);
}

/// Checks the rows that a tile is stored to, which may have elements of another
/// type than the tile.
static LogicalResult verifyStoredRows(Operation *op, GlobalType dest,
                                      RankedTensorType tile) {
  SmallVector<int64_t> shape(tile.getShape());
  Type type = tile.getElementType(), stored = dest.getElementType();
  bool isPaired = isa<Float4E2M1FNType>(type) && stored.isInteger(8);
  if (isPaired && shape.size() == 2)
    shape.back() /= 2;
  // A thread has one of a row's numbers.
  bool hasOne = shape.size() == 1 ||
                isa_and_nonnull<PartialLayoutAttr>(tile.getEncoding());
  bool isRounded = hasOne && type.isF32() &&
                   isa<Float8E4M3FNType, Float8E8M0FNUType>(stored);
  return verifyRows(op, dest, shape, isPaired || isRounded ? stored : type,
                    /*allowPadding=*/true);
}

LogicalResult GlobalStoreOp::verify() {
  return verifyStoredRows(*this, getDest().getType(),
                          cast<RankedTensorType>(getValue().getType()));
}

LogicalResult GlobalMaxOp::verify() {
  auto tile = cast<RankedTensorType>(getValue().getType());
  if (!tile.getElementType().isF32())
    return emitOpError("expected a tile of f32, got ") << tile;
  GlobalType rows = getRows().getType();
  SmallVector<int64_t> shape(tile.getShape());
  if (rows.getElementType().isInteger(8) && shape.size() == 2) {
    if (shape.back() % 2 != 0)
      return emitOpError(
                 "expected an even number of columns beside pairs, got ")
             << shape.back();
    shape.back() /= 2;
  }
  return verifyRows(*this, rows, shape, rows.getElementType(),
                    /*allowPadding=*/true);
}

LogicalResult CopyOutOp::verify() {
  BufferType source = getSource().getType();
  return verifyRows(*this, getDest().getType(), source.getShape(),
                    source.getElementType(), /*allowPadding=*/true);
}

LogicalResult StoreResultOp::verify() {
  auto tile = cast<RankedTensorType>(getValue().getType());
  if (!getMap() && !getCoords().empty())
    return emitOpError("expected coordinates with a map only, got ")
           << getCoords().size();
  if (getMap()) {
    auto map = cast<TensorMapType>(getMap().getType());
    if (getCoords().size() != size_t(map.getRank()))
      return emitOpError("expected ")
             << map.getRank() << " coordinates, got " << getCoords().size();
    if (map.getElementType() != tile.getElementType())
      return emitOpError("expected the element type ")
             << map.getElementType() << " of the map, got "
             << tile.getElementType();
  }
  return verifyStoredRows(*this, getDest().getType(), tile);
}
