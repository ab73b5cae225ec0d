//===- CopiedMemory.cpp - What cp.async copies, and where to --------------===//

#include "CopiedMemory.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

SmallVector<CopiedMemory::Columns>
CopiedMemory::listGroups(int64_t columns) const {
  SmallVector<Columns> list;
  for (int64_t first = 0; first < columns; first += extents.groupColumns)
    list.push_back({first, extents.groupColumns, extents.groupColumns});
  return list;
}

SmallVector<CopiedMemory::Columns>
CopiedMemory::listSlices(int64_t columns, int64_t room) const {
  int64_t slice = plan.getSlice();
  if (!slice)
    return {{0, 0, room}};
  SmallVector<Columns> list;
  for (int64_t first = 0; first < columns; first += slice)
    list.push_back({first, std::min(slice, columns - first), slice});
  return list;
}

SmallVector<CopiedMemory::Columns> CopiedMemory::listKeyColumns() const {
  const ProblemFacts &facts = tile.facts;
  Columns rope = {facts.valueDim, facts.getRopeColumns(),
                  facts.getRopeColumns()};
  if (extents.groupColumns && !extents.isLatent)
    return listGroups(facts.headDim);
  if (extents.groupColumns) {
    SmallVector<Columns> list = listGroups(facts.valueDim);
    if (rope.count)
      list.push_back(rope);
    return list;
  }
  if (facts.kRope)
    return {{0, facts.valueDim, facts.valueDim}, rope};
  return listSlices(facts.headDim, extents.keyColumns);
}

SmallVector<CopiedMemory::Columns> CopiedMemory::listValueColumns() const {
  if (extents.isLatent)
    return {};
  if (extents.groupColumns)
    return listGroups(tile.facts.valueDim);
  return listSlices(tile.facts.valueDim, extents.valueColumns);
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

void CopiedMemory::makeViews() {
  const ProblemFacts &facts = tile.facts;
  KeySource &source = *tile.source;
  for (const Columns &columns : listKeyColumns())
    queries.push_back({emitQueryView(tile, columns.first, columns.count), {}});
  SmallVector<CopiedColumns> block;
  for (const Columns &columns : listKeyColumns())
    block.push_back(
        {isRope(columns) && facts.kRope
             ? source.emitView("k_rope", tile.at)
             : source.emitView("k", tile.at, columns.first, columns.count),
         {}});
  keys.assign(plan.getParts(), block);
  block.clear();
  for (const Columns &columns : listValueColumns())
    block.push_back(
        {source.emitView("v", tile.at, columns.first, columns.count), {}});
  values.assign(plan.getParts(), block);
  if (facts.kScales)
    keyScales.view = source.emitView("k_scales", tile.at);
  if (facts.vScales)
    valueScales.view = source.emitView("v_scales", tile.at);
}

bool CopiedMemory::loadsQueries() const {
  return plan.loadsQueries() &&
         llvm::all_of(llvm::zip_equal(queries, listKeyColumns()),
                      [](auto pair) {
                        auto [query, columns] = pair;
                        auto view = cast<GlobalType>(query.view.getType());
                        return view.getShape().back() == columns.room;
                      });
}

RankedTensorType CopiedMemory::getQueryTile(size_t i) const {
  return tile.tileType({tile.blockM, listKeyColumns()[i].room},
                       tile.facts.elementType);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void CopiedMemory::allocate() {
  if (plan.getStreamsQ()) {
    Value ring = tile.alloc(
        "q", tile.bufferType({plan.getStages(), tile.blockM, plan.getSlice()}));
    for (CopiedColumns &slice : queries)
      slice.memory = ring;
  } else if (!loadsQueries()) {
    for (auto [i, columns] : llvm::enumerate(queries))
      columns.memory = tile.alloc(i == 0 ? "q" : "q" + std::to_string(i),
                                  tile.bufferType(getQueryTile(i).getShape()));
  }
  allocateRings();
}

BufferType CopiedMemory::getRing(const Columns &columns,
                                 Type elementType) const {
  SmallVector<int64_t> shape = {plan.getStages(), partN, columns.room};
  if (!extents.isLatent || extents.groupColumns || tile.facts.kRope)
    return tile.bufferType(shape, elementType);
  // Panels of one width, so that the first ones are the values.
  auto layout = SwizzledLayoutAttr::get(
      tile.b.getContext(),
      SharedLayout::chooseSpan(columns.room,
                               elementType.getIntOrFloatBitWidth()));
  return BufferType::get(tile.b.getContext(), shape, elementType, layout,
                         MemorySpace::Shared);
}

Value CopiedMemory::allocateScales(StringRef name,
                                   const TensorFacts &scales) const {
  int64_t groups = extents.groupColumns ? scales.shape.back() : 1;
  Builder &b = tile.b;
  return tile.alloc(
      name, BufferType::get(b.getContext(), {plan.getStages(), partN, groups},
                            b.getF32Type(), RowLayoutAttr::get(b.getContext()),
                            MemorySpace::Shared));
}

void CopiedMemory::allocateRings() {
  const ProblemFacts &facts = tile.facts;
  SmallVector<Columns> keyColumns = listKeyColumns(),
                       valueColumns = listValueColumns();
  if (plan.sharesRing()) {
    Value ring = tile.alloc("kv", getRing(keyColumns.front(), facts.keyType));
    for (auto *columns : {&keys.front(), &values.front()})
      for (CopiedColumns &slice : *columns)
        slice.memory = ring;
    return;
  }
  bool hasGroups = extents.groupColumns != 0;
  auto allocateEach = [&](StringRef name, int64_t part,
                          ArrayRef<Columns> columns,
                          MutableArrayRef<CopiedColumns> block) {
    for (auto [i, each] : llvm::enumerate(columns)) {
      if (isRope(each))
        continue;
      std::string suffix;
      if (hasGroups || plan.getParts() != 1)
        suffix = std::to_string(hasGroups ? int64_t(i) : part);
      block[i].memory =
          tile.alloc((name + suffix).str(), getRing(each, facts.keyType));
    }
  };
  auto allocateRope = [&] {
    if (!isRope(keyColumns.back()))
      return;
    Type type = facts.kRope ? facts.elementType : facts.keyType;
    keys.front().back().memory =
        tile.alloc("k_rope", getRing(keyColumns.back(), type));
  };
  if (hasGroups) {
    allocateEach("k", 0, keyColumns, keys.front());
    allocateRope();
    if (facts.kScales)
      keyScales.memory = allocateScales("k_scales", facts.kScales);
    allocateEach("v", 0, valueColumns, values.front());
    if (facts.vScales)
      valueScales.memory = allocateScales("v_scales", facts.vScales);
    return;
  }
  allocateRope();
  if (facts.kScales) {
    keyScales.memory = allocateScales("k_scales", facts.kScales);
    valueScales.memory = allocateScales("v_scales", facts.vScales);
  }
  for (int64_t part = 0; part < plan.getParts(); ++part) {
    allocateEach("k", part, keyColumns, keys[part]);
    allocateEach("v", part, valueColumns, values[part]);
  }
}

Value CopiedMemory::stage(const CopiedColumns &columns, Value first) const {
  auto ring = cast<BufferType>(columns.memory.getType());
  auto slot =
      BufferType::get(ring.getContext(), ring.getSlotShape(),
                      ring.getElementType(), ring.getLayout(), ring.getSpace());
  return StageOp::create(tile.b, slot, columns.view, first, columns.memory);
}
