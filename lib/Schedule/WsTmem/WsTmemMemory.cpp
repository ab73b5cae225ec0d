//===- WsTmemMemory.cpp - Memory and channels of ws_tmem ------------------===//

#include "WsTmemMemory.h"
#include "../Tma/RingFacts.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static void makeRings(const TileWalk &walk, WsTmemPlanAttr plan,
                      WsTmemMemory &memory) {
  const ProblemFacts &facts = walk.tile.facts;
  auto spec = [&](StringRef name, RingRows holds, int64_t stages, int64_t rows,
                  int64_t columns) {
    RingSpec spec = {name, holds, stages, rows, columns, kLoader, kMultiplier};
    spec.signal = SignalKind::Commit;
    return spec;
  };
  int64_t stages = plan.getKvStages(), columns = getSliceColumns(facts, plan);
  RingSpec queries = spec("q", RingRows::Queries, plan.getTiles(),
                          getTileRows(facts, plan), columns);
  queries.together = countKeySlices(facts, plan);
  memory.q = makeRing(walk, queries);
  // Slots of values that have another shape than those of keys.
  bool shares = sharesRing(facts, plan);
  SmallVector<int64_t> others;
  if (shares && (hasWideHeads(facts, plan) || plan.getPair()))
    others = {stages, getPartKeys(facts, plan),
              getOwnValueColumns(facts, plan)};
  // Keys and values of 8 bits are loaded into rings of their own.
  auto makeKeys = [&](StringRef name, StringRef tensor, int64_t rows,
                      int64_t columns, Ring &raw) {
    RingSpec keys = spec(name, RingRows::Keys, stages, rows, columns);
    keys.tensor = tensor;
    keys.otherShape = others;
    if (hasHalfTiles(facts, plan))
      keys.placeRows = kHalvedColumns / 2;
    if (facts.hasNarrowKeys()) {
      RingSpec narrow = keys;
      std::string rawName = ("raw_" + name).str();
      narrow.name = rawName;
      narrow.to = kTmemWidener;
      narrow.signal = SignalKind::Arrive;
      narrow.elementType = facts.keyType;
      raw = makeRing(walk, narrow);
      keys.from = kTmemWidener;
      keys.isLoaded = false;
    }
    return makeRing(walk, keys);
  };
  memory.k = makeKeys("k", "k", getOwnKeys(plan), columns, memory.rawK);
  auto addRope = [&](const Ring &ring, StringRef name) {
    Ring rope = ring;
    rope.name = name;
    rope.view = TensorMapView::Whole;
    addMap(walk, rope);
    return rope;
  };
  if (facts.qRope)
    memory.qRope = addRope(memory.q, "q_rope");
  if (facts.kRope)
    memory.kRope = addRope(memory.k, "k_rope");
  // Latent values are columns of the keys.
  StringRef values = facts.isLatent() ? "k" : "v";
  if (!shares) {
    memory.v = makeKeys("v", values, getPartKeys(facts, plan),
                        getOwnValueColumns(facts, plan), memory.rawV);
    return;
  }
  auto share = [&](const Ring &k) {
    Ring v = k;
    v.name = values;
    v.view = TensorMapView::Whole;
    if (k.otherBuffer) {
      v.buffer = k.otherBuffer;
      v.slotType = walk.tile.bufferType(ArrayRef(others).drop_front(),
                                        k.slotType.getElementType());
    }
    if (k.map)
      addMap(walk, v);
    return v;
  };
  memory.v = share(memory.k);
  if (memory.rawK.channel)
    memory.rawV = share(memory.rawK);
}

static SmallVector<KeyPart> listParts(const ProblemFacts &facts,
                                      WsTmemPlanAttr plan) {
  int64_t front = getFrontKeys(facts, plan), keys = plan.getBlockN();
  if (front == 0)
    return {{"", 0, keys}};
  return {{"front", 0, front}, {"back", front, keys - front}};
}

BufferType attn::getTensorType(ArrayRef<int64_t> shape, Type elementType) {
  MLIRContext *context = elementType.getContext();
  return BufferType::get(context, shape, elementType,
                         TmemLayoutAttr::get(context, kTmemRows),
                         MemorySpace::Tmem);
}

BufferType attn::getAccumulatorType(MLIRContext *context,
                                    ArrayRef<int64_t> shape) {
  int64_t rows = shape[shape.size() - 2];
  return BufferType::get(
      context, shape, Float32Type::get(context),
      TmemLayoutAttr::get(context, rows, /*halves=*/rows < kTmemRows),
      MemorySpace::Tmem);
}

/// Makes the scores of half tiles, and their probabilities in shared memory.
static void makeHalfTile(const AttentionTile &attention, WsTmemPlanAttr plan,
                         TensorTile &tile) {
  ImplicitLocOpBuilder &b = attention.b;
  MLIRContext *context = b.getContext();
  int64_t rows = attention.blockM, keys = plan.getBlockN();
  int64_t slots = countScoreSlots(plan);
  tile.scoreType = getAccumulatorType(context, {rows, keys});
  tile.scoreRing = TmemAllocOp::create(
      b, getAccumulatorType(context, {slots, rows, keys}),
      b.getStringAttr("s0"), /*column=*/IntegerAttr(), /*fields=*/ArrayAttr());
  // Spans of a swizzle are the parts.
  auto swizzled = SwizzledLayoutAttr::get(context, kTensorSliceBytes);
  auto makeType = [&](ArrayRef<int64_t> shape) {
    return BufferType::get(context, shape, attention.facts.elementType,
                           swizzled, MemorySpace::Shared);
  };
  tile.probabilityType = makeType({rows, keys});
  tile.probabilityParts = attention.alloc(
      "p0", makeType({keys / kHalfTileKeys, rows, kHalfTileKeys}));
}

static TensorTile makeTensorTile(const AttentionTile &attention,
                                 WsTmemPlanAttr plan,
                                 const WsTmemMemory &memory, int64_t number) {
  KernelContext &context = attention.context;
  ImplicitLocOpBuilder &b = context.b;
  MLIRContext *mlir = b.getContext();
  const ProblemFacts &facts = context.facts;
  TensorTile tile;
  std::string suffix = std::to_string(number);
  int64_t blockN = plan.getBlockN();
  BufferType scores = getTensorType({kTmemRows, blockN}, b.getF32Type());
  BufferType narrow = getTensorType({kTmemRows, blockN}, facts.elementType);
  int64_t slots = countScoreSlots(plan);
  auto alloc = [&](StringRef name, BufferType type, ArrayAttr fields) -> Value {
    return TmemAllocOp::create(b, type, b.getStringAttr(name + suffix),
                               /*column=*/IntegerAttr(), fields);
  };
  if (hasHalfTiles(facts, plan)) {
    makeHalfTile(attention, plan, tile);
  } else if (plan.getPBeside()) {
    tile.scores = alloc("s", scores, ArrayAttr());
    tile.probabilities = alloc("p", narrow, ArrayAttr());
  } else {
    int64_t packed = getProbabilityColumns(facts, plan);
    auto fields =
        b.getArrayAttr({FieldAttr::get(mlir, "s", 0, blockN),
                        FieldAttr::get(mlir, "p", blockN - packed, packed)});
    if (slots == 1) {
      Value both = alloc("s", scores, fields);
      tile.scores = TmemFieldOp::create(b, scores, both, "s");
      tile.probabilities = TmemFieldOp::create(b, narrow, both, "p");
    } else {
      tile.scoreRing =
          alloc("s", getTensorType({slots, kTmemRows, blockN}, b.getF32Type()),
                fields);
      tile.scoreType = scores;
      tile.probabilityType = narrow;
    }
  }
  tile.results =
      alloc("o",
            getAccumulatorType(mlir, {getTileRows(facts, plan),
                                      getResultTensorColumns(facts, plan)}),
            ArrayAttr());
  std::pair<Role, SignalKind> multiplier = {kMultiplier, SignalKind::Commit};
  std::pair<Role, SignalKind> softmax = {kSoftmaxes[number],
                                         SignalKind::Arrive};
  if (memory.resultBuffer == ResultBuffer::Queries)
    tile.queryChannel = makeChannel(b, "r" + suffix, /*stages=*/1,
                                    {{kLoader, SignalKind::Arrive},
                                     {kSoftmaxes[number], SignalKind::Arrive}});
  SmallVector<StringRef> parts;
  if (memory.parts.size() > 1)
    for (const KeyPart &part : memory.parts)
      parts.push_back(part.name);
  if (!plan.getPBeside()) {
    tile.channel =
        makeChannel(b, "t" + suffix, slots, {multiplier, softmax}, {}, parts);
    if (slots > 1)
      tile.resultChannel =
          makeChannel(b, "o" + suffix, /*stages=*/1, {softmax, multiplier});
    return tile;
  }
  tile.channel =
      makeChannel(b, "s" + suffix, /*stages=*/1, {multiplier, softmax});
  tile.resultChannel = makeChannel(b, "p" + suffix, /*stages=*/1,
                                   {softmax, multiplier}, parts, {});
  return tile;
}

Value attn::sliceTensor(ImplicitLocOpBuilder &b, Value buffer, int64_t first,
                        int64_t columns) {
  auto type = cast<BufferType>(buffer.getType());
  if (type.getShape()[1] == columns)
    return buffer;
  auto part =
      BufferType::get(b.getContext(), {type.getShape()[0], columns},
                      type.getElementType(), type.getLayout(), type.getSpace());
  return TmemSliceOp::create(b, part, buffer, first);
}

Value attn::loadTensor(const AttentionTile &tile, Value buffer, int64_t first,
                       int64_t columns) {
  ImplicitLocOpBuilder &b = tile.b;
  MLIRContext *mlir = b.getContext();
  int64_t rows = cast<BufferType>(buffer.getType()).getShape()[0];
  // Two warps have the columns of 32 rows of half tiles.
  auto layout = TmemRegsLayoutAttr::get(
      mlir, TmemShape::S32x32b,
      rows < kTmemRows ? ArrayRef<int64_t>({2, 2}) : ArrayRef<int64_t>({4, 1}));
  auto type = InFlightType::get(mlir, {rows, columns}, b.getF32Type(), layout);
  auto op = TmemLoadOp::create(b, type, /*row_values=*/Type(),
                               sliceTensor(b, buffer, first, columns),
                               /*reduce=*/ReduceKindAttr());
  Type ready = tile.f32Tile({rows, columns});
  auto wait = TmemWaitOp::create(b, TypeRange(ready), op.getResult());
  return wait.getResults().front();
}

Value TensorTile::getScores(ImplicitLocOpBuilder &b, const Slot &slot) const {
  if (!scoreRing)
    return scores;
  Value both = slot.in(scoreRing, scoreType);
  if (probabilityParts)
    return both;
  return TmemFieldOp::create(b, scoreType, both, "s");
}

Value TensorTile::getProbabilities(ImplicitLocOpBuilder &b,
                                   const Slot &slot) const {
  // A view made here leaves addresses to the role that needs them.
  if (probabilityParts)
    return ReinterpretOp::create(b, probabilityType, probabilityParts);
  if (!scoreRing)
    return probabilities;
  return TmemFieldOp::create(b, probabilityType, slot.in(scoreRing, scoreType),
                             "p");
}

/// Makes the channels by which a tile's results reach the warpgroup that stores
/// them.
static void makeHandOver(const AttentionTile &tile, WsTmemMemory &memory) {
  ImplicitLocOpBuilder &b = tile.b;
  std::pair<Role, SignalKind> storer = {kStorer, SignalKind::Arrive};
  memory.resultChannel = makeChannel(
      b, "o", /*stages=*/1, {{kMultiplier, SignalKind::Commit}, storer});
  memory.factorChannel = makeChannel(
      b, "factor", /*stages=*/1, {{kSoftmaxes[0], SignalKind::Arrive}, storer});
  memory.factors =
      tile.alloc("factor", tile.bufferType({tile.blockM}, b.getF32Type()));
  if (tile.facts.initLse)
    memory.initWeights =
        tile.alloc("weight", tile.bufferType({tile.blockM}, b.getF32Type()));
}

TilePlan attn::getTilePlan(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  TilePlan tiles = {getTileRows(facts, plan), plan.getBlockN(), plan.getOrder(),
                    plan.getGroupHeads()};
  tiles.cluster = countClusterCTAs(plan);
  tiles.ctasPerTile = plan.getValueCtas();
  tiles.isPair = plan.getPair();
  tiles.hasOwnProducts = plan.getOwnBlocks();
  tiles.dynamic = plan.getDynamic();
  tiles.clc = plan.getClc();
  tiles.tilesPerCTA = plan.getTiles();
  tiles.setRuns(facts, plan.getPackHeads());
  tiles.dealtRuns = plan.getDealtRuns();
  return tiles;
}

static TileDealer makeDealer(KernelContext &context, WsTmemPlanAttr plan) {
  SmallVector<std::pair<Role, SignalKind>> roles = {
      {kLoader, SignalKind::Arrive}};
  if (loaderReadsTiles(plan)) {
    // An index that the first CTA's loader sends all CTAs, or a response, is
    // counted in bytes.
    roles.front().second = SignalKind::Tx;
    roles.push_back({kDealtReader, SignalKind::Arrive});
  }
  for (Role role :
       {kMultiplier, kSoftmaxes[0], hasOneTile(plan) ? kStorer : kSoftmaxes[1]})
    roles.push_back({role, SignalKind::Arrive});
  if (gathersKeys(context.facts))
    roles.push_back({kNumberer, SignalKind::Arrive});
  if (context.facts.hasNarrowKeys())
    roles.push_back({kTmemWidener, SignalKind::Arrive});
  return plan.getClc() ? makeTileRequester(context, roles)
                       : makeTileDealer(context, roles);
}

WsTmemMemory attn::makeMemory(const TileWalk &walk, WsTmemPlanAttr plan) {
  WsTmemMemory memory;
  memory.resultBuffer =
      getTmemResultBuffer(walk.tile.facts, plan, walk.tile.context.target);
  memory.parts = listParts(walk.tile.facts, plan);
  makeRings(walk, plan, memory);
  for (int64_t number = 0; number < plan.getTiles(); ++number)
    memory.tiles.push_back(makeTensorTile(walk.tile, plan, memory, number));
  if (hasOneTile(plan))
    makeHandOver(walk.tile, memory);
  if (gathersKeys(walk.tile.facts)) {
    ImplicitLocOpBuilder &b = walk.context.b;
    memory.rowChannel = makeChannel(
        b, "rows", kRowStages,
        {{kNumberer, SignalKind::Arrive}, {kLoader, SignalKind::Arrive}});
    memory.rowNumbers = allocRowNumbers(b, "rows", kRowStages, plan.getBlockN(),
                                        b.getI32Type());
  }
  if (plan.getDynamic() || plan.getClc())
    memory.dealer = makeDealer(walk.context, plan);
  if (plan.getEpilogue() == EpilogueKind::Tma)
    memory.resultMap = makeResultMap(walk.tile, kTmemRows,
                                     getStagedColumns(walk.tile.facts, plan));
  return memory;
}

Value WsTmemMemory::getRowNumbers(ImplicitLocOpBuilder &b,
                                  const Slot &slot) const {
  auto type = cast<BufferType>(rowNumbers.getType());
  auto makeType = [&](ArrayRef<int64_t> shape) {
    return BufferType::get(b.getContext(), shape, type.getElementType(),
                           type.getLayout(), type.getSpace());
  };
  ArrayRef<int64_t> shape = type.getSlotShape();
  return ReinterpretOp::create(b, makeType(shape.drop_back()),
                               slot.in(rowNumbers, makeType(shape)));
}

//===----------------------------------------------------------------------===//
// Ends of channels
//===----------------------------------------------------------------------===//

Slot PartedPipe::acquire(const KeyPart &part) {
  acquired.push_back(part.name.empty() ? pipe.acquire()
                                       : pipe.acquire(part.name));
  return acquired.back();
}

Slot PartedPipe::acquire() {
  for (const KeyPart &part : parts)
    acquire(part);
  return acquired.front();
}

void PartedPipe::release() {
  assert(acquired.size() == parts.size() && "expected all parts of a slot");
  Slot whole = acquired.size() == 1 ? acquired.front() : Slot::join(acquired);
  acquired.clear();
  whole.release();
  pipe.advance();
}

/// The only part of a slot that is handed on as a whole.
static const KeyPart kWhole = {"", 0, 0};

TilePipes::TilePipes(Control &control, const TensorTile &tile,
                     ArrayRef<KeyPart> parts)
    : scorePipe(control, tile.channel,
                tile.resultChannel ? ArrayRef(kWhole) : parts) {
  if (tile.resultChannel)
    resultPipe.emplace(control, tile.resultChannel, parts);
}
