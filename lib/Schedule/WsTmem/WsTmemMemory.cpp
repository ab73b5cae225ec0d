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
  auto make = [&](StringRef name, RingRows holds, int64_t stages, int64_t rows,
                  int64_t columns) {
    RingSpec spec = {name, holds, stages, rows, columns, kLoader, kMultiplier};
    spec.signal = SignalKind::Commit;
    return makeRing(walk, spec);
  };
  int64_t stages = plan.getKvStages(), blockN = plan.getBlockN();
  memory.q =
      make("q", RingRows::Queries, kTmemTiles, kTmemRows, getKeyColumns(facts));
  memory.k = make("k", RingRows::Keys, stages, blockN, getKeyColumns(facts));
  if (!sharesRing(facts, plan)) {
    memory.v =
        make("v", RingRows::Keys, stages, blockN, getValueColumns(facts));
    return;
  }
  memory.v = memory.k;
  memory.v.name = "v";
  memory.v.view = TensorMapView::Whole;
  addMap(walk, memory.v);
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

static TensorTile makeTensorTile(KernelContext &context, WsTmemPlanAttr plan,
                                 const WsTmemMemory &memory, int64_t number) {
  ImplicitLocOpBuilder &b = context.b;
  MLIRContext *mlir = b.getContext();
  const ProblemFacts &facts = context.facts;
  TensorTile tile;
  std::string suffix = std::to_string(number);
  int64_t blockN = plan.getBlockN();
  BufferType scores = getTensorType({kTmemRows, blockN}, b.getF32Type());
  BufferType narrow = getTensorType({kTmemRows, blockN}, facts.elementType);
  auto alloc = [&](StringRef name, BufferType type, ArrayAttr fields) -> Value {
    return TmemAllocOp::create(b, type, b.getStringAttr(name + suffix),
                               /*column=*/IntegerAttr(), fields);
  };
  if (plan.getPBeside()) {
    tile.scores = alloc("s", scores, ArrayAttr());
    tile.probabilities = alloc("p", narrow, ArrayAttr());
  } else {
    int64_t packed = getProbabilityColumns(facts, plan);
    auto fields =
        b.getArrayAttr({FieldAttr::get(mlir, "s", 0, blockN),
                        FieldAttr::get(mlir, "p", blockN - packed, packed)});
    Value both = alloc("s", scores, fields);
    tile.scores = TmemFieldOp::create(b, scores, both, "s");
    tile.probabilities = TmemFieldOp::create(b, narrow, both, "p");
  }
  tile.results = alloc(
      "o", getTensorType({kTmemRows, getValueColumns(facts)}, b.getF32Type()),
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
    tile.channel = makeChannel(b, "t" + suffix, /*stages=*/1,
                               {multiplier, softmax}, {}, parts);
    return tile;
  }
  tile.channel =
      makeChannel(b, "s" + suffix, /*stages=*/1, {multiplier, softmax});
  tile.resultChannel = makeChannel(b, "p" + suffix, /*stages=*/1,
                                   {softmax, multiplier}, parts, {});
  return tile;
}

static TileDealer makeDealer(KernelContext &context) {
  SmallVector<std::pair<Role, SignalKind>> roles;
  for (Role role : {kLoader, kMultiplier, kSoftmaxes[0], kSoftmaxes[1]})
    roles.push_back({role, SignalKind::Arrive});
  return makeTileDealer(context, roles);
}

WsTmemMemory attn::makeMemory(const TileWalk &walk, WsTmemPlanAttr plan) {
  WsTmemMemory memory;
  memory.resultBuffer =
      getTmemResultBuffer(walk.tile.facts, plan, walk.tile.context.target);
  memory.parts = listParts(walk.tile.facts, plan);
  makeRings(walk, plan, memory);
  for (int64_t number = 0; number < kTmemTiles; ++number)
    memory.tiles[number] = makeTensorTile(walk.context, plan, memory, number);
  if (plan.getDynamic())
    memory.dealer = makeDealer(walk.context);
  if (plan.getEpilogue() == EpilogueKind::Tma)
    memory.resultMap = makeResultMap(walk.tile, kTmemRows,
                                     getStagedColumns(walk.tile.facts, plan));
  return memory;
}

//===----------------------------------------------------------------------===//
// Ends of channels
//===----------------------------------------------------------------------===//

void PartedPipe::acquire(const KeyPart &part) {
  acquired.push_back(part.name.empty() ? pipe.acquire()
                                       : pipe.acquire(part.name));
}

void PartedPipe::acquire() {
  for (const KeyPart &part : parts)
    acquire(part);
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
