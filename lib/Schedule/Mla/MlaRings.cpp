//===- MlaRings.cpp - What the roles of mla hand each other ---------------===//

#include "MlaRings.h"
#include "../Copied/CopiedExtents.h"
#include "../Tma/RingFacts.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

using SignallingRole = std::pair<Role, SignalKind>;

SmallVector<const LatentSlice *, 3> LatentRings::listQueries() const {
  SmallVector<const LatentSlice *, 3> list;
  for (const LatentSlice &slice : slices)
    if (!slice.isHeld)
      list.push_back(&slice);
  return list;
}

DividedRows attn::getLatentResultRows(MlaPlanAttr plan, Value units) {
  MLIRContext *mlir = plan.getContext();
  auto accumulators =
      MmaLayoutAttr::get(mlir, {plan.getWarpsM(), plan.getWarpsN()},
                         /*copies=*/1, /*column_runs=*/true);
  auto shared =
      MmaLayoutAttr::get(mlir, {plan.getWarpsM(), 1}, plan.getWarpsN());
  return {plan.getBlockM(), accumulators, shared, units};
}

//===----------------------------------------------------------------------===//
// Parts of slots
//===----------------------------------------------------------------------===//

/// Allocates slots. With widened keys each slot is divided into parts of
/// `partColumns` columns, which a warpgroup has in registers at a time; columns
/// that this does not divide stay in one piece.
static Value allocSlots(const AttentionTile &tile, StringRef name,
                        ArrayRef<int64_t> shape, Type type,
                        int64_t partColumns) {
  int64_t columns = shape.back();
  if (!tile.facts.hasNarrowKeys() || columns <= partColumns ||
      columns % partColumns != 0)
    return tile.alloc(name, tile.bufferType(shape, type));
  // Spans of columns follow each other.
  int64_t parts = shape.front() * (columns / partColumns);
  Value slots =
      tile.alloc(name, tile.bufferType({parts, shape[1], partColumns}, type));
  return ReinterpretOp::create(tile.b, tile.bufferType(shape, type), slots);
}

SmallVector<Value> attn::listSlotParts(const AttentionTile &tile, Value slot) {
  ImplicitLocOpBuilder &b = tile.b;
  auto view = slot.getDefiningOp<SlotOp>();
  auto slots = view.getSource().getDefiningOp<ReinterpretOp>();
  if (!slots)
    return {slot};
  auto type = cast<BufferType>(slots.getSource().getType());
  int64_t count =
      cast<BufferType>(slot.getType()).getShape()[1] / type.getSlotShape()[1];
  Value first =
      b.createOrFold<arith::MulIOp>(view.getIndex(), tile.context.i32(count));
  SmallVector<Value> parts;
  for (int64_t i = 0; i < count; ++i)
    parts.push_back(SlotOp::create(
        b, tile.bufferType(type.getSlotShape(), type.getElementType()),
        slots.getSource(),
        b.createOrFold<arith::AddIOp>(first, tile.context.i32(i)),
        /*distance=*/IntegerAttr()));
  return parts;
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

namespace {
class RingMaker {
public:
  RingMaker(const TileWalk &tiles, MlaPlanAttr plan)
      : tiles(tiles), tile(tiles.tile), facts(tile.facts), plan(plan) {}
  LatentRings make();

private:
  void reportCopies();
  void makeSlices();
  /// Makes the rings of `columns` columns of the keys from `first` on, and
  /// memory for those of the queries, named `q` and `suffix`.
  LatentSlice makeSlice(StringRef name, StringRef suffix, int64_t first,
                        int64_t columns, bool isValue, bool isHeld = false);
  /// Makes a ring for columns of the keys, which the first role fills: with a
  /// map of `tensor` if it loads by TMA.
  Ring makeKeyRing(StringRef name, StringRef tensor, int64_t stages,
                   int64_t columns, Type type, ArrayRef<SignallingRole> roles);
  /// Makes the slot of a slice's queries, named `name`.
  Ring makeQueries(StringRef name, StringRef tensor, int64_t columns,
                   bool isHeld);
  void makeHandOvers();

  const TileWalk &tiles;
  const AttentionTile &tile;
  const ProblemFacts &facts;
  MlaPlanAttr plan;
  LatentRings rings;
};
} // namespace

Ring RingMaker::makeKeyRing(StringRef name, StringRef tensor, int64_t stages,
                            int64_t columns, Type type,
                            ArrayRef<SignallingRole> roles) {
  int64_t blockN = plan.getBlockN();
  Ring ring;
  ring.name = tensor;
  ring.buffer =
      allocSlots(tile, name, {stages, blockN, columns}, type, kGroupColumns);
  ring.slotType = tile.bufferType({blockN, columns}, type);
  ring.channel = makeChannel(tile.b, name, stages, roles);
  if (roles.front().first.name != kLatentLoad.name)
    return ring;
  ring.ctas = plan.getCluster();
  if (rings.byTma)
    addMap(tiles, ring);
  return ring;
}

Ring RingMaker::makeQueries(StringRef name, StringRef tensor, int64_t columns,
                            bool isHeld) {
  int64_t blockM = plan.getBlockM();
  Ring ring;
  ring.name = tensor;
  ring.holds = RingRows::Queries;
  ring.slotType = tile.bufferType({blockM, columns});
  if (!isHeld)
    ring.buffer = allocSlots(tile, name, {1, blockM, columns},
                             facts.elementType, kGroupColumns / 2);
  if (!rings.queriesByTma)
    return ring;
  if (!isHeld)
    ring.channel = makeChannel(
        tile.b, name, /*stages=*/1,
        {{kLatentLoad, SignalKind::Tx}, {kLatentScores, SignalKind::Arrive}});
  addMap(tiles, ring);
  return ring;
}

LatentSlice RingMaker::makeSlice(StringRef name, StringRef suffix,
                                 int64_t first, int64_t columns, bool isValue,
                                 bool isHeld) {
  int64_t stages = plan.getStages() +
                   (isHeld || hasSpareSlot(facts, first, isValue) ? 1 : 0);
  bool isApart = facts.kRope && !isValue;
  bool areQueriesApart = facts.qRope && !isValue;
  int64_t rotated = first - facts.valueDim;
  LatentSlice slice;
  slice.first = first;
  slice.columns = columns;
  slice.firstInTensor = isApart ? rotated : first;
  slice.firstInQueries = areQueriesApart ? rotated : first;
  slice.isHeld = isHeld;

  StringRef tensor = isApart ? "k_rope" : "k";
  SignallingRole load = {kLatentLoad,
                         rings.byTma ? SignalKind::Tx : SignalKind::Arrive};
  std::string ringName = name.str();
  if (facts.hasNarrowKeys()) {
    SignallingRole widener = {kLatentWidener, SignalKind::Arrive};
    slice.raw = makeKeyRing(name, tensor, countRawSlots(isValue), columns,
                            facts.keyType, {load, widener});
    ringName += "_wide";
    load = widener;
  }
  SmallVector<SignallingRole> roles = {load,
                                       {kLatentScores, SignalKind::Arrive}};
  if (isValue)
    roles.push_back({kLatentResults, SignalKind::Arrive});
  slice.ring = makeKeyRing(ringName, tensor, stages, columns,
                           tile.getOperandType(), roles);
  slice.queries = makeQueries(
      ("q" + suffix).str(), areQueriesApart ? "q_rope" : "q", columns, isHeld);
  return slice;
}

// With two slices of values the orders are:
//
//                          loads, widener, scores   results
//   as a rule              0, 1, rope               0, 1
//   queries in registers   0, 1, rope               1, 0
//   8-bit keys             0, rope, 1               1, 0
void RingMaker::makeSlices() {
  CopiedExtents extents(facts, plan);
  rings.valueSlices = countLatentSlices(facts, plan);
  int64_t columns = extents.valueColumns / rings.valueSlices;
  for (int64_t i = 0; i < rings.valueSlices; ++i) {
    rings.slices.push_back(makeSlice(
        "k" + std::to_string(i), std::to_string(i), i * columns, columns,
        /*isValue=*/true, holdsLatentQueries(facts, plan) && i == 0));
    rings.order.push_back(i);
    rings.valueOrder.push_back(i);
  }
  if (int64_t rest = extents.keyColumns - extents.valueColumns) {
    rings.slices.push_back(makeSlice("rope", "_rope", extents.valueColumns,
                                     rest, /*isValue=*/false));
    // With widened keys the last slice of the values has one slot, and all
    // others are there when that is filled.
    rings.order.insert(facts.hasNarrowKeys() ? rings.order.begin() + 1
                                             : rings.order.end(),
                       rings.valueSlices);
  }
  if (rings.slices.front().isHeld || facts.hasNarrowKeys())
    std::reverse(rings.valueOrder.begin(), rings.valueOrder.end());
}

void RingMaker::makeHandOvers() {
  auto channel = [&](StringRef name, Role from, Role to,
                     ArrayRef<StringRef> parts = {}) {
    return makeChannel(tile.b, name, /*stages=*/1,
                       {{from, SignalKind::Arrive}, {to, SignalKind::Arrive}},
                       parts);
  };
  if (!rings.queriesByTma)
    rings.queries.push_back(channel("q", kLatentLoad, kLatentScores));
  else
    for (const LatentSlice *slice : rings.listQueries())
      rings.queries.push_back(slice->queries.channel);
  SmallVector<StringRef> parts;
  if (handsOnHalves(plan))
    parts = {kFrontHalf, kBackHalf};
  rings.handed = channel("p", kLatentScores, kLatentResults, parts);
  rings.scaled = channel("scale", kLatentScores, kLatentResults);

  int64_t blockM = plan.getBlockM(), blockN = plan.getBlockN();
  SmallVector<int64_t> shape = {blockM, blockN};
  if (handsOnHalves(plan))
    shape = {2, blockM, blockN / 2};
  rings.probabilities =
      tile.alloc("p", tile.bufferType(shape, tile.getOperandType()));
  BufferType rows = tile.bufferType({blockM}, tile.b.getF32Type());
  rings.factors = tile.alloc("factor", rows);
  rings.scales = tile.alloc("scale", rows);
  if (!facts.hasPartialScales())
    return;
  DividedRows divided = getLatentResultRows(plan, /*units=*/Value());
  divided.allocExchange(tile.b, "units");
  rings.units = divided.exchange;
}

void RingMaker::reportCopies() {
  int64_t blockN = plan.getBlockN();
  std::optional<std::string> unmappable = findUnmappable(facts);
  remark::missed(tile.b.getLoc(),
                 remark::RemarkOpts::name("latent-copies").category("attn.mla"))
      << remark::reason("keys are copied by cp.async, since {0}",
                        unmappable
                            ? "TMA does not support " + *unmappable
                            : llvm::formatv("a slot takes {0} copies by TMA",
                                            blockN / getBoxRows(facts, blockN))
                                  .str());
}

LatentRings RingMaker::make() {
  rings.byTma = loadsLatentByTma(facts, plan);
  rings.queriesByTma = rings.byTma && loadsQueriesByTma(facts, plan);
  if (!rings.byTma)
    reportCopies();
  makeSlices();
  makeHandOvers();
  return std::move(rings);
}

LatentRings attn::makeLatentRings(const TileWalk &tiles, MlaPlanAttr plan) {
  return RingMaker(tiles, plan).make();
}
