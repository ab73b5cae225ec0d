//===- RingEmitter.cpp - Rings that TMA fills -----------------------------===//

#include "RingEmitter.h"
#include "RingFacts.h"

using namespace mlir;
using namespace mlir::attn;

Value RingEmitter::makeChannel(StringRef name, int64_t stages,
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

TileDealer
RingEmitter::makeDealer(ArrayRef<std::pair<Role, SignalKind>> roles) {
  TileDealer dealer;
  dealer.counter =
      context.addWorkspace({/*bytes=*/4, /*zeroed=*/true, /*restored=*/true});
  dealer.channel = makeChannel("tile", kTileStages, roles);
  dealer.ring = alloc(
      "tile", BufferType::get(b.getContext(), {kTileStages}, b.getI32Type(),
                              AutoLayoutAttr::get(b.getContext()),
                              MemorySpace::Shared));
  return dealer;
}

void RingEmitter::setDealer(TileLoopOp loop, const TileDealer &dealer) {
  if (!dealer.counter)
    return;
  loop.getCounterMutable().assign(dealer.counter);
  loop.getChannelMutable().assign(dealer.channel);
  loop.getRingMutable().assign(dealer.ring);
}

Ring RingEmitter::makeRing(const RingSpec &spec) {
  Ring ring;
  ring.name = spec.tensor.empty() ? spec.name : spec.tensor;
  ring.holds = spec.holds;
  ring.view = spec.view;
  Type type = spec.elementType ? spec.elementType : facts.elementType;
  ring.buffer = alloc(
      spec.name,
      bufferType({spec.stages * spec.together, spec.rows, spec.columns}, type));
  ring.slotType = bufferType({spec.rows, spec.columns}, type);
  ring.channel = makeChannel(
      spec.name, spec.stages,
      {{spec.from, spec.isLoaded ? SignalKind::Tx : SignalKind::Arrive},
       {spec.to, spec.signal}});
  if (spec.isLoaded)
    addMap(ring);
  return ring;
}

void RingEmitter::addMap(Ring &ring) {
  // A sequence ends before the tensor does: what lies behind its end belongs to
  // others, and 0 times it may not be 0.
  int64_t rows = ring.slotType.getShape()[0],
          columns = ring.slotType.getShape()[1];
  TensorMapView asked = ring.view;
  ring.boxRows = rows;
  if (ring.holds == RingRows::Keys && source->isBounded()) {
    ring.view = TensorMapView::Bounded;
    ring.boxRows = getBoxRows(facts, rows);
  } else if (facts.varlen) {
    ring.view = TensorMapView::Packed;
  }
  unsigned bits = ring.slotType.getElementType().getIntOrFloatBitWidth();
  int64_t span = SharedLayout::chooseSpan(columns, bits);
  SmallVector<int64_t> box = {1, 1, ring.boxRows / ring.ctas};
  if (ring.holds == RingRows::Queries && group != 1) {
    assert(ring.ctas == 1 && "expected each CTA to load its own queries");
    ring.view =
        isPacked(ring.view) ? TensorMapView::PackedByRow : TensorMapView::ByRow;
    box = getQueryBox(rows);
  }
  box.push_back(span * 8 / bits);
  if (ring.view == TensorMapView::Bounded)
    box.insert(box.begin(), 1);
  // Of every four rows two go to each half of the slot.
  if (asked == TensorMapView::Quads)
    box = {1, 1, rows / 4, 2, span * 8 / bits};
  ring.map = context.getTensorMap(ring.name, box, span, ring.view);
  if (ring.view == TensorMapView::Bounded && facts.isPaged())
    addSpare(ring);
}

void RingEmitter::addSpare(Ring &ring) {
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

Ring RingEmitter::makeValueRing(int64_t stages, Role from, Role to) {
  RingSpec spec = {"v",
                   RingRows::Keys,
                   stages,
                   tilePlan.blockN,
                   getValueColumns(facts),
                   from,
                   to};
  if (facts.hasTransposedValues()) {
    spec.rows = facts.valueDim;
    spec.columns = tilePlan.blockN;
    spec.view = TensorMapView::Transposed;
  }
  return makeRing(spec);
}

Value RingEmitter::makeResultMap(int64_t rows, int64_t columns) {
  unsigned bits = facts.outType.getIntOrFloatBitWidth();
  int64_t span = SharedLayout::chooseSpan(columns, bits);
  SmallVector<int64_t> box = getQueryBox(rows);
  box.push_back(span == 0 ? columns : span * 8 / bits);
  return context.getTensorMap(
      "o", box, span, group == 1 ? TensorMapView::Whole : TensorMapView::ByRow);
}

SmallVector<Value> RingEmitter::emitResultStart(int64_t firstColumn) {
  Value column = context.i32(firstColumn);
  if (group == 1)
    return {at.batch, at.head, row, column};
  return {at.batch, emitQuery(row), at.head, column};
}

SmallVector<int64_t> RingEmitter::getQueryBox(int64_t rows) const {
  if (group == 1)
    return {1, 1, rows};
  if (group % rows == 0)
    return {1, 1, rows};
  assert(rows % group == 0 && "expected boxes of whole queries");
  return {1, rows / group, group};
}

Value RingEmitter::emitQuery(Value row) {
  if (group == 1)
    return row;
  return arith::DivUIOp::create(b, row, context.i32(group));
}

Value RingEmitter::allocResults() {
  return alloc("o", BufferType::get(b.getContext(), {blockM, facts.valueDim},
                                    facts.outType,
                                    AutoLayoutAttr::get(b.getContext()),
                                    MemorySpace::Shared));
}

std::pair<Value, Value> RingEmitter::acquire(const Ring &ring, Value cursor,
                                             StringRef role) {
  auto op = ChannelAcquireOp::create(b, ring.channel, cursor, role);
  Value slot = SlotOp::create(b, ring.slotType, ring.buffer, op.getIndex(),
                              /*distance=*/IntegerAttr());
  return {slot, op.getToken()};
}

Value RingEmitter::allocRowNumbers(StringRef name, int64_t stages,
                                   int64_t rows) {
  return alloc(name, BufferType::get(b.getContext(), {stages, rows, 1},
                                     b.getF32Type(),
                                     RowLayoutAttr::get(b.getContext()),
                                     MemorySpace::Shared));
}

Value RingEmitter::emitRowNumbers(Value slot, Value ring) {
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

RingEmitter::BoxStarts RingEmitter::emitBoxStart(const Ring &ring, Value head,
                                                 Value first, Value column) {
  Value zero = context.i32(0);
  if (!column)
    column = zero;
  switch (ring.view) {
  case TensorMapView::Whole:
    return {{at.batch, head, first, column}, {}};
  case TensorMapView::Transposed:
    return {{at.batch, head, zero, first}, {}};
  case TensorMapView::Quads: {
    Value quad = arith::DivUIOp::create(b, first, context.i32(4));
    return {{at.batch, head, quad, zero, zero}, {}};
  }
  case TensorMapView::ByRow:
    // Some of a query's heads.
    if (group > ring.slotType.getShape()[0])
      head = arith::AddIOp::create(
          b, head, arith::RemUIOp::create(b, first, context.i32(group)));
    return {{at.batch, emitQuery(first), head, column}, {}};
  case TensorMapView::Bounded:
    llvm_unreachable("loadBounded makes these");
  case TensorMapView::Packed:
  case TensorMapView::PackedByRow:
    break;
  }
  if (isByRow(ring.view))
    first = emitQuery(first);
  bool isQueries = ring.holds == RingRows::Queries;
  Value length = isQueries ? queries : keys;
  Value start = arith::TruncIOp::create(b, b.getI32Type(),
                                        isQueries ? queryStart : keyStart);
  Value end = arith::AddIOp::create(b, start, length);
  Value shift = arith::SubIOp::create(b, context.getRows(ring.name), length);
  Value place = arith::AddIOp::create(b, shift, first);
  // A tile that lacks beside others, and the part of a block that lies behind
  // the last key, load the last row: TMA reads the address of a map, here in
  // front of the tensor, for a box without any.
  bool mayLack = isQueries ? tilePlan.getTogether() > 1
                           : ring.slotType.getShape()[0] < tilePlan.blockN;
  if (mayLack)
    place = arith::MinSIOp::create(
        b, place,
        arith::SubIOp::create(b, context.getRows(ring.name), context.i32(1)));
  BoxStarts box = {{end, head, place, column}, {}};
  if (isByRow(ring.view))
    std::swap(box.coords[1], box.coords[2]);
  if (ring.spare)
    box.outside.push_back(arith::CmpIOp::create(
        b, arith::CmpIPredicate::sge, column, context.i32(facts.headDim)));
  return box;
}

RingEmitter::BoxStarts RingEmitter::emitBoundedStarts(const Ring &ring,
                                                      Value head, Value first,
                                                      Value column,
                                                      ArrayRef<Value> leads) {
  BoxStarts start;
  Value all = context.getRows(ring.name);
  for (auto [i, lead] : llvm::enumerate(leads)) {
    KeyRows rows = source->emitRows(emitBoxRow(ring, first, i));
    // The last of the lead's own rows is the last one of the map.
    Value shift = arith::SubIOp::create(b, all, rows.end);
    Value place = arith::AddIOp::create(b, shift, rows.row);
    start.coords.append({lead, rows.end, head, place, column});
    if (!ring.spare)
      continue;
    // Of CTAs that share a box each asks for its own part.
    if (ring.ctas > 1)
      place = arith::AddIOp::create(
          b, place,
          arith::MulIOp::create(b, rank,
                                context.i32(ring.boxRows / ring.ctas)));
    Value isBehind =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, place, all);
    start.outside.push_back(
        arith::OrIOp::create(b, isBehind, source->emitIsAbsent(lead)));
  }
  return start;
}

RingEmitter::BoxStarts RingEmitter::emitWholeStarts(const Ring &ring,
                                                    Value head, Value first,
                                                    Value column,
                                                    ArrayRef<Value> leads) {
  BoxStarts start;
  Value all = context.getRows(ring.name);
  for (auto [i, lead] : llvm::enumerate(leads)) {
    Value row = source->emitRows(emitBoxRow(ring, first, i)).row;
    start.coords.push_back(lead);
    if (!ring.whole)
      start.coords.push_back(all);
    start.coords.append({head, row, column});
  }
  return start;
}

Value RingEmitter::emitBoxRow(const Ring &ring, Value first, int64_t box) {
  return b.createOrFold<arith::AddIOp>(first, context.i32(box * ring.boxRows));
}

void RingEmitter::loadBounded(const Ring &ring, Value slot, Value token,
                              Value head, Value first, Value column,
                              Value lead) {
  if (!column)
    column = context.i32(0);
  SmallVector<Value> leads;
  for (int64_t i = 0, e = ring.slotType.getShape()[0] / ring.boxRows; i < e;
       ++i)
    leads.push_back(
        i == 0 && lead ? lead : source->emitLead(emitBoxRow(ring, first, i)));
  if (!ring.spare) {
    emitLoad(ring, slot, token,
             emitBoundedStarts(ring, head, first, column, leads));
    return;
  }
  // To choose a map for each box takes longer than to start the copy. All but
  // a sequence's last block are of whole boxes, unless an id is wrong.
  Value highest = leads.front();
  for (Value other : ArrayRef(leads).drop_front())
    highest = arith::MaxUIOp::create(b, highest, other);
  Value end =
      arith::AddIOp::create(b, first, context.i32(ring.slotType.getShape()[0]));
  Value ends =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, end, source->length);
  auto branch = scf::IfOp::create(
      b, arith::OrIOp::create(b, ends, source->emitIsAbsent(highest)),
      /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emitLoad(ring, slot, token,
           emitBoundedStarts(ring, head, first, column, leads));
  b.setInsertionPointToStart(branch.elseBlock());
  Ring whole = ring;
  if (ring.whole)
    whole.map = ring.whole;
  emitLoad(whole, slot, token,
           emitWholeStarts(ring, head, first, column, leads));
}

void RingEmitter::load(const Ring &ring, Value cursor, StringRef role,
                       Value head, Value first) {
  // The table is read in front of the wait: its first entry brings the others
  // near. All of them would take registers that nobody has.
  Value lead;
  if (ring.view == TensorMapView::Bounded)
    lead = source->emitLead(first);
  auto [slot, token] = acquire(ring, cursor, role);
  fill(ring, slot, token, head, first, /*column=*/Value(), lead);
  release(ring, token, role);
}

void RingEmitter::fill(const Ring &ring, Value slot, Value token, Value head,
                       Value first, Value column, Value lead) {
  if (ring.view == TensorMapView::Bounded)
    loadBounded(ring, slot, token, head, first, column, lead);
  else
    emitLoad(ring, slot, token, emitBoxStart(ring, head, first, column));
}

void RingEmitter::emitLoad(const Ring &ring, Value slot, Value token,
                           const BoxStarts &start) {
  int64_t boxes = ring.view == TensorMapView::Quads
                      ? 2
                      : ring.slotType.getShape()[0] / ring.boxRows;
  IntegerAttr stacked, multicast;
  if (boxes != 1)
    stacked = b.getI64IntegerAttr(boxes);
  if (ring.ctas != 1)
    multicast = b.getI64IntegerAttr(ring.ctas);
  TmaLoadOp::create(b, ring.map, start.coords, slot, token,
                    /*barriers=*/Value(), /*index=*/Value(),
                    start.outside.empty() ? Value() : ring.spare, start.outside,
                    multicast, stacked);
}

void RingEmitter::prefetchMaps(ArrayRef<Value> maps) {
  for (Value map : maps)
    if (map)
      TmaPrefetchOp::create(b, map);
}

void RingEmitter::elect(function_ref<void()> emit) {
  auto op = ElectOp::create(b);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&op.getBody());
  auto end = YieldOp::create(b, ValueRange());
  b.setInsertionPoint(end);
  emit();
}
