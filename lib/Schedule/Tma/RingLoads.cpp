//===- RingLoads.cpp - What fills slots of rings --------------------------===//

#include "Rings.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Where the boxes of a slot begin.
struct BoxStarts {
  /// The first element in a map of the ring's view, of each box if the view is
  /// bounded.
  SmallVector<Value> coords;
  /// True in a box of which no element is inside, i1; none without a spare map.
  SmallVector<Value> outside;

  void append(const BoxStarts &other) {
    llvm::append_range(coords, other.coords);
    llvm::append_range(outside, other.outside);
  }
};

/// A slot's load: its boxes, and the copies of them.
class SlotLoad {
public:
  /// Loads rows of `head` from `first` on, and their columns from each of
  /// `columns` on.
  SlotLoad(const TileWalk &walk, const Ring &ring, Value head, Value first,
           ArrayRef<Value> columns)
      : walk(walk), tile(walk.tile), context(walk.context), b(walk.context.b),
        ring(ring), head(head), first(first), columns(columns) {}

  /// Finds the boxes of a view that is not bounded.
  BoxStarts findBoxes();
  /// Copies the boxes of a bounded view, the first of which is in `lead` if
  /// that is not null.
  void startBounded(Value dest, Value token, Value lead);
  void start(Value map, Value dest, Value token, const BoxStarts &starts);

private:
  /// Calls `find` for the boxes from each of the columns on.
  BoxStarts findEach(function_ref<BoxStarts()> find);
  BoxStarts findBoxesOfColumn();
  BoxStarts findPackedBoxes(Value first);
  Value getQuery(Value row);
  int64_t countBoxes() const {
    return ring.slotType.getShape()[0] / ring.boxRows;
  }
  /// Returns the first row of box `box`.
  Value getBoxRow(int64_t box) {
    return b.createOrFold<arith::AddIOp>(first,
                                         context.i32(box * ring.boxRows));
  }
  /// Returns the row `place` of the map, or the last one if that comes first.
  Value clampToLastRow(Value place) {
    return arith::MinSIOp::create(
        b, place,
        arith::SubIOp::create(b, context.getRows(ring.name), context.i32(1)));
  }
  /// Finds the boxes in these batches or pages, of which the sequence may lack
  /// rows, or has all.
  BoxStarts findBoundedBoxes(ArrayRef<Value> leads);
  BoxStarts findWholeBoxes(ArrayRef<Value> leads);

  const TileWalk &walk;
  const AttentionTile &tile;
  KernelContext &context;
  ImplicitLocOpBuilder &b;
  const Ring &ring;
  Value head, first;
  ArrayRef<Value> columns;
  /// That of the columns whose boxes are found.
  Value column;
};

} // namespace

Value SlotLoad::getQuery(Value row) {
  if (tile.group == 1)
    return row;
  return arith::DivUIOp::create(b, row, context.i32(tile.group));
}

BoxStarts SlotLoad::findEach(function_ref<BoxStarts()> find) {
  BoxStarts all;
  for (Value each : columns) {
    column = each;
    all.append(find());
  }
  return all;
}

BoxStarts SlotLoad::findBoxes() {
  return findEach([&] { return findBoxesOfColumn(); });
}

BoxStarts SlotLoad::findBoxesOfColumn() {
  Value zero = context.i32(0), first = this->first;
  if (tile.origin)
    first = arith::AddIOp::create(b, tile.origin, first);
  switch (ring.view) {
  case TensorMapView::Whole:
    return {{tile.at.batch, head, first, column}, {}};
  case TensorMapView::Transposed:
    return {{tile.at.batch, head, zero, first}, {}};
  case TensorMapView::Quads: {
    Value quad = arith::DivUIOp::create(b, first, context.i32(4));
    return {{tile.at.batch, head, quad, zero, zero}, {}};
  }
  case TensorMapView::ByRow:
    // Some of a query's heads.
    if (tile.group > ring.slotType.getShape()[0])
      head = arith::AddIOp::create(
          b, head, arith::RemUIOp::create(b, first, context.i32(tile.group)));
    return {{tile.at.batch, getQuery(first), head, column}, {}};
  case TensorMapView::Packed:
  case TensorMapView::PackedByRow:
    return findPackedBoxes(first);
  case TensorMapView::Bounded:
  case TensorMapView::Rows:
    break;
  }
  llvm_unreachable("startBounded and startGather find these");
}

BoxStarts SlotLoad::findPackedBoxes(Value first) {
  if (isByRow(ring.view))
    first = getQuery(first);
  bool isQueries = ring.holds == RingRows::Queries;
  Value length = isQueries ? tile.queries : tile.keys;
  Value start = arith::TruncIOp::create(
      b, b.getI32Type(), isQueries ? tile.queryStart : tile.keyStart);
  Value end = arith::AddIOp::create(b, start, length);
  Value shift = arith::SubIOp::create(b, context.getRows(ring.name), length);
  Value place = arith::AddIOp::create(b, shift, first);
  // A tile that lacks beside others, and the part of a block that lies after
  // the last key, load the last row: TMA reads the address of a map, here
  // before the tensor, for a box without any.
  bool mayLack = isQueries ? walk.plan.getTogether() > 1
                           : ring.slotType.getShape()[0] < walk.plan.blockN;
  if (mayLack)
    place = clampToLastRow(place);
  BoxStarts box = {{end, head, place, column}, {}};
  if (isByRow(ring.view))
    std::swap(box.coords[1], box.coords[2]);
  if (ring.spare)
    box.outside.push_back(
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, column,
                              context.i32(context.facts.headDim)));
  return box;
}

BoxStarts SlotLoad::findBoundedBoxes(ArrayRef<Value> leads) {
  BoxStarts starts;
  Value all = context.getRows(ring.name);
  for (auto [i, lead] : llvm::enumerate(leads)) {
    KeyRows rows = tile.source->emitRows(getBoxRow(i));
    // The last of the lead's own rows is the last one of the map.
    Value shift = arith::SubIOp::create(b, all, rows.end);
    Value place = arith::AddIOp::create(b, shift, rows.row);
    // A part of a block may lie after it, as in findPackedBoxes.
    if (!ring.spare && ring.boxRows < walk.plan.blockN)
      place = clampToLastRow(place);
    starts.coords.append({lead, rows.end, head, place, column});
    if (!ring.spare)
      continue;
    // CTAs that share a box ask for a part each.
    if (ring.ctas > 1)
      place = arith::AddIOp::create(
          b, place,
          arith::MulIOp::create(b, walk.rank,
                                context.i32(ring.boxRows / ring.ctas)));
    Value isAfter =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, place, all);
    starts.outside.push_back(
        arith::OrIOp::create(b, isAfter, tile.source->emitIsAbsent(lead)));
  }
  return starts;
}

BoxStarts SlotLoad::findWholeBoxes(ArrayRef<Value> leads) {
  BoxStarts starts;
  Value all = context.getRows(ring.name);
  for (auto [i, lead] : llvm::enumerate(leads)) {
    Value row = tile.source->emitRows(getBoxRow(i)).row;
    starts.coords.push_back(lead);
    if (!ring.whole)
      starts.coords.push_back(all);
    starts.coords.append({head, row, column});
  }
  return starts;
}

void SlotLoad::startBounded(Value dest, Value token, Value lead) {
  SmallVector<Value> leads;
  for (int64_t i = 0, e = countBoxes(); i < e; ++i)
    leads.push_back(i == 0 && lead ? lead
                                   : tile.source->emitLead(getBoxRow(i)));
  if (!ring.spare)
    return start(ring.map, dest, token,
                 findEach([&] { return findBoundedBoxes(leads); }));
  // To choose a map for each box takes longer than to start the copy. All but
  // a sequence's last block are of whole boxes, unless an id is wrong.
  Value highest = leads.front();
  for (Value other : ArrayRef(leads).slice(1))
    highest = arith::MaxUIOp::create(b, highest, other);
  Value end =
      arith::AddIOp::create(b, first, context.i32(ring.slotType.getShape()[0]));
  Value ends = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, end,
                                     tile.source->length);
  auto branch = scf::IfOp::create(
      b, arith::OrIOp::create(b, ends, tile.source->emitIsAbsent(highest)),
      /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  start(ring.map, dest, token,
        findEach([&] { return findBoundedBoxes(leads); }));
  b.setInsertionPointToStart(branch.elseBlock());
  start(ring.whole ? ring.whole : ring.map, dest, token,
        findEach([&] { return findWholeBoxes(leads); }));
}

void SlotLoad::start(Value map, Value dest, Value token,
                     const BoxStarts &starts) {
  int64_t boxes = ring.view == TensorMapView::Quads
                      ? 2
                      : countBoxes() * int64_t(columns.size());
  IntegerAttr stacked, multicast;
  if (boxes != 1)
    stacked = b.getI64IntegerAttr(boxes);
  if (ring.ctas != 1)
    multicast = b.getI64IntegerAttr(ring.ctas);
  TmaLoadOp::create(b, map, starts.coords, dest, token,
                    /*barriers=*/Value(), /*index=*/Value(),
                    starts.outside.empty() ? Value() : ring.spare,
                    starts.outside, multicast, stacked);
}

Value attn::narrowSlot(const TileWalk &walk, Value slot, int64_t columns) {
  auto type = cast<BufferType>(slot.getType());
  int64_t rows = type.getShape()[0], all = type.getShape()[1];
  int64_t bits = type.getElementType().getIntOrFloatBitWidth();
  int64_t box = SharedLayout::chooseSpan(all, bits) * 8 / bits;
  int64_t rounded = llvm::divideCeil(columns, box) * box;
  if (rounded >= all)
    return slot;
  auto part =
      BufferType::get(type.getContext(), {rows, rounded}, type.getElementType(),
                      type.getLayout(), type.getSpace());
  return ReinterpretOp::create(walk.context.b, part, slot);
}

/// Returns a slot as its boxes lie in memory, those of the first columns first.
static Value stackBoxes(const TileWalk &walk, Value slot, int64_t boxes) {
  auto type = cast<BufferType>(slot.getType());
  int64_t rows = type.getShape()[0], columns = type.getShape()[1];
  auto stacked = BufferType::get(
      type.getContext(), {rows * boxes, columns / boxes}, type.getElementType(),
      type.getLayout(), type.getSpace());
  return ReinterpretOp::create(walk.context.b, stacked, slot);
}

LoadPlace attn::findLoadPlace(const TileWalk &walk, const Ring &ring,
                              Value first) {
  if (ring.holds != RingRows::Keys)
    return {first, {}};
  if (ring.view == TensorMapView::Bounded)
    return {first, walk.tile.source->emitLead(first)};
  return {walk.tile.source->emitKey(first), {}};
}

void attn::startGather(const TileWalk &walk, const Ring &ring, Value dest,
                       Value token, RowNumbers rows, Value column) {
  KernelContext &context = walk.context;
  TmaGatherOp::create(context.b, ring.map, rows.numbers, rows.from,
                      column ? column : context.i32(0), dest, token,
                      /*barriers=*/Value(), /*index=*/Value());
}

void attn::startLoad(const TileWalk &walk, const Ring &ring, Value dest,
                     Value token, Value head, Value first, Value column,
                     Value lead) {
  startLoadBeside(walk, ring, dest, token, head, first,
                  column ? column : walk.context.i32(0), lead);
}

void attn::startLoadBeside(const TileWalk &walk, const Ring &ring, Value dest,
                           Value token, Value head, Value first,
                           ArrayRef<Value> columns, Value lead) {
  SlotLoad load(walk, ring, head, first, columns);
  if (columns.size() > 1)
    dest = stackBoxes(walk, dest, columns.size());
  if (ring.view == TensorMapView::Bounded)
    load.startBounded(dest, token, lead);
  else
    load.start(ring.map, dest, token, load.findBoxes());
}
