//===- CopiedEmit.cpp - Kernels whose blocks cp.async copies --------------===//
//
// One CTA: find the tile, copy Q to shared memory, walk the blocks of keys with
// the online softmax, finish the rows and store them.
//
// With slices of the columns, those of K, then those of V have the slots of one
// ring in turns, and a product is a sum over the slices, or its columns come
// from one after the other.
//
// Where warps share rows, each has its own columns of the results. The scores,
// of which each has those of its own keys or partial sums of a part of the
// depth, pass through shared memory, so that all know the whole rows and
// compute the same softmax; or each computes all.
//
// With several teams each does so for a run of the tile's blocks, and what all
// states give together is stored (CopiedTeams.cpp).
//
// 8-bit keys and values beside 16-bit queries stay as they are in the rings,
// and become f16 as fragments. Queries and probabilities are f16 then.
//
//===----------------------------------------------------------------------===//

#include "CopiedEmit.h"
#include "CopiedEmitter.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"

using namespace mlir;
using namespace mlir::attn;

/// Plans that take more registers keep nothing for the results in their loops:
/// on an H200 (sm_80's PTX, D 64 and 256, no mask and causal, 1k and 4k) 0.98
/// to 1.02 times the time, and what spilled before spills no more. With fewer
/// registers kernels at D 128 took 1.02 and 1.03 times as long under a causal
/// mask, for nothing. What rows of K and V do not share was not counted then.
static constexpr int64_t kTightRegisters = 235;

void CopiedEmitter::emitResultViews() {
  oView = dividesResults() ? emitTeamResultView() : emitResultView("o");
  if (facts.lse)
    lseView = emitResultView("lse");
}

Value CopiedEmitter::allocScales(StringRef name, int64_t groups) {
  return alloc(
      name, BufferType::get(b.getContext(), {plan.getStages(), partN, groups},
                            b.getF32Type(), RowLayoutAttr::get(b.getContext()),
                            MemorySpace::Shared));
}

void CopiedEmitter::allocRings() {
  if (hasGroups())
    return allocGroupedRings();
  int64_t stages = plan.getStages(), parts = plan.getParts();
  kRing = bufferType({stages, partN, getKeySlice()}, facts.keyType);
  vRing = bufferType({stages, partN, getValueSlice()}, facts.keyType);
  if (plan.sharesRing()) {
    kBuffers = vBuffers = {alloc("kv", kRing)};
    return;
  }
  if (hasRopeRing()) {
    kRing = vRing;
    ropeRing = alloc("k_rope", bufferType({stages, partN, facts.ropeDim}));
  } else if (extents.isLatent) {
    // Panels of one width, so that the first ones are the values.
    auto layout = SwizzledLayoutAttr::get(
        b.getContext(),
        SharedLayout::chooseSpan(extents.keyColumns,
                                 facts.keyType.getIntOrFloatBitWidth()));
    auto inPanels = [&](BufferType type) {
      return BufferType::get(b.getContext(), type.getShape(),
                             type.getElementType(), layout, type.getSpace());
    };
    kRing = inPanels(kRing);
    vRing = inPanels(vRing);
  }
  if (facts.kScales) {
    kScaleRing = allocScales("k_scales", /*groups=*/1);
    vScaleRing = allocScales("v_scales", /*groups=*/1);
  }
  for (int64_t part = 0; part < parts; ++part) {
    std::string suffix = parts == 1 ? "" : std::to_string(part);
    kBuffers.push_back(alloc("k" + suffix, kRing));
    if (!extents.isLatent)
      vBuffers.push_back(alloc("v" + suffix, vRing));
  }
}

SmallVector<Value>
CopiedEmitter::emitSlices(int64_t dim,
                          function_ref<Value(int64_t, int64_t)> emit) {
  if (!plan.getSlice())
    return {emit(0, 0)};
  SmallVector<Value> values;
  for (int64_t first = 0; first < dim; first += plan.getSlice())
    values.push_back(emit(first, std::min(plan.getSlice(), dim - first)));
  return values;
}

SmallVector<Value>
CopiedEmitter::emitGroups(int64_t dim,
                          function_ref<Value(int64_t, int64_t)> emit) {
  SmallVector<Value> values;
  for (int64_t first = 0; first < dim; first += extents.groupColumns)
    values.push_back(emit(first, extents.groupColumns));
  return values;
}

SmallVector<Value>
CopiedEmitter::emitKeySlices(function_ref<Value(int64_t, int64_t)> emit) {
  if (hasGroups())
    return emitGroups(facts.headDim, emit);
  if (!hasRopeRing())
    return emitSlices(facts.headDim, emit);
  return {emit(0, facts.valueDim), emit(facts.valueDim, facts.ropeDim)};
}

SmallVector<Value> CopiedEmitter::emitQueries(ArrayRef<Value> views) {
  if (plan.getStreamsQ()) {
    qRing = alloc("q", bufferType({plan.getStages(), blockM, getKeySlice()}));
    allocRings();
    return SmallVector<Value>(views);
  }
  auto getColumns = [&](size_t i) {
    if (hasRopeRing() && !hasGroups())
      return i == 0 ? facts.valueDim : facts.ropeDim;
    return hasGroups() ? extents.groupColumns : getKeySlice();
  };
  SmallVector<Value> tiles;
  auto addTile = [&](Value q) { tiles.push_back(emitOperand(q)); };
  bool isWhole = llvm::all_of(llvm::enumerate(views), [&](auto view) {
    return cast<GlobalType>(view.value().getType()).getShape().back() ==
           getColumns(view.index());
  });
  // Straight to registers: nothing waits for them before keys are asked for.
  if (plan.loadsQueries() && isWhole) {
    allocRings();
    for (auto [i, view] : llvm::enumerate(views))
      addTile(GlobalLoadOp::create(
          b, tileType({blockM, getColumns(i)}, facts.elementType), view, row));
    return tiles;
  }
  SmallVector<Value> buffers;
  for (size_t i = 0; i < views.size(); ++i)
    buffers.push_back(alloc(i == 0 ? "q" : "q" + std::to_string(i),
                            bufferType({blockM, getColumns(i)})));
  allocRings();
  for (auto [view, buffer] : llvm::zip(views, buffers))
    CpAsyncOp::create(b, view, row, buffer, /*in_bounds=*/UnitAttr());
  CpAsyncCommitOp::create(b);
  if (!plan.getQInRegs() && !hasGroups())
    return buffers;
  CpAsyncWaitOp::create(b, 0);
  if (!plan.getQInRegs())
    return keepInQuads(buffers);
  for (Value buffer : buffers)
    tiles.push_back(loadOperand(buffer));
  return tiles;
}

BufferType attn::getSlotType(BufferType ring) {
  return BufferType::get(ring.getContext(), ring.getSlotShape(),
                         ring.getElementType(), ring.getLayout(),
                         ring.getSpace());
}

/// The first key of a part of the block that starts at `key`.
static Value emitPartStart(ImplicitLocOpBuilder &lb, Value key,
                           int64_t distance) {
  if (distance == 0)
    return key;
  Value offset = arith::ConstantIntOp::create(lb, distance, 32);
  return arith::AddIOp::create(lb, key, offset);
}

FailureOr<CopiedEmitter::BlockPart>
CopiedEmitter::emitProducts(ImplicitLocOpBuilder &lb, int64_t part, Value key,
                            const BlockOperands &from) {
  if (hasGroups())
    return emitGroupedProducts(lb, key, from);
  RankedTensorType scoreType = getScoreSumsType();
  Value first = emitPartStart(lb, key, part * partN);
  // By mma.sync to zeros; by wgmma, whose keys have no slices, to nothing.
  Value s;
  if (!plan.getWgmma())
    s = arith::ConstantOp::create(lb,
                                  cast<TypedAttr>(lb.getZeroAttr(scoreType)));
  SmallVector<Value> keys;
  IntegerAttr depthParts;
  if (plan.dividesDepth())
    depthParts = lb.getI64IntegerAttr(plan.getColumnWarps());
  for (auto [q, kView] : llvm::zip(from.q, from.kViews)) {
    // Rotated columns that are apart follow the others.
    Value ring = hasRopeRing() && !keys.empty() ? ropeRing : kBuffers[part];
    BufferType slot = getSlotType(cast<BufferType>(ring.getType()));
    Value k = StageOp::create(lb, slot, kView, first, ring);
    keys.push_back(k);
    Value queries = q;
    if (qRing)
      queries = StageOp::create(
          lb, getSlotType(cast<BufferType>(qRing.getType())), q, row, qRing);
    Value transposed = TransposeOp::create(
        lb, bufferType({slot.getShape()[1], partN}, facts.keyType), k);
    s = emitProduct(lb, scoreType, queries, transposed, s,
                    scoreType.getEncoding(), depthParts);
  }
  s = emitScoreSums(lb, s);
  if (facts.kScales)
    s = arith::MulFOp::create(
        lb, s,
        emitColumnScales(lb, s,
                         stageScales(lb, first, from.kScales, kScaleRing)));
  if (failed(emitScores(lb, first, s)))
    return failure();
  if (plan.exchangesScores() && !plan.dividesDepth() &&
      !plan.gathersProbabilities())
    s = ConvertLayoutOp::create(lb, getSharedScores(), s);
  return BlockPart{s, keys, Value()};
}

Value CopiedEmitter::emitNarrow(ImplicitLocOpBuilder &lb, Value wide) {
  auto type = cast<RankedTensorType>(wide.getType());
  return arith::TruncFOp::create(lb, type.clone(getOperandType()), wide);
}

RankedTensorType CopiedEmitter::getScoreSumsType() {
  Type element = plan.getScoreSums() == ScoreSums::F16 ? Type(b.getF16Type())
                                                       : b.getF32Type();
  if (plan.getColumnWarps() == 1 ||
      (plan.exchangesScores() && !plan.dividesDepth()))
    return tileType({blockM, partN}, element);
  if (!plan.dividesDepth())
    return getSharedScores();
  auto runs = MmaLayoutAttr::get(b.getContext(),
                                 {plan.getRowWarps(), plan.getColumnWarps()},
                                 /*copies=*/1, /*columnRuns=*/true);
  return RankedTensorType::get({blockM, plan.getColumnWarps() * partN}, element,
                               runs);
}

Value CopiedEmitter::emitScoreSums(ImplicitLocOpBuilder &lb, Value sums) {
  auto type = cast<RankedTensorType>(sums.getType());
  auto widen = [&](Value value) -> Value {
    auto narrow = cast<RankedTensorType>(value.getType());
    if (narrow.getElementType().isF32())
      return value;
    return arith::ExtFOp::create(lb, narrow.clone(b.getF32Type()), value);
  };
  if (!plan.dividesDepth())
    return widen(sums);
  // All warps that share rows add the same numbers in the same order.
  RankedTensorType whole = getSharedScores().clone(type.getElementType());
  Value parts = ConvertLayoutOp::create(lb, whole.clone(type.getShape()), sums);
  Value result;
  for (int64_t i = 0; i < plan.getColumnWarps(); ++i) {
    Value part = widen(
        SliceOp::create(lb, whole, parts, lb.getI64IntegerAttr(i * partN)));
    result =
        result ? arith::AddFOp::create(lb, result, part).getResult() : part;
  }
  return result;
}

Value CopiedEmitter::emitInitialResults() {
  RankedTensorType type = f32Tile({blockM, resultColumns});
  if (plan.getResultSums() == ResultSums::F16)
    type = type.clone(b.getF16Type());
  else if (facts.hasNarrowKeys())
    type = RankedTensorType::get(
        type.getShape(), type.getElementType(),
        MmaLayoutAttr::get(b.getContext(),
                           {plan.getRowWarps(), plan.getColumnWarps()},
                           /*copies=*/1, /*columnRuns=*/false,
                           /*columnQuads=*/true));
  else
    return {};
  return arith::ConstantOp::create(b, cast<TypedAttr>(b.getZeroAttr(type)));
}

Value CopiedEmitter::emitWide(Value o) {
  auto type = cast<RankedTensorType>(o.getType());
  if (type.getElementType().isF32())
    return o;
  return arith::ExtFOp::create(b, type.clone(b.getF32Type()), o);
}

Value CopiedEmitter::emitProduct(ImplicitLocOpBuilder &lb,
                                 RankedTensorType type, Value a, Value factor,
                                 Value c, Attribute layout,
                                 IntegerAttr depthParts) {
  if (!plan.getWgmma())
    return MmaOp::create(lb, type, a, factor, c, /*column=*/IntegerAttr(),
                         depthParts, /*f16_sums=*/UnitAttr());
  auto inFlight = InFlightType::get(b.getContext(), type.getShape(),
                                    b.getF32Type(), layout);
  Value product = WgmmaOp::create(lb, inFlight, a, factor, c,
                                  /*columns=*/IntegerAttr(),
                                  /*depth=*/IntegerAttr(),
                                  /*first=*/IntegerAttr());
  return WgmmaWaitOp::create(lb, type, product, /*pending=*/0).getResult(0);
}

Value CopiedEmitter::emitWeightedValues(ImplicitLocOpBuilder &lb, int64_t part,
                                        Value key, const BlockPart &block,
                                        const BlockOperands &from, Value p,
                                        Value o) {
  if (hasGroups())
    return emitGroupedValues(lb, key, block, from, p, o);
  BufferType type = getSlotType(vRing);
  if (extents.isLatent) {
    Value v = block.keys.front();
    if (!hasRopeRing())
      v = ReinterpretOp::create(lb, type, v);
    return emitProduct(lb, cast<RankedTensorType>(o.getType()), p, v, o,
                       getDividedLayout());
  }
  Value first = emitPartStart(lb, key, part * partN);
  if (facts.vScales)
    p = arith::MulFOp::create(
        lb, p,
        emitColumnScales(lb, p,
                         stageScales(lb, first, from.vScales, vScaleRing)));
  if (cast<RankedTensorType>(p.getType()).getElementType() != getOperandType())
    p = emitNarrow(lb, p);
  UnitAttr sums;
  if (plan.getResultSums() == ResultSums::F16Block)
    sums = lb.getUnitAttr();
  for (auto [index, view] : llvm::enumerate(from.vViews)) {
    Value v = StageOp::create(lb, type, view, first, vBuffers[part]);
    IntegerAttr column;
    if (plan.getSlice())
      column = lb.getI64IntegerAttr(index * plan.getSlice());
    o = MmaOp::create(lb, o.getType(), p, v, o, column,
                      /*depth_parts=*/IntegerAttr(), sums);
  }
  return o;
}

Value CopiedEmitter::emitRescale(ImplicitLocOpBuilder &lb, Value factor,
                                 Value o) {
  if (plan.getColumnWarps() > 1)
    factor = getDividedRows().spread(lb, factor);
  return emitRareRescale(lb, factor, o).front();
}

FailureOr<RunningState> CopiedEmitter::emitBlock(ImplicitLocOpBuilder &lb,
                                                 const BlockOperands &from,
                                                 Value key,
                                                 RunningState state) {
  int64_t parts = plan.getParts();
  // Products of the next part stand before the softmax of this one.
  // Where columns are divided, row values are not where the results are, and
  // the softmax's step rescales f32.
  bool isApart =
      plan.getColumnWarps() > 1 || plan.getResultSums() == ResultSums::F16;
  FailureOr<BlockPart> each = emitProducts(lb, 0, key, from);
  for (int64_t part = 0; part < parts && succeeded(each); ++part) {
    FailureOr<BlockPart> next = BlockPart();
    if (part + 1 < parts)
      next = emitProducts(lb, part + 1, key, from);
    if (plan.gathersProbabilities()) {
      GatheredSoftmax::Step step = getGathered().emit(
          lb, each->scores, state, from.scale, getOperandType());
      Value o = emitRescale(lb, step.factor, state.o);
      RunningState next(
          step.m, step.l,
          emitWeightedValues(lb, part, key, *each, from, step.p, o));
      next.largest = step.largest;
      return next;
    }
    auto softmax = OnlineSoftmaxOp::create(
        lb, each->scores, state.m, state.l, isApart ? Value() : state.o,
        from.scale, plan.getSoftmax(), state.largest);
    softmax.setWhole(hasWholeMaxima);
    Value p = softmax.getP();
    if (!facts.kScales)
      p = emitNarrow(lb, p);
    Value rescaled = isApart ? emitRescale(lb, softmax.getFactor(), state.o)
                             : softmax.getNewO();
    Value o = emitWeightedValues(lb, part, key, *each, from, p, rescaled);
    Value largest = softmax.getNewLargest();
    state = {softmax.getNewM(), softmax.getNewL(), o};
    state.largest = largest;
    each = next;
  }
  if (failed(each))
    return failure();
  return state;
}

LogicalResult CopiedEmitter::emitTile() {
  int64_t blockN = plan.getBlockN();
  BlockOperands from;
  if (!hasNarrowLatent())
    from.q = emitKeySlices([&](int64_t first, int64_t columns) {
      return emitQueryView(first, columns);
    });
  if (hasNarrowLatent())
    from.kViews = emitNarrowLatentViews();
  else
    from.kViews = emitKeySlices([&](int64_t first, int64_t columns) {
      return hasRopeRing() && first != 0
                 ? source->emitView("k_rope", at)
                 : source->emitView("k", at, first, columns);
    });
  auto emitValueView = [&](int64_t first, int64_t columns) {
    return source->emitView("v", at, first, columns);
  };
  if (!extents.isLatent)
    from.vViews = hasGroups() ? emitGroups(facts.valueDim, emitValueView)
                              : emitSlices(facts.valueDim, emitValueView);
  if (facts.kScales)
    from.kScales = source->emitView("k_scales", at);
  if (facts.vScales)
    from.vScales = source->emitView("v_scales", at);
  // Slices leave no registers to spare.
  bool isTight =
      plan.getSlice() != 0 ||
      extents.getRegisters(plan).getTotal() - extents.getOwnRowRegisters(plan) >
          kTightRegisters;
  if (isTight)
    context.getKernel()->setAttr(kRenewEntryAttr, b.getUnitAttr());
  else
    emitResultViews();
  from.q = hasNarrowLatent() ? emitNarrowLatentQueries() : emitQueries(from.q);

  bounds =
      emitBlockBounds(context, getBoundedTiles(*this), row, blockM, blockN);
  emitRun(blockN);
  if (plan.getKeyTeams() > 1)
    emitTeamShare();
  emitScoreDescale();
  from.scale = emitExponentScale();
  RunningState init = emitInitialState();
  if (Value o = emitInitialResults())
    init.o = o;
  if (plan.gathersProbabilities())
    init.l = getGathered().emitNoSums(b);
  if (dividesByRounded(facts))
    init.largest = plan.gathersProbabilities()
                       ? init.m
                       : splat(cast<RankedTensorType>(init.l.getType()),
                               -std::numeric_limits<double>::infinity());
  LogicalResult status = success();
  auto body = [&](OpBuilder &builder, Location loc, Value key,
                  ValueRange carried) {
    ImplicitLocOpBuilder lb(loc, builder);
    FailureOr<RunningState> next =
        emitBlock(lb, from, key, RunningState(carried));
    status = success(succeeded(next));
    YieldOp::create(lb, succeeded(next) ? next->list()
                                        : SmallVector<Value>(carried));
  };
  auto loop =
      KVLoopOp::create(b, bounds.begin, bounds.fullBegin, bounds.fullEnd,
                       bounds.end, blockN, plan.getStages(), init.list(), body);
  loop.setAboveWait(hasNarrowLatent());
  if (failed(status))
    return failure();
  // Without any key nothing has waited for Q, whose bytes are used again.
  if (!plan.getQInRegs())
    CpAsyncWaitOp::create(b, 0);
  // Says behind the loop that no product reads shared memory any more.
  if (plan.getWgmma())
    WgmmaWaitOp::create(b, TypeRange(), ValueRange(), /*pending=*/0);
  RunningState state(loop.getResults());
  state.o = emitWide(state.o);
  if (plan.getColumnWarps() > 1) {
    emitValueDescale();
    if (isTight)
      emitResultViews();
    storeDivided(state);
    return success();
  }
  state = emitRowSums(state);
  if (plan.getKeyTeams() > 1)
    state = mergeTeams(state);
  emitValueDescale();
  state = emitWithSinks(state);
  if (isTight)
    emitResultViews();
  if (plan.getKeyTeams() == 1)
    storeResults(state, lseView);
  else
    storeTeamResults(state);
  return success();
}

void CopiedEmitter::storeDivided(RunningState carried) {
  if (plan.gathersProbabilities())
    carried.l = getDividedRows().gather(b, carried.l);
  FinalRows rows = emitFinalRows(carried.m, carried.l, carried.largest);
  if (lseView)
    emitLSE(rows.m, rows.l, lseView);
  DividedRows divided = getDividedRows();
  Value factor = emitRowFactor(rows),
        weight = emitInitWeight(rows.getDivisor());
  if (weight)
    weight = divided.spread(b, weight);
  Value o;
  if (facts.hasPartialScales())
    o = emitScaledRows(carried.o, factor, weight, &divided).front();
  else
    o = emitQuotient(carried.o, divided.spread(b, factor), weight);
  EpilogueKind epilogue = plan.getEpilogue();
  if (facts.hasNarrowKeys() && epilogue == EpilogueKind::Auto)
    epilogue = EpilogueKind::Direct;
  StoreResultOp::create(b, o, oView, row, emitScratch(), /*map=*/Value(),
                        /*coordinates=*/ValueRange(), epilogue);
}

Value CopiedEmitter::emitScratch() {
  // All other buffers are dead by now: staging takes their bytes. Results of 32
  // bits need none: four lanes fill a sector of 32 bytes by themselves.
  if (facts.outType.isF32() || plan.getTeams() != 1 ||
      extents.oBytes > extents.getSharedBytes(plan).getTotal() ||
      facts.o.getRowAlignment() != 16)
    return {};
  return alloc("o", bufferType({blockM, resultColumns}, facts.outType));
}

void CopiedEmitter::storeResults(RunningState state, Value lse) {
  // Columns in quads fill sectors of 32 bytes as they are.
  EpilogueKind epilogue = plan.getEpilogue();
  // Shuffles, and copies through shared memory, of many results of f16 were
  // seen to spill: ptxas widens as many of them at once as there are registers.
  bool hasMany = extents.getNarrowResultRegisters(plan) >=
                 CopiedExtents::kManyNarrowResults;
  if ((facts.hasNarrowKeys() || (hasMany && plan.getSlice())) &&
      epilogue == EpilogueKind::Auto)
    epilogue = EpilogueKind::Direct;
  emitResults(state, oView, lse, emitScratch(), epilogue);
}

/// True if a plan is to leave open which rows of its only tile there are.
/// Queries of rows that are known not to exist are zeros, which stand in the
/// fragments' registers all the same, and ptxas 13.0 makes them anew where it
/// keeps others: of plans of decode with 224 columns and more and these
/// registers it spilled 4 to 104 bytes, and none where the zeros come from a
/// branch. So it did of 8-bit keys with scales of groups and 512 columns, 4
/// bytes. 16-bit keys with 128 columns and other 8-bit ones with 512 fit with
/// rows that are known, and spilled 4 to 8 bytes without.
static bool leavesRowsOpen(const ProblemFacts &facts, const CopiedPlan &plan,
                           const CopiedExtents &extents) {
  constexpr int64_t kFewestColumns = 208, kFewestScaledColumns = 512,
                    kFewestRegisters = 231;
  if (facts.hasNarrowKeys() && !hasGroupScales(facts))
    return false;
  return plan.getRowWarps() == 1 &&
         facts.headDim >=
             (facts.hasNarrowKeys() ? kFewestScaledColumns : kFewestColumns) &&
         extents.getRegisters(plan).getTotal() >= kFewestRegisters;
}

LogicalResult CopiedEmitter::run() {
  GridTiles tiles(context, plan, leavesRowsOpen(facts, plan, extents));
  at = tiles.emitTile();
  emitLengths();
  row = arith::MulIOp::create(b, at.tile, context.i32(plan.getBlockM()));
  // The grid covers the longest sequence: tiles beyond a shorter one leave, and
  // so do CTAs beyond the last run that is dealt.
  OpBuilder::InsertionGuard guard(b);
  Value exists;
  if (at.runs)
    exists = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, at.runs,
                                   context.i32(0));
  else if (facts.varlen)
    exists =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, getRows());
  if (exists) {
    auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  if (failed(emitTile()))
    return failure();
  if (plan.keepsPartials())
    context.getKernel()->walk([&](Operation *op) {
      if (isa<StoreResultOp, GlobalStoreOp>(op))
        op->setAttr(kKeptAttr, b.getUnitAttr());
    });
  if (at.runs)
    tiles.emitAbsentRuns(at, row, getRows());
  if (facts.mergesRuns())
    tiles.emitMerge(at, row, getRows());
  return success();
}

LogicalResult attn::emitCopied(KernelContext &context, const CopiedPlan &plan) {
  return CopiedEmitter(context, plan).run();
}
