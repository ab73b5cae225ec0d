//===- MlaEmit.cpp - Kernels of mla whose scores have a warpgroup ---------===//

#include "../Copied/GridTiles.h"
#include "../Tma/RingFacts.h"
#include "Mla.h"
#include "MlaEmitter.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace mlir::attn;

/// The tiles of a plan; runs of keys are dealt as tiles are.
static TilePlan getTilePlan(const ProblemFacts &facts, MlaPlanAttr plan) {
  TilePlan tiles = {plan.getBlockM(), plan.getBlockN(), TileOrder::RowMajor,
                    /*groupHeads=*/0};
  tiles.packedHeads = getPackedHeads(facts, plan);
  tiles.runs = countRuns(facts);
  tiles.cluster = plan.getCluster();
  return tiles;
}

MlaEmitter::MlaEmitter(KernelContext &context, MlaPlanAttr plan)
    : RingEmitter(context, getTilePlan(context.facts, plan)), plan(plan),
      extents(facts, plan) {
  hasWholeMaxima = facts.hasWholeMaxima();
}

Ring MlaEmitter::makeKeyRing(StringRef name, StringRef tensor, int64_t stages,
                             int64_t columns, Type type,
                             ArrayRef<std::pair<Role, SignalKind>> roles) {
  int64_t blockN = plan.getBlockN();
  Ring ring;
  ring.name = tensor;
  ring.buffer =
      allocSlots(name, {stages, blockN, columns}, type, kGroupColumns);
  ring.slotType = bufferType({blockN, columns}, type);
  ring.channel = makeChannel(name, stages, roles);
  if (roles.front().first.name != kLatentLoad.name)
    return ring;
  ring.ctas = plan.getCluster();
  if (byTma)
    addMap(ring);
  return ring;
}

Slice MlaEmitter::makeSlice(StringRef name, StringRef suffix, int64_t first,
                            int64_t columns, bool isValue, bool isHeld) {
  int64_t stages = plan.getStages() +
                   (isHeld || hasSpareSlot(facts, first, isValue) ? 1 : 0);
  bool isApart = facts.kRope && !isValue;
  StringRef tensor = isApart ? "k_rope" : "k";
  std::pair<Role, SignalKind> load = {kLatentLoad, byTma ? SignalKind::Tx
                                                         : SignalKind::Arrive};
  Ring raw;
  std::string ringName = name.str();
  if (facts.hasNarrowKeys()) {
    raw = makeKeyRing(name, tensor, countRawSlots(isValue), columns,
                      facts.keyType,
                      {load, {kLatentWidener, SignalKind::Arrive}});
    ringName += "_wide";
    load = {kLatentWidener, SignalKind::Arrive};
  }
  SmallVector<std::pair<Role, SignalKind>> roles = {
      load, {kLatentScores, SignalKind::Arrive}};
  if (isValue)
    roles.push_back({kLatentResults, SignalKind::Arrive});
  Ring ring =
      makeKeyRing(ringName, tensor, stages, columns, getOperandType(), roles);
  bool areApart = facts.qRope && !isValue;
  Ring queries;
  std::string queryName = ("q" + suffix).str();
  queries.name = areApart ? "q_rope" : "q";
  queries.holds = RingRows::Queries;
  queries.slotType = bufferType({blockM, columns});
  if (!isHeld)
    queries.buffer = allocSlots(queryName, {1, blockM, columns},
                                facts.elementType, kGroupColumns / 2);
  if (queriesByTma && !isHeld)
    queries.channel = makeChannel(
        queryName, /*stages=*/1,
        {{kLatentLoad, SignalKind::Tx}, {kLatentScores, SignalKind::Arrive}});
  if (queriesByTma)
    addMap(queries);
  int64_t rotated = first - facts.valueDim;
  return {ring,
          queries,
          raw,
          first,
          columns,
          isApart ? rotated : first,
          areApart ? rotated : first,
          isHeld};
}

void MlaEmitter::makeRings() {
  int64_t blockN = plan.getBlockN();
  byTma = loadsLatentByTma(facts, plan);
  if (!byTma) {
    std::optional<std::string> unmappable = findUnmappable(facts);
    remark::missed(
        b.getLoc(),
        remark::RemarkOpts::name("latent-copies").category("attn.mla"))
        << remark::reason(
               "keys are copied by cp.async, since {0}",
               unmappable ? "TMA does not support " + *unmappable
                          : llvm::formatv("a slot takes {0} copies by TMA",
                                          blockN / getBoxRows(facts, blockN))
                                .str());
  }
  queriesByTma = byTma && loadsQueriesByTma(facts, plan);
  valueSlices = countLatentSlices(facts, plan);
  int64_t columns = extents.valueColumns / valueSlices;
  for (int64_t i = 0; i < valueSlices; ++i)
    slices.push_back(makeSlice("k" + std::to_string(i), std::to_string(i),
                               i * columns, columns, /*isValue=*/true,
                               holdsLatentQueries(facts, plan) && i == 0));
  if (int64_t rest = extents.keyColumns - extents.valueColumns)
    slices.push_back(makeSlice("rope", "_rope", extents.valueColumns, rest,
                               /*isValue=*/false));
  for (unsigned i = 0; i < slices.size(); ++i)
    order.push_back(i);
  // Beside widened keys the last slice has one slot, and all others are there
  // when that is filled.
  if (facts.hasNarrowKeys())
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
  auto channel = [&](StringRef name, Role from, Role to) {
    return makeChannel(name, /*stages=*/1,
                       {{from, SignalKind::Arrive}, {to, SignalKind::Arrive}});
  };
  if (!queriesByTma)
    qChannel = channel("q", kLatentLoad, kLatentScores);
  StringRef halves[] = {kFront, kBack};
  pChannel =
      makeChannel("p", /*stages=*/1,
                  {{kLatentScores, SignalKind::Arrive},
                   {kLatentResults, SignalKind::Arrive}},
                  handsOnHalves() ? ArrayRef(halves) : ArrayRef<StringRef>());
  scaleChannel = channel("scale", kLatentScores, kLatentResults);
  Type operand = getOperandType();
  probabilities = handsOnHalves()
                      ? alloc("p", bufferType({2, blockM, blockN / 2}, operand))
                      : alloc("p", bufferType({blockM, blockN}, operand));
  auto rows = [&](StringRef name) {
    return alloc(name, BufferType::get(b.getContext(), {blockM}, b.getF32Type(),
                                       AutoLayoutAttr::get(b.getContext()),
                                       MemorySpace::Shared));
  };
  factors = rows("factor");
  scales = rows("scale");
  if (facts.hasPartialScales()) {
    RankedTensorType type = getResultRows().getPartialType();
    auto layout = SwizzledLayoutAttr::get(
        b.getContext(), SharedLayout::chooseSpan(type.getShape()[1], 32));
    units = alloc("units",
                  BufferType::get(b.getContext(), type.getShape(),
                                  b.getF32Type(), layout, MemorySpace::Shared));
  }
}

//===----------------------------------------------------------------------===//
// The warpgroup that loads
//===----------------------------------------------------------------------===//

SmallVector<Value> MlaEmitter::emitBlockLoad(Value key, ValueRange cursors) {
  SmallVector<Value> next;
  for (auto [slice, cursor] : llvm::zip(slices, cursors))
    next.push_back(advance(cursor, slice.getLoaded()));
  if (byTma) {
    elect([&]() {
      // In front of the waits: the entry of the table comes from far away.
      Value lead = slices[0].getLoaded().view == TensorMapView::Bounded
                       ? source->emitLead(key)
                       : Value();
      for (unsigned i : order) {
        const Slice &slice = slices[i];
        auto [slot, token] =
            acquire(slice.getLoaded(), cursors[i], kLatentLoad);
        fill(slice.getLoaded(), slot, token, at.kvHead, key,
             context.i32(slice.firstInTensor), lead);
        release(slice.getLoaded(), token, kLatentLoad);
      }
    });
    return next;
  }
  SmallVector<Value> tokens;
  auto copy = [&](ArrayRef<unsigned> places) {
    for (unsigned i : places) {
      const Slice &slice = slices[i];
      const Ring &ring = slice.getLoaded();
      Value view =
          source->emitView(ring.name, at, slice.firstInTensor, slice.columns);
      auto [slot, token] = acquire(ring, cursors[i], kLatentLoad);
      CpAsyncOp::create(b, view, key, slot, /*in_bounds=*/UnitAttr());
      tokens.push_back(token);
    }
    CpAsyncCommitOp::create(b);
  };
  auto handOn = [&](ArrayRef<unsigned> places, ArrayRef<Value> tokens,
                    int64_t pending) {
    CpAsyncWaitOp::create(b, pending);
    for (auto [i, token] : llvm::zip(places, tokens))
      release(slices[i].getLoaded(), token, kLatentLoad);
  };
  ArrayRef<unsigned> all = order, early = all;
  if (facts.hasNarrowKeys())
    early = all.drop_back();
  ArrayRef<unsigned> late = all.drop_front(early.size());
  copy(early);
  // The slot of the late slice is free long after the others, which are widened
  // while its copies are on their way.
  if (!late.empty())
    copy(late);
  handOn(early, ArrayRef(tokens).take_front(early.size()),
         /*pending=*/late.empty() ? 0 : 1);
  if (!late.empty())
    handOn(late, ArrayRef(tokens).take_back(late.size()), /*pending=*/0);
  return next;
}

bool MlaEmitter::hasOneTile() const {
  if (ShapedType::isDynamic(facts.heads) ||
      ShapedType::isDynamic(facts.queries))
    return false;
  int64_t tiles = llvm::divideCeil(countLatentRows(facts), blockM) *
                  facts.batch * tilePlan.runs;
  return tiles <= context.target.getClusteredSMs(plan.getCluster());
}

SmallVector<Value> MlaEmitter::emitLoadTile(ValueRange cursors) {
  Value last = arith::SubIOp::create(b, bounds.end, context.i32(1));
  Value trips = b.createOrFold<arith::SubIOp>(bounds.end, bounds.begin);
  auto loadBlocks = [&](Value first, Value end, ValueRange inits) {
    return scf::ForOp::create(
        b, first, end, context.i32(1), inits,
        [&](OpBuilder &builder, Location, Value index, ValueRange carried) {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToStart(builder.getInsertionBlock());
          Value key =
              arith::MulIOp::create(b, arith::SubIOp::create(b, last, index),
                                    context.i32(plan.getBlockN()));
          scf::YieldOp::create(b, emitBlockLoad(key, carried));
        });
  };
  size_t queryCursors = listQueryChannels().size();
  SmallVector<Value> keyCursors(cursors.drop_front(queryCursors)), next;
  emitHeldQueryLoad(keyCursors);
  // The first block needs no queries to be free, which the tile before may
  // still read. Where there is none, they are what the first scores lack. Of
  // keys that are widened it changed nothing.
  bool keysFirst = byTma && !hasOneTile() && !facts.hasNarrowKeys();
  Value loaded = context.i32(0);
  if (keysFirst) {
    Value one = arith::MinSIOp::create(b, trips, context.i32(1));
    scf::ForOp first = loadBlocks(loaded, one, keyCursors);
    keyCursors = llvm::to_vector(ValueRange(first.getResults()));
    loaded = context.i32(1);
  }
  next = emitQueryLoad(cursors.take_front(queryCursors));
  scf::ForOp rest = loadBlocks(loaded, trips, keyCursors);
  llvm::append_range(next, rest.getResults());
  return next;
}

void MlaEmitter::forHeldQueries(MutableArrayRef<Value> cursors,
                                function_ref<void(const Slice &, Value)> emit) {
  for (auto [slice, cursor] : llvm::zip(slices, cursors)) {
    if (!slice.isHeld)
      continue;
    emit(slice, cursor);
    cursor = advance(cursor, slice.ring);
  }
}

void MlaEmitter::emitHeldQueryLoad(MutableArrayRef<Value> cursors) {
  forHeldQueries(cursors, [&](const Slice &slice, Value cursor) {
    elect([&]() {
      auto [slot, token] = acquire(slice.ring, cursor, kLatentLoad);
      fill(slice.queries, slot, token, at.head, row,
           context.i32(slice.firstInQueries));
      release(slice.ring, token, kLatentLoad);
    });
  });
}

SmallVector<Value> MlaEmitter::listQueryChannels() {
  if (!queriesByTma)
    return {qChannel};
  SmallVector<Value> channels;
  for (const Slice &slice : slices)
    if (!slice.isHeld)
      channels.push_back(slice.queries.channel);
  return channels;
}

SmallVector<Value> MlaEmitter::emitQueryLoad(ValueRange cursors) {
  if (queriesByTma) {
    SmallVector<Value> next;
    auto others = llvm::make_filter_range(
        slices, [](const Slice &slice) { return !slice.isHeld; });
    elect([&]() {
      for (auto [slice, cursor] : llvm::zip(others, cursors)) {
        auto [slot, token] = acquire(slice.queries, cursor, kLatentLoad);
        fill(slice.queries, slot, token, at.head, row,
             context.i32(slice.firstInQueries));
        release(slice.queries, token, kLatentLoad);
      }
    });
    for (auto [slice, cursor] : llvm::zip(others, cursors))
      next.push_back(advance(cursor, slice.queries));
    return next;
  }
  Value token = await(qChannel, cursors[0], kLatentLoad);
  for (const Slice &slice : slices)
    CpAsyncOp::create(b, emitQueryView(slice.first, slice.columns), row,
                      emitQueries(slice), /*in_bounds=*/UnitAttr());
  CpAsyncCommitOp::create(b);
  CpAsyncWaitOp::create(b, 0);
  ChannelReleaseOp::create(b, qChannel, token, kLatentLoad);
  return {this->next(cursors[0], qChannel)};
}

LogicalResult MlaEmitter::emitLoad() {
  if (byTma)
    elect([&]() {
      prefetchMaps({slices[0].getLoaded().map, slices[0].queries.map});
    });
  TileLoopOp loop = emitTileLoop(
      [&]() -> SmallVector<Value> {
        SmallVector<Value> cursors;
        for (Value channel : listQueryChannels())
          cursors.push_back(start(channel, kLatentLoad));
        for (const Slice &slice : slices)
          cursors.push_back(start(slice.getLoaded().channel, kLatentLoad));
        return cursors;
      },
      [&](ValueRange cursors) -> FailureOr<SmallVector<Value>> {
        return emitLoadTile(cursors);
      });
  return success(static_cast<bool>(loop));
}

//===----------------------------------------------------------------------===//
// The warpgroup of the scores
//===----------------------------------------------------------------------===//

Value MlaEmitter::emitScoreProduct(SmallVectorImpl<Value> &cursors) {
  int64_t blockN = plan.getBlockN();
  RankedTensorType type = f32Tile({blockM, blockN});
  auto inFlight =
      InFlightType::get(b.getContext(), type.getShape(), b.getF32Type());
  Value product;
  SmallVector<Value> tokens;
  for (unsigned index : order) {
    const Slice &slice = slices[index];
    Value &cursor = cursors[index];
    auto [slot, token] = acquire(slice.ring, cursor, kLatentScores);
    Value queries =
        convertedQueries.empty() ? emitQueries(slice) : convertedQueries[index];
    Value transposed = TransposeOp::create(
        b, bufferType({slice.columns, blockN}, getOperandType()), slot);
    product = WgmmaOp::create(b, inFlight, queries, transposed, product,
                              /*columns=*/IntegerAttr(),
                              /*depth=*/IntegerAttr(), /*first=*/IntegerAttr());
    tokens.push_back(token);
    cursor = advance(cursor, slice.ring);
  }
  Value scores =
      WgmmaWaitOp::create(b, type, product, /*pending=*/0).getResult(0);
  for (auto [index, token] : llvm::zip(order, tokens))
    release(slices[index].ring, token, kLatentScores);
  return scores;
}

/// What the loop of the scores carries in front of the cursors of the slices:
/// m, l, the largest exponents of parts of rows, and the cursor of p.
static constexpr unsigned kScoresCarried = 4;

LogicalResult MlaEmitter::emitScoreBlock(Value scale, Value key,
                                         ValueRange carried) {
  SmallVector<Value> cursors(carried.drop_front(kScoresCarried));
  Value s = emitScoreProduct(cursors);
  if (failed(emitScores(b, key, s)))
    return failure();
  auto softmax =
      OnlineSoftmaxOp::create(b, s, carried[0], carried[1],
                              /*o=*/Value(), scale, plan.getSoftmax(),
                              /*largest=*/carried[2]);
  softmax.setWhole(hasWholeMaxima);
  Value p = arith::TruncFOp::create(
      b, tileType({blockM, plan.getBlockN()}, getOperandType()),
      softmax.getP());
  emitHandOver(p, softmax.getFactor(), carried[3]);
  SmallVector<Value> next = {softmax.getNewM(), softmax.getNewL(),
                             softmax.getNewLargest(),
                             this->next(carried[3], pChannel)};
  llvm::append_range(next, cursors);
  YieldOp::create(b, next);
  return success();
}

void MlaEmitter::emitHandOver(Value p, Value factor, Value cursor) {
  if (!handsOnHalves()) {
    Value free = await(pChannel, cursor, kLatentScores);
    LocalStoreOp::create(b, p, probabilities);
    LocalStoreOp::create(b, factor, factors);
    ChannelReleaseOp::create(b, pChannel, free, kLatentScores);
    return;
  }
  int64_t columns = plan.getBlockN() / 2;
  auto half = [&](int64_t index) -> Value {
    return SliceOp::create(b, tileType({blockM, columns}, getOperandType()), p,
                           index * columns);
  };
  Value front = half(0);
  Value free = await(pChannel, cursor, kLatentScores);
  Type type = TokenType::get(b.getContext());
  auto split = ChannelSplitOp::create(b, TypeRange{type, type}, pChannel, free,
                                      kLatentScores);
  LocalStoreOp::create(b, front, emitHalf(0));
  LocalStoreOp::create(b, factor, factors);
  ChannelReleaseOp::create(b, pChannel, split.getResult(0), kLatentScores);
  LocalStoreOp::create(b, half(1), emitHalf(1));
  ChannelReleaseOp::create(b, pChannel, split.getResult(1), kLatentScores);
}

KVLoopOp MlaEmitter::emitScoreLoop(Value scale, ValueRange cursors) {
  RunningState state = emitInitialState(
      /*bets=*/plan.getSoftmax() == SoftmaxPolicy::Optimistic ||
      plan.getSoftmax() == SoftmaxPolicy::Lagged);
  Value largest = splat(cast<RankedTensorType>(state.l.getType()),
                        -std::numeric_limits<double>::infinity());
  SmallVector<Value> inits = {state.m, state.l, largest};
  llvm::append_range(inits, cursors);
  bool isWhole = true;
  auto body = [&](OpBuilder &builder, Location, Value key, ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(builder.getInsertionBlock());
    isWhole = succeeded(emitScoreBlock(scale, key, carried));
  };
  auto loop = KVLoopOp::create(b, bounds.begin, bounds.fullBegin,
                               bounds.fullEnd, bounds.end, plan.getBlockN(),
                               /*stages=*/1, inits, body);
  return isWhole ? loop : KVLoopOp();
}

FailureOr<SmallVector<Value>> MlaEmitter::emitScoreTile(ValueRange cursors) {
  emitScoreDescale();
  emitValueDescale();
  Value scale = emitExponentScale();
  SmallVector<Value> channels = listQueryChannels(), queryTokens;
  for (auto [channel, cursor] : llvm::zip(channels, cursors))
    queryTokens.push_back(await(channel, cursor, kLatentScores));
  convertedQueries.clear();
  if (facts.hasNarrowKeys())
    for (const Slice &slice : slices)
      convertedQueries.push_back(emitConvertedQueries(slice));
  ValueRange others = cursors.drop_front(channels.size());
  SmallVector<Value> inits = {others[0]};
  llvm::append_range(inits, others.drop_front(2));
  forHeldQueries(MutableArrayRef(inits).drop_front(1), [&](const Slice &slice,
                                                           Value cursor) {
    auto [slot, token] = acquire(slice.ring, cursor, kLatentScores);
    heldQueries = LocalLoadOp::create(
        b, tileType({blockM, slice.columns}, facts.elementType), slot);
    release(slice.ring, token, kLatentScores);
  });
  KVLoopOp loop = emitScoreLoop(scale, inits);
  if (!loop)
    return failure();
  for (auto [channel, token] : llvm::zip(channels, queryTokens))
    ChannelReleaseOp::create(b, channel, token, kLatentScores);
  FinalRows rows =
      emitFinalRows(loop.getResult(0), loop.getResult(1), loop.getResult(2));
  Value factor = emitRowFactor(rows);
  Value free = await(scaleChannel, others[1], kLatentScores);
  LocalStoreOp::create(b, factor, scales);
  ChannelReleaseOp::create(b, scaleChannel, free, kLatentScores);
  if (facts.lse)
    emitLSE(rows.m, rows.l, emitResultView("lse"));
  SmallVector<Value> next;
  for (auto [channel, cursor] : llvm::zip(channels, cursors))
    next.push_back(this->next(cursor, channel));
  next.push_back(loop.getResult(3));
  next.push_back(this->next(others[1], scaleChannel));
  llvm::append_range(next, loop.getResults().drop_front(kScoresCarried));
  return next;
}

LogicalResult MlaEmitter::emitScoreRole() {
  TileLoopOp loop = emitTileLoop(
      [&]() -> SmallVector<Value> {
        SmallVector<Value> cursors;
        for (Value channel : listQueryChannels())
          cursors.push_back(start(channel, kLatentScores));
        cursors.push_back(start(pChannel, kLatentScores));
        cursors.push_back(start(scaleChannel, kLatentScores));
        for (const Slice &slice : slices)
          cursors.push_back(start(slice.ring.channel, kLatentScores));
        return cursors;
      },
      [&](ValueRange cursors) { return emitScoreTile(cursors); });
  return success(static_cast<bool>(loop));
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void MlaEmitter::prefetchPages() {
  constexpr int64_t kLineBytes = 128, kEntryBytes = 4, kMostLines = 32;
  const TensorFacts &table = facts.pageTable;
  if (!table || !byTma || !hasOneTile() ||
      llvm::any_of(table.shape, ShapedType::isDynamic) ||
      llvm::any_of(table.strides, ShapedType::isDynamic))
    return;
  int64_t entries = 1;
  for (auto [extent, stride] : llvm::zip(table.shape, table.strides))
    entries += (extent - 1) * stride;
  int64_t lines = llvm::divideCeil(entries * kEntryBytes, kLineBytes);
  // All CTAs ask for all of them.
  if (lines > kMostLines)
    return;
  // The first copy waits for the length of its sequence, and then for the page
  // that stands in the table where this says. Both come from DRAM.
  Value thread = arith::IndexCastUIOp::create(
      b, b.getI32Type(), gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  Value has = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, thread,
                                    context.i32(lines));
  auto branch = scf::IfOp::create(b, has, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value pointer = context.getPointer(table.name);
  Value offset =
      arith::MulIOp::create(b, context.widen(thread), context.i64(kLineBytes));
  NVVM::PrefetchOp::create(
      b,
      NVVM::PrefetchCacheLevelAttr::get(b.getContext(),
                                        NVVM::PrefetchCacheLevel::L2),
      /*evictPriority=*/NVVM::CacheEvictionPriorityAttr(),
      LLVM::GEPOp::create(b, pointer.getType(), b.getI8Type(), pointer,
                          ValueRange{offset}),
      /*predicate=*/Value(), /*tensormap=*/UnitAttr(), /*uniform=*/UnitAttr(),
      /*inParamSpace=*/UnitAttr());
}

bool MlaEmitter::hasSimpleLoads() const {
  int64_t blockN = plan.getBlockN();
  bool isSlot = !facts.isPaged() || getBoxRows(facts, 2 * blockN) == blockN;
  return byTma && isSlot && facts.mask.getKind() != MaskKind::Window;
}

SmallVector<int64_t> MlaEmitter::getPartitionRegisters() {
  // 640 threads start with 96 registers each: 160 x 256 + 160 x 128 = 61440.
  if (facts.hasNarrowKeys())
    return hasSimpleLoads() ? SmallVector<int64_t>{160, 72, 24, 64}
                            : SmallVector<int64_t>{160, 72, 32, 56};
  if (holdsLatentQueries(facts, plan))
    return {160, 152, 40};
  // 160 x 256 + 192 x 128 = 65536.
  return {160, 128, 64};
}

LogicalResult MlaEmitter::run() {
  makeRings();
  prefetchPages();
  emitExtents();
  SmallVector<StringRef> names = {kLatentResults, kLatentScores, kLatentLoad};
  SmallVector<int64_t> warps = {8, 4, 4};
  SmallVector<int64_t> tiles = {plan.getWarpsM(), plan.getWarpsN(), 4, 1, 0, 0};
  SmallVector<LogicalResult (MlaEmitter::*)()> bodies = {
      &MlaEmitter::emitResultRole, &MlaEmitter::emitScoreRole,
      &MlaEmitter::emitLoad};
  if (facts.hasNarrowKeys()) {
    names.push_back(kLatentWidener);
    warps.push_back(kWarpgroupWarps);
    tiles.append({kWarpgroupWarps, 1});
    bodies.push_back(&MlaEmitter::emitWidenerRole);
  }
  SmallVector<int64_t> registers = getPartitionRegisters();
  auto op = WarpSpecializeOp::create(
      b, b.getStrArrayAttr(names), b.getDenseI64ArrayAttr(warps),
      b.getDenseI64ArrayAttr(tiles), b.getDenseI64ArrayAttr(registers),
      /*partitionsCount=*/unsigned(names.size()));
  for (auto [region, emit] : llvm::zip(op.getPartitions(), bodies)) {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&region);
    auto end = YieldOp::create(b, ValueRange());
    b.setInsertionPoint(end);
    if (failed((this->*emit)()))
      return failure();
  }
  return success();
}
