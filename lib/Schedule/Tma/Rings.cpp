//===- Rings.cpp - Rings of shared memory and their channels --------------===//

#include "Rings.h"
#include "RingFacts.h"
#include "attn/Layout/SharedLayout.h"

using namespace mlir;
using namespace mlir::attn;

Value attn::makeChannel(ImplicitLocOpBuilder &b, StringRef name, int64_t stages,
                        ArrayRef<std::pair<Role, SignalKind>> roles,
                        ArrayRef<StringRef> firstParts,
                        ArrayRef<StringRef> secondParts) {
  MLIRContext *mlir = b.getContext();
  ArrayRef<StringRef> parts[] = {firstParts, secondParts};
  SmallVector<Attribute> attributes;
  for (auto [index, entry] : llvm::enumerate(roles)) {
    auto [role, signal] = entry;
    SmallVector<StringAttr> names;
    for (StringRef part : index < 2 ? parts[index] : ArrayRef<StringRef>())
      names.push_back(StringAttr::get(mlir, part));
    SmallVector<StringAttr> partitions = {
        StringAttr::get(mlir, role.partition)};
    if (!role.second.empty())
      partitions.push_back(StringAttr::get(mlir, role.second));
    attributes.push_back(
        RoleAttr::get(mlir, role.name, signal, partitions, names));
  }
  return ChannelCreateOp::create(b, ChannelType::get(mlir, stages),
                                 b.getStringAttr(name),
                                 b.getArrayAttr(attributes));
}

/// Allocates memory that has two shapes, and returns it as both. It begins
/// where the larger swizzle of the two may.
static std::pair<Value, Value> allocOfTwoShapes(const AttentionTile &tile,
                                                StringRef name,
                                                BufferType first,
                                                BufferType second) {
  auto getSpan = [](BufferType type) {
    return SharedLayout::chooseSpan(
        type.getShape().back(), type.getElementType().getIntOrFloatBitWidth());
  };
  bool isFirst = getSpan(second) <= getSpan(first);
  Value memory = tile.alloc(name, isFirst ? first : second);
  Value other = ReinterpretOp::create(tile.b, isFirst ? second : first, memory);
  return isFirst ? std::pair(memory, other) : std::pair(other, memory);
}

Ring attn::makeRing(const TileWalk &walk, const RingSpec &spec) {
  const AttentionTile &tile = walk.tile;
  Ring ring;
  ring.name = spec.tensor.empty() ? spec.name : spec.tensor;
  ring.holds = spec.holds;
  ring.view = spec.view;
  ring.placeRows = spec.placeRows;
  Type type = spec.elementType ? spec.elementType : tile.facts.elementType;
  BufferType slots = tile.bufferType(
      {spec.stages * spec.together, spec.rows, spec.columns}, type);
  if (spec.otherShape.empty())
    ring.buffer = tile.alloc(spec.name, slots);
  else
    std::tie(ring.buffer, ring.otherBuffer) = allocOfTwoShapes(
        tile, spec.name, slots, tile.bufferType(spec.otherShape, type));
  ring.slotType = tile.bufferType({spec.rows, spec.columns}, type);
  ring.channel = makeChannel(
      tile.b, spec.name, spec.stages,
      {{spec.from, spec.isLoaded ? SignalKind::Tx : SignalKind::Arrive},
       {spec.to, spec.signal}});
  if (spec.isLoaded)
    addMap(walk, ring);
  return ring;
}

Ring attn::makeValueRing(const TileWalk &walk, int64_t stages, Role from,
                         Role to) {
  const ProblemFacts &facts = walk.context.facts;
  RingSpec spec = {"v",
                   RingRows::Keys,
                   stages,
                   walk.plan.blockN,
                   getValueColumns(facts),
                   from,
                   to};
  if (facts.hasTransposedValues()) {
    spec.rows = facts.valueDim;
    spec.columns = walk.plan.blockN;
    spec.view = TensorMapView::Transposed;
  }
  return makeRing(walk, spec);
}

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

/// Returns the extents of a box of `rows` rows of queries before its columns.
static SmallVector<int64_t> getQueryBox(const AttentionTile &tile,
                                        int64_t rows) {
  if (tile.group == 1 || tile.group % rows == 0)
    return {1, 1, rows};
  assert(rows % tile.group == 0 && "expected boxes of whole queries");
  return {1, rows / tile.group, tile.group};
}

void attn::addMap(const TileWalk &walk, Ring &ring) {
  const AttentionTile &tile = walk.tile;
  const ProblemFacts &facts = tile.facts;
  // A sequence ends before the tensor does: what lies after its end belongs to
  // others, and 0 times it may not be 0.
  int64_t rows = ring.placeRows ? ring.placeRows : ring.slotType.getShape()[0],
          columns = ring.slotType.getShape()[1];
  TensorMapView asked = ring.view;
  ring.boxRows = rows;
  if (ring.holds == RingRows::Keys && gathersKeys(facts)) {
    ring.view = TensorMapView::Rows;
  } else if (ring.holds == RingRows::Keys && tile.source->isBounded()) {
    ring.view = TensorMapView::Bounded;
    ring.boxRows = getBoxRows(facts, rows);
  } else if (facts.varlen) {
    ring.view = TensorMapView::Packed;
  }
  unsigned bits = ring.slotType.getElementType().getIntOrFloatBitWidth();
  int64_t span = SharedLayout::chooseSpan(columns, bits);
  SmallVector<int64_t> box = {1, 1, ring.boxRows / ring.ctas};
  if (ring.holds == RingRows::Queries && tile.group != 1) {
    assert(ring.ctas == 1 && "expected each CTA to load its own queries");
    ring.view =
        isPacked(ring.view) ? TensorMapView::PackedByRow : TensorMapView::ByRow;
    box = getQueryBox(tile, rows);
  }
  box.push_back(span * 8 / bits);
  if (ring.view == TensorMapView::Bounded)
    box.insert(box.begin(), 1);
  if (ring.view == TensorMapView::Rows)
    box = {1, box.back()};
  // Two of every four rows go to each half of the slot.
  if (asked == TensorMapView::Quads)
    box = {1, 1, rows / 4, 2, span * 8 / bits};
  ring.map = tile.context.getTensorMap(ring.name, box, span, ring.view);
  if (ring.holds == RingRows::Keys && facts.hasAddedKeys())
    ring.frontMap = tile.context.getTensorMap(("added_" + ring.name).str(), box,
                                              span, ring.view);
  if (ring.view == TensorMapView::Bounded && facts.isPaged())
    addSpare(tile.context, ring);
}

void attn::addSpare(KernelContext &context, Ring &ring) {
  auto map = cast<TensorMapType>(ring.map.getType());
  ArrayRef<int64_t> box = map.getBox();
  TensorMapView view = TensorMapView::Whole;
  SmallVector<int64_t> spareBox(box);
  if (ring.view == TensorMapView::Bounded) {
    // As many rows in the same number of dimensions.
    view = TensorMapView::Quads;
    spareBox = {1, 1, ring.boxRows / ring.ctas / 4, 4, box.back()};
  }
  ring.spare =
      context.getTensorMap(ring.name, spareBox, map.getSwizzle(), view);
  // Loads that CTAs share have one map.
  if (ring.view == TensorMapView::Bounded && ring.ctas == 1)
    ring.whole =
        context.getTensorMap(ring.name, {1, 1, ring.boxRows, box.back()},
                             map.getSwizzle(), TensorMapView::Whole);
}

void attn::prefetchMaps(ImplicitLocOpBuilder &b, ArrayRef<Value> maps) {
  for (Value map : maps)
    if (map)
      TmaPrefetchOp::create(b, map);
}

//===----------------------------------------------------------------------===//
// Numbers of rows
//===----------------------------------------------------------------------===//

Value attn::allocRowNumbers(ImplicitLocOpBuilder &b, StringRef name,
                            int64_t stages, int64_t rows, Type type) {
  auto buffer = BufferType::get(
      b.getContext(), {stages, rows, 1}, type ? type : Type(b.getF32Type()),
      RowLayoutAttr::get(b.getContext()), MemorySpace::Shared);
  return AllocOp::create(b, buffer, b.getStringAttr(name), IntegerAttr(),
                         StringAttr());
}

Value attn::getRowNumbers(ImplicitLocOpBuilder &b, Value slot, Value ring) {
  auto type = cast<BufferType>(ring.getType());
  auto makeType = [&](ArrayRef<int64_t> shape) {
    return BufferType::get(b.getContext(), shape, type.getElementType(),
                           type.getLayout(), type.getSpace());
  };
  Value column = SlotOp::create(b, makeType(type.getSlotShape()), ring,
                                slot.getDefiningOp<SlotOp>().getIndex(),
                                /*distance=*/IntegerAttr());
  return ReinterpretOp::create(b, makeType(type.getSlotShape().drop_back()),
                               column);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

Value attn::makeResultMap(const AttentionTile &tile, int64_t rows,
                          int64_t columns) {
  unsigned bits = tile.facts.outType.getIntOrFloatBitWidth();
  int64_t span = SharedLayout::chooseSpan(columns, bits);
  SmallVector<int64_t> box = getQueryBox(tile, rows);
  box.push_back(span == 0 ? columns : span * 8 / bits);
  return tile.context.getTensorMap("o", box, span,
                                   tile.group == 1 ? TensorMapView::Whole
                                                   : TensorMapView::ByRow);
}

SmallVector<Value> attn::getResultStart(const AttentionTile &tile,
                                        int64_t firstColumn) {
  Value column = tile.context.i32(firstColumn);
  if (tile.group == 1)
    return {tile.at.batch, tile.at.head, tile.row, column};
  Value group = tile.context.i32(tile.group), head = tile.at.head;
  Value query = arith::DivUIOp::create(tile.b, tile.row, group);
  // Some of a query's heads.
  if (tile.group > tile.blockM)
    head = arith::AddIOp::create(
        tile.b, head, arith::RemUIOp::create(tile.b, tile.row, group));
  return {tile.at.batch, query, head, column};
}

Value attn::allocResults(const AttentionTile &tile) {
  MLIRContext *mlir = tile.b.getContext();
  return tile.alloc(
      "o", BufferType::get(mlir, {tile.blockM, tile.facts.valueDim},
                           tile.facts.outType, AutoLayoutAttr::get(mlir),
                           MemorySpace::Shared));
}
