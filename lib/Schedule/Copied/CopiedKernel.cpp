//===- CopiedKernel.cpp - Kernels whose blocks cp.async copies ------------===//
//
// One CTA: find the tile, copy Q to shared memory, walk the blocks of keys with
// the online softmax, finish the rows and store them.
//
//   copy Q
//   for block t = last ... first: S = Q K(t)^T; softmax; O += P V(t)
//
// `memory.stage` names the first place where a slot is read. Copies, waits and
// barriers are written by attn-expand-pipeline and attn-insert-fences:
//
//   two slots or more:  copies of the block `stages` - 1 ahead start when all
//                       warps have come to this block; then the block computes
//   one slot:           K(t - 1) is copied while PV(t) runs, V(t) while QK and
//                       the softmax of block t do
//
// A block may have two parts, so that QK of one stands before the softmax of
// the other.
//
// With slices of the columns, those of K, then those of V have the slots of one
// ring in turns, and a product is a sum over the slices, or its columns come
// from one after the other. With several teams each does all this for a run of
// the tile's blocks, and what all states give together is stored.
//
//===----------------------------------------------------------------------===//

#include "CopiedKernel.h"
#include "CopiedTeams.h"
#include "TightPlans.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"

using namespace mlir;
using namespace mlir::attn;

CopiedKernel::CopiedKernel(KernelContext &context, const CopiedPlan &plan)
    : context(context), facts(context.facts), plan(plan), extents(facts, plan),
      layouts(context.b.getContext(), plan), b(context.b), control(b),
      tile(context, plan.getBlockM(), getPackedHeads(facts, plan)),
      memory(tile, plan, extents), softmax(tile, plan, layouts, control),
      results(tile, plan, extents, layouts),
      isTight(hasTightLoop(plan, extents)) {
  tile.resultColumns = extents.valueColumns;
  tile.hasWholeMaxima = facts.hasWholeMaxima();
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

void CopiedKernel::computeTile() {
  memory.makeViews();
  if (!isTight)
    results.makeViews();
  memory.allocate();
  SmallVector<Value> queries;
  if (memory.loadsQueries()) {
    queries = loadQueries();
  } else if (!plan.getStreamsQ()) {
    copyQueries();
    CpAsyncCommitOp::create(b);
    if (plan.getQInRegs())
      CpAsyncWaitOp::create(b, 0);
    queries = readQueries();
  }
  findBlocks();
  emitScoreDescale(tile);
  Value scale = emitExponentScale(tile);
  CopiedRows rows = softmax.start();

  RankedTensorType sums = layouts.getScoreSums();
  // The slot of latent keys, whose first columns are the values.
  Value latent;
  auto qk = [&](int64_t part, Value key) {
    Value s = makeNoScores(sums);
    for (auto [i, columns] : llvm::enumerate(memory.keys[part])) {
      Value k = memory.stage(columns, key);
      Value q = plan.getStreamsQ() ? memory.stage(memory.queries[i], tile.row)
                                   : queries[i];
      s = await(sums, multiplyKeys(sums, q, k, s));
      if (i == 0)
        latent = k;
    }
    s = addDepthParts(s);
    if (facts.kScales)
      s = multiplyScales(s, memory.stage(memory.keyScales, key));
    return finishScores(s, key);
  };
  auto type = cast<RankedTensorType>(rows.o.get().getType());
  auto pv = [&](int64_t part, Value key, Value p) {
    if (extents.isLatent) {
      Value v = getLatentValues(latent);
      rows.o = await(type, multiplyValues(p, v, rows.o, /*first=*/0));
    }
    if (facts.vScales)
      p = softmax.narrow(
          multiplyScales(p, memory.stage(memory.valueScales, key)));
    for (auto [i, columns] : llvm::enumerate(memory.values[part])) {
      Value v = memory.stage(columns, key);
      int64_t first = i * plan.getSlice();
      rows.o = await(type, multiplyValues(p, v, rows.o, first));
    }
  };

  forBlocks([&](Value key) {
    Value s = qk(0, getPart(key, 0));
    for (int64_t part = 0; part < plan.getParts(); ++part) {
      Value next;
      if (part + 1 < plan.getParts())
        next = qk(part + 1, getPart(key, part + 1));
      if (!control.isWhole())
        return;
      Value p = softmax.step(s, scale, rows);
      pv(part, getPart(key, part), p);
      s = next;
    }
  });
  if (!control.isWhole())
    return;
  // The first block's wait covers Q as well. Without any key nothing has waited
  // for Q, whose bytes are used again.
  if (!plan.getQInRegs())
    CpAsyncWaitOp::create(b, 0);
  // Says after the loop that no product reads shared memory any more.
  if (plan.getWgmma())
    WgmmaWaitOp::create(b, TypeRange(), ValueRange(), /*pending=*/0);
  finish(rows);
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

SmallVector<Value> CopiedKernel::loadQueries() {
  // Nothing waits for them before keys are asked for.
  SmallVector<Value> tiles;
  for (auto [i, columns] : llvm::enumerate(memory.queries))
    tiles.push_back(
        emitOperand(tile, GlobalLoadOp::create(b, memory.getQueryTile(i),
                                               columns.view, tile.row)));
  return tiles;
}

void CopiedKernel::copyQueries() {
  for (const CopiedColumns &columns : memory.queries)
    CpAsyncOp::create(b, columns.view, tile.row, columns.memory,
                      /*in_bounds=*/UnitAttr());
}

Value CopiedKernel::readQuery(size_t i) {
  return emitOperand(tile, LocalLoadOp::create(b, memory.getQueryTile(i),
                                               memory.queries[i].memory));
}

SmallVector<Value> CopiedKernel::readQueries() {
  SmallVector<Value> operands;
  for (size_t i = 0; i < memory.queries.size(); ++i)
    operands.push_back(plan.getQInRegs() ? readQuery(i)
                                         : memory.queries[i].memory);
  return operands;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

void CopiedKernel::findBlocks() {
  tile.bounds = emitBlockBounds(context, tile.getBoundedTiles(), tile.row,
                                tile.blockM, plan.getBlockN());
  emitRun(tile, plan.getBlockN());
  if (plan.getKeyTeams() > 1)
    takeTeamShare(tile, plan);
}

void CopiedKernel::forBlocks(function_ref<void(Value)> body) {
  const BlockBounds &bounds = tile.bounds;
  control.loop(b.getI32Type(), body, [&](ValueRange inits, Control::Fill fill) {
    auto loop = KVLoopOp::create(b, bounds.begin, bounds.fullBegin,
                                 bounds.fullEnd, bounds.end, plan.getBlockN(),
                                 plan.getStages(), inits, fill);
    loop.setAboveWait(extents.isLatent && extents.widensKeys);
    return loop;
  });
}

Value CopiedKernel::getPart(Value key, int64_t part) {
  if (part == 0)
    return key;
  int64_t distance = part * plan.getBlockN() / plan.getParts();
  Value offset = arith::ConstantIntOp::create(b, distance, 32);
  return arith::AddIOp::create(b, key, offset);
}

//===----------------------------------------------------------------------===//
// Products and scores
//===----------------------------------------------------------------------===//

/// Returns the type of a product that wgmma has in flight.
static InFlightType getInFlight(RankedTensorType type, Attribute layout) {
  return InFlightType::get(type.getContext(), type.getShape(),
                           Float32Type::get(type.getContext()), layout);
}

Value CopiedKernel::multiplyKeys(RankedTensorType type, Value queries,
                                 Value keys, Value sum) {
  auto buffer = cast<BufferType>(keys.getType());
  Value transposed = TransposeOp::create(
      b,
      tile.bufferType({buffer.getShape()[1], buffer.getShape()[0]},
                      buffer.getElementType()),
      keys);
  if (plan.getWgmma())
    return WgmmaOp::create(b, getInFlight(type, type.getEncoding()), queries,
                           transposed, sum, /*columns=*/IntegerAttr(),
                           /*depth=*/IntegerAttr(), /*first=*/IntegerAttr());
  IntegerAttr depthParts;
  if (plan.dividesDepth())
    depthParts = b.getI64IntegerAttr(plan.getColumnWarps());
  return MmaOp::create(b, type, queries, transposed, sum,
                       /*column=*/IntegerAttr(), depthParts,
                       /*f16_sums=*/UnitAttr(), /*interleaved=*/UnitAttr());
}

Value CopiedKernel::multiplyValues(Value p, Value values, Value sum,
                                   int64_t first) {
  auto type = cast<RankedTensorType>(sum.getType());
  if (plan.getWgmma())
    return WgmmaOp::create(b, getInFlight(type, layouts.getDivided()), p,
                           values, sum, /*columns=*/IntegerAttr(),
                           /*depth=*/IntegerAttr(), /*first=*/IntegerAttr());
  IntegerAttr column;
  if (plan.getSlice() || extents.groupColumns)
    column = b.getI64IntegerAttr(first);
  UnitAttr narrowSums;
  if (plan.getResultSums() == ResultSums::F16Block)
    narrowSums = b.getUnitAttr();
  UnitAttr interleaved;
  if (facts.isNarrow())
    interleaved = b.getUnitAttr();
  return MmaOp::create(b, type, p, values, sum, column,
                       /*depth_parts=*/IntegerAttr(), narrowSums, interleaved);
}

Value CopiedKernel::await(RankedTensorType type, Value product) {
  if (!isa<InFlightType>(product.getType()))
    return product;
  return WgmmaWaitOp::create(b, type, product, /*pending=*/0)
      .getResults()
      .front();
}

Value CopiedKernel::makeNoScores(RankedTensorType type) {
  if (plan.getWgmma())
    return {};
  return arith::ConstantOp::create(b, cast<TypedAttr>(b.getZeroAttr(type)));
}

/// Returns `value`, of f16 or f32, as f32.
static Value widen(ImplicitLocOpBuilder &b, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType().isF32())
    return value;
  return arith::ExtFOp::create(b, type.clone(b.getF32Type()), value);
}

Value CopiedKernel::addDepthParts(Value sums) {
  if (!plan.dividesDepth())
    return widen(b, sums);
  // All warps that share rows add the same numbers in the same order.
  auto type = cast<RankedTensorType>(sums.getType());
  RankedTensorType whole =
      layouts.getSharedScores().clone(type.getElementType());
  Value parts = ConvertLayoutOp::create(b, whole.clone(type.getShape()), sums);
  Value result;
  for (int64_t i = 0; i < plan.getColumnWarps(); ++i) {
    Value part = widen(
        b, SliceOp::create(b, whole, parts,
                           b.getI64IntegerAttr(i * whole.getShape().back())));
    result = result ? arith::AddFOp::create(b, result, part).getResult() : part;
  }
  return result;
}

Value CopiedKernel::loadScales(Value values, Value slot, int64_t group) {
  auto type = cast<RankedTensorType>(values.getType());
  int64_t keys = type.getShape()[1];
  RankedTensorType scaleType = tile.f32Tile({keys});
  if (auto layout = dyn_cast<MmaLayoutAttr>(type.getEncoding()))
    scaleType = scaleType.cloneWithEncoding(
        SliceLayoutAttr::get(b.getContext(), /*dim=*/0, layout));
  Value scales;
  if (cast<BufferType>(slot.getType()).getShape()[1] > 1) {
    scales =
        LocalLoadOp::create(b, scaleType, slot, b.getI64IntegerAttr(group));
  } else {
    auto rows = BufferType::get(b.getContext(), {keys}, b.getF32Type(),
                                RowLayoutAttr::get(b.getContext()),
                                MemorySpace::Shared);
    scales =
        LocalLoadOp::create(b, scaleType, ReinterpretOp::create(b, rows, slot));
  }
  return BroadcastOp::create(b, type, scales, /*columns=*/true);
}

Value CopiedKernel::multiplyScales(Value values, Value slot, int64_t group) {
  return arith::MulFOp::create(b, values, loadScales(values, slot, group));
}

Value CopiedKernel::finishScores(Value products, Value key) {
  Value s = products;
  if (failed(emitScores(tile, key, s))) {
    control.fail();
    return {};
  }
  if (plan.exchangesScores() && !plan.dividesDepth() &&
      !plan.gathersProbabilities())
    s = ConvertLayoutOp::create(b, layouts.getSharedScores(), s);
  return s;
}

Value CopiedKernel::getLatentValues(Value slot) {
  // Where rotated columns lie apart, all others are values.
  if (facts.kRope)
    return slot;
  auto type = cast<BufferType>(slot.getType());
  return ReinterpretOp::create(
      b,
      BufferType::get(b.getContext(),
                      {type.getShape()[0], extents.valueColumns},
                      type.getElementType(), type.getLayout(), type.getSpace()),
      slot);
}

//===----------------------------------------------------------------------===//
// The end of a tile, and the kernel
//===----------------------------------------------------------------------===//

void CopiedKernel::finish(const CopiedRows &rows) {
  RunningState state = rows.get();
  state.o = widen(b, state.o);
  bool isDivided = plan.getColumnWarps() > 1;
  if (!isDivided) {
    state = emitRowSums(tile, state);
    if (plan.getKeyTeams() > 1)
      state = mergeTeams(tile, plan, extents, state);
  }
  tile.valueDescale = emitValueDescale(tile);
  if (!isDivided)
    state = emitWithSinks(tile, state);
  if (isTight)
    results.makeViews();
  if (isDivided)
    results.storeDivided(state);
  else
    results.store(state);
}

void CopiedKernel::skipAbsentTile() {
  // The grid covers the longest sequence: tiles beyond a shorter one leave, and
  // so do CTAs beyond the last run that is dealt.
  Value exists;
  if (tile.at.runs)
    exists = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, tile.at.runs,
                                   context.i32(0));
  else if (facts.varlen)
    exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, tile.row,
                                   tile.getRows());
  if (!exists)
    return;
  auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
}

LogicalResult CopiedKernel::run() {
  GridTiles tiles(context, plan, hasTightQueries(facts, plan, extents));
  tile.at = tiles.emitTile();
  tile.row =
      arith::MulIOp::create(b, tile.at.tile, context.i32(plan.getBlockM()));
  emitLengths(tile, tile.row);
  if (isTight)
    context.getKernel()->setAttr(kRenewEntryAttr, b.getUnitAttr());

  OpBuilder::InsertionGuard guard(b);
  skipAbsentTile();
  if (extents.groupColumns)
    computeGroupedTile();
  else
    computeTile();
  if (!control.isWhole())
    return failure();
  if (plan.keepsPartials())
    context.getKernel()->walk([&](Operation *op) {
      if (isa<StoreResultOp, GlobalStoreOp>(op))
        op->setAttr(kKeptAttr, b.getUnitAttr());
    });
  if (tile.at.runs)
    storeAbsentRuns(
        tile, [&] { return tiles.emitTeamThreads(); }, plan.keepsPartials());
  if (facts.mergesRuns())
    tiles.emitMerge(tile.at, tile.row, tile.getRows());
  return success();
}

LogicalResult attn::emitCopied(KernelContext &context, const CopiedPlan &plan) {
  return CopiedKernel(context, plan).run();
}
