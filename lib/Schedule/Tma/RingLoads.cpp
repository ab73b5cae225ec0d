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
  /// Loads rows of `head` and their columns from each of `places` on, in boxes
  /// of which `each` place has as many.
  SlotLoad(const TileWalk &walk, const Ring &ring, Value head,
           ArrayRef<BoxPlace> places, int64_t each)
      : walk(walk), tile(walk.tile), context(walk.context), b(walk.context.b),
        ring(ring), head(head), places(places), each(each) {}

  /// Copies the boxes of a view that is not bounded.
  void startPlain(Value dest, Value token);
  /// Copies the boxes of a bounded view.
  void startBounded(Value dest, Value token);

private:
  /// The batches or pages of the boxes of each place.
  using Leads = SmallVector<SmallVector<Value>>;

  void start(Value map, Value dest, Value token, const BoxStarts &starts);
  BoxStarts findBoxes(const BoxPlace &place);
  BoxStarts findPackedBoxes(Value first, Value column);
  Value getQuery(Value row);
  /// Returns the first row of box `box` of a place.
  Value getBoxRow(const BoxPlace &place, int64_t box) {
    return b.createOrFold<arith::AddIOp>(place.rows.first,
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
  BoxStarts findBoundedBoxes(const Leads &leads);
  BoxStarts findWholeBoxes(const Leads &leads);

  const TileWalk &walk;
  const AttentionTile &tile;
  KernelContext &context;
  ImplicitLocOpBuilder &b;
  const Ring &ring;
  Value head;
  ArrayRef<BoxPlace> places;
  int64_t each;
};

} // namespace

Value SlotLoad::getQuery(Value row) {
  if (tile.group == 1)
    return row;
  return arith::DivUIOp::create(b, row, context.i32(tile.group));
}

BoxStarts SlotLoad::findBoxes(const BoxPlace &place) {
  Value zero = context.i32(0), first = place.rows.first, column = place.column;
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
    return findPackedBoxes(first, column);
  case TensorMapView::Bounded:
  case TensorMapView::Rows:
    break;
  }
  llvm_unreachable("startBounded and startGather find these");
}

BoxStarts SlotLoad::findPackedBoxes(Value first, Value column) {
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

BoxStarts SlotLoad::findBoundedBoxes(const Leads &leads) {
  BoxStarts starts;
  Value all = context.getRows(ring.name);
  for (auto [at, own] : llvm::zip_equal(places, leads))
    for (auto [i, lead] : llvm::enumerate(own)) {
      KeyRows rows = tile.source->emitRows(getBoxRow(at, i));
      // The last of the lead's own rows is the last one of the map.
      Value shift = arith::SubIOp::create(b, all, rows.end);
      Value place = arith::AddIOp::create(b, shift, rows.row);
      // A part of a block may lie after it, as in findPackedBoxes.
      if (!ring.spare && ring.boxRows < walk.plan.blockN)
        place = clampToLastRow(place);
      starts.coords.append({lead, rows.end, head, place, at.column});
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

BoxStarts SlotLoad::findWholeBoxes(const Leads &leads) {
  BoxStarts starts;
  Value all = context.getRows(ring.name);
  for (auto [at, own] : llvm::zip_equal(places, leads))
    for (auto [i, lead] : llvm::enumerate(own)) {
      Value row = tile.source->emitRows(getBoxRow(at, i)).row;
      starts.coords.push_back(lead);
      if (!ring.whole)
        starts.coords.push_back(all);
      starts.coords.append({head, row, at.column});
    }
  return starts;
}

void SlotLoad::startPlain(Value dest, Value token) {
  BoxStarts starts;
  for (const BoxPlace &place : places)
    starts.append(findBoxes(place));
  start(ring.map, dest, token, starts);
}

void SlotLoad::startBounded(Value dest, Value token) {
  Leads leads;
  for (const BoxPlace &place : places) {
    SmallVector<Value> &own = leads.emplace_back();
    for (int64_t i = 0; i < each; ++i)
      own.push_back(i == 0 && place.rows.lead
                        ? place.rows.lead
                        : tile.source->emitLead(getBoxRow(place, i)));
  }
  if (!ring.spare)
    return start(ring.map, dest, token, findBoundedBoxes(leads));
  // To choose a map for each box takes longer than to start the copy. All but
  // a sequence's last block are of whole boxes, unless an id is wrong.
  Value highest;
  for (const SmallVector<Value> &own : leads)
    for (Value lead : own)
      highest = highest ? arith::MaxUIOp::create(b, highest, lead) : lead;
  // Places come in the order of their rows.
  Value end = arith::AddIOp::create(b, places.back().rows.first,
                                    context.i32(each * ring.boxRows));
  Value ends = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, end,
                                     tile.source->length);
  auto branch = scf::IfOp::create(
      b, arith::OrIOp::create(b, ends, tile.source->emitIsAbsent(highest)),
      /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  start(ring.map, dest, token, findBoundedBoxes(leads));
  b.setInsertionPointToStart(branch.elseBlock());
  start(ring.whole ? ring.whole : ring.map, dest, token, findWholeBoxes(leads));
}

void SlotLoad::start(Value map, Value dest, Value token,
                     const BoxStarts &starts) {
  int64_t boxes =
      ring.view == TensorMapView::Quads ? 2 : each * int64_t(places.size());
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

/// Returns a slot as boxes of `rows` rows that lie one behind the other.
static Value stackBoxes(const TileWalk &walk, Value slot, int64_t rows,
                        int64_t boxes) {
  auto type = cast<BufferType>(slot.getType());
  int64_t all = type.getShape()[0] * type.getShape()[1];
  auto stacked =
      BufferType::get(type.getContext(), {rows * boxes, all / (rows * boxes)},
                      type.getElementType(), type.getLayout(), type.getSpace());
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
  ImplicitLocOpBuilder &b = context.b;
  if (!column)
    column = context.i32(0);
  auto start = [&](Value map) {
    TmaGatherOp::create(b, map, rows.numbers, rows.from, column, dest, token,
                        /*barriers=*/Value(), /*index=*/Value());
  };
  if (!ring.frontMap)
    return start(ring.map);
  auto branch = scf::IfOp::create(b, rows.isFront, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  start(ring.frontMap);
  b.setInsertionPointToStart(branch.elseBlock());
  start(ring.map);
}

static void startBoxes(const TileWalk &walk, const Ring &ring, Value dest,
                       Value token, Value head, ArrayRef<BoxPlace> places,
                       int64_t each) {
  SlotLoad load(walk, ring, head, places, each);
  ring.view == TensorMapView::Bounded ? load.startBounded(dest, token)
                                      : load.startPlain(dest, token);
}

void attn::startLoad(const TileWalk &walk, const Ring &ring, Value dest,
                     Value token, Value head, Value first, Value column,
                     Value lead) {
  int64_t each = ring.slotType.getShape()[0] / ring.boxRows;
  BoxPlace place = {{first, lead}, column ? column : walk.context.i32(0)};
  startBoxes(walk, ring, dest, token, head, place, each);
}

void attn::startLoads(const TileWalk &walk, const Ring &ring, Value dest,
                      Value token, Value head, ArrayRef<BoxPlace> places) {
  auto type = cast<BufferType>(dest.getType());
  int64_t columns =
      SharedLayout::chooseSpan(type.getShape()[1],
                               type.getElementType().getIntOrFloatBitWidth()) *
      8 / type.getElementType().getIntOrFloatBitWidth();
  int64_t count = places.size(),
          rows = type.getShape()[0] * type.getShape()[1] / (columns * count);
  startBoxes(walk, ring, stackBoxes(walk, dest, rows, count), token, head,
             places, rows / ring.boxRows);
}
