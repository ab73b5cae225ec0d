//===- MlaKernel.cpp - Kernels of mla whose scores have a warpgroup -------===//
//
// The programs that load and that of the scores; MlaResults.cpp has that of the
// results, MlaWidener.cpp that of the partition that widens 8-bit keys.
//
//===----------------------------------------------------------------------===//

#include "MlaKernel.h"
#include "../Copied/GridTiles.h"
#include "../Core/RoleRegisters.h"
#include "../Tma/RingFacts.h"
#include "../Wgmma/SlicedProducts.h"
#include "attn/Planner/Facts/RegisterLimit.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;

TilePlan attn::getTilePlan(const ProblemFacts &facts, MlaPlanAttr plan) {
  TilePlan tiles = {plan.getBlockM(), plan.getBlockN(), TileOrder::RowMajor,
                    /*groupHeads=*/0};
  tiles.packedHeads = getPackedHeads(facts, plan);
  tiles.runs = countRuns(facts);
  tiles.cluster = plan.getCluster();
  tiles.equalRuns = plan.getDealtRuns();
  return tiles;
}

MlaKernel::MlaKernel(KernelContext &context, MlaPlanAttr plan)
    : context(context), facts(context.facts), plan(plan), b(context.b),
      control(b), tiles(context, getTilePlan(context.facts, plan)),
      tile(tiles.tile) {
  tile.hasWholeMaxima = facts.hasWholeMaxima();
}

//===----------------------------------------------------------------------===//
// The warpgroup that loads
//===----------------------------------------------------------------------===//

void MlaKernel::loadByTma() {
  ArrayRef<LatentSlice> slices = rings.slices;
  control.elect([&] {
    prefetchMaps(b,
                 {slices.front().getLoaded().map, slices.front().queries.map});
  });
  std::vector<Pipe> queries = openQueries(kLatentLoad), keys = openLoads();
  // Keys come first, since the tile before may still read the queries' slots.
  // Where a CTA has one tile, queries come first: its scores need them at once.
  // Where keys are widened, the order makes no difference.
  bool keysFirst = !hasOneTile() && !facts.hasNarrowKeys();
  // Lets TMA fill the next slot of `ring` with rows that `from` loads. The slot
  // is handed over when its bytes have arrived.
  auto fill = [&](Pipe &pipe, const Ring &ring, const Ring &from, Value head,
                  Value first, int64_t column, Value lead) {
    Slot slot = pipe.acquire();
    startLoad(tiles, from, ring.at(slot), slot.getToken(), head, first,
              context.i32(column), lead);
    slot.release();
  };
  auto fillQueries = [&](Pipe &pipe, const Ring &ring,
                         const LatentSlice &slice) {
    fill(pipe, ring, slice.queries, tile.at.head, tile.row,
         slice.firstInQueries, /*lead=*/Value());
  };
  Value last;
  auto loadBlock = [&](Value trip) {
    Value firstKey = getFirstKey(last, trip);
    control.elect([&] {
      // Before the waits: the entry of the table comes from far away.
      Value lead;
      if (slices.front().getLoaded().view == TensorMapView::Bounded)
        lead = tile.source->emitLead(firstKey);
      for (unsigned i : rings.order)
        fill(keys[i], slices[i].getLoaded(), slices[i].getLoaded(),
             tile.at.kvHead, firstKey, slices[i].firstInTensor, lead);
    });
    // Cursors are values of all threads.
    for (Pipe &pipe : keys)
      pipe.advance();
  };

  tiles.forTiles(control, [&] {
    last = getLastBlock();
    Value zero = context.i32(0), one = context.i32(1), trips = countTrips();
    for (unsigned i = 0; i < slices.size(); ++i) {
      if (!slices[i].isHeld)
        continue;
      control.elect([&] { fillQueries(keys[i], slices[i].ring, slices[i]); });
      keys[i].advance();
    }
    if (keysFirst)
      control.forRange(zero, arith::MinSIOp::create(b, trips, one), loadBlock);
    if (rings.queriesByTma) {
      control.elect([&] {
        for (auto [pipe, slice] : llvm::zip_equal(queries, rings.listQueries()))
          fillQueries(pipe, slice->queries, *slice);
      });
    } else {
      Slot slot = queries.front().acquire();
      startQueryCopies();
      CpAsyncWaitOp::create(b, /*pending=*/0);
      slot.release();
    }
    for (Pipe &pipe : queries)
      pipe.advance();
    control.forRange(keysFirst ? one : zero, trips, loadBlock);
  });
}

void MlaKernel::loadByThreads() {
  std::vector<Pipe> queries = openQueries(kLatentLoad), keys = openLoads();
  // The slot of the last slice of widened keys is free long after the others,
  // which are widened while its copies are on their way.
  SmallVector<SmallVector<unsigned, 3>> groups = {rings.order};
  if (facts.hasNarrowKeys())
    groups.push_back({groups.front().pop_back_val()});

  tiles.forTiles(control, [&] {
    Value last = getLastBlock(), trips = countTrips();
    Slot free = queries.front().acquire();
    startQueryCopies();
    CpAsyncWaitOp::create(b, /*pending=*/0);
    free.release();
    queries.front().advance();

    control.forRange(context.i32(0), trips, [&](Value trip) {
      Value firstKey = getFirstKey(last, trip);
      SmallVector<SmallVector<Slot, 3>> copied;
      for (ArrayRef<unsigned> group : groups) {
        SmallVector<Slot, 3> slots;
        for (unsigned i : group) {
          const LatentSlice &slice = rings.slices[i];
          slots.push_back(keys[i].acquire());
          startKeyCopy(slice, firstKey, slots.back());
        }
        CpAsyncCommitOp::create(b);
        copied.push_back(slots);
      }
      for (auto [i, slots] : llvm::enumerate(copied)) {
        CpAsyncWaitOp::create(b, /*pending=*/copied.size() - 1 - i);
        for (Slot &slot : slots)
          slot.release();
      }
      for (Pipe &pipe : keys)
        pipe.advance();
    });
  });
}

std::vector<Pipe> MlaKernel::openQueries(const Role &role) {
  std::vector<Pipe> pipes;
  for (Value channel : rings.queries)
    pipes.emplace_back(control, channel, role);
  return pipes;
}

std::vector<Pipe> MlaKernel::openKeys(ArrayRef<LatentSlice> slices,
                                      const Role &role) {
  std::vector<Pipe> pipes;
  for (const LatentSlice &slice : slices)
    pipes.emplace_back(control, slice.ring.channel, role);
  return pipes;
}

std::vector<Pipe> MlaKernel::openLoads() {
  std::vector<Pipe> pipes;
  for (const LatentSlice &slice : rings.slices)
    pipes.emplace_back(control, slice.getLoaded().channel, kLatentLoad);
  return pipes;
}

Value MlaKernel::countTrips() {
  return b.createOrFold<arith::SubIOp>(tile.bounds.end, tile.bounds.begin);
}

Value MlaKernel::getLastBlock() {
  return arith::SubIOp::create(b, tile.bounds.end, context.i32(1));
}

Value MlaKernel::getFirstKey(Value last, Value trip) {
  return arith::MulIOp::create(b, arith::SubIOp::create(b, last, trip),
                               context.i32(plan.getBlockN()));
}

void MlaKernel::startQueryCopies() {
  for (const LatentSlice &slice : rings.slices)
    CpAsyncOp::create(b, emitQueryView(tile, slice.first, slice.columns),
                      tile.row, getQueries(slice),
                      /*in_bounds=*/UnitAttr());
  CpAsyncCommitOp::create(b);
}

void MlaKernel::startKeyCopy(const LatentSlice &slice, Value firstKey,
                             Slot slot) {
  const Ring &ring = slice.getLoaded();
  Value view = tile.source->emitView(ring.name, tile.at, slice.firstInTensor,
                                     slice.columns);
  CpAsyncOp::create(b, view, firstKey, ring.at(slot),
                    /*in_bounds=*/UnitAttr());
}

bool MlaKernel::hasOneTile() const {
  if (ShapedType::isDynamic(facts.heads) ||
      ShapedType::isDynamic(facts.queries) || plan.getDealtRuns())
    return false;
  int64_t count = llvm::divideCeil(countLatentRows(facts), plan.getBlockM()) *
                  facts.batch * tiles.plan.runs;
  return count <= context.target.getClusteredSMs(plan.getCluster());
}

//===----------------------------------------------------------------------===//
// The warpgroup of the scores
//===----------------------------------------------------------------------===//

/// Returns values of rows as `sums` has them that no exponent is below.
static Value makeLeast(AttentionTile &tile, Value sums) {
  return tile.splat(cast<RankedTensorType>(sums.getType()),
                    -std::numeric_limits<double>::infinity());
}

void MlaKernel::computeScores() {
  ArrayRef<LatentSlice> slices = rings.slices;
  std::vector<Pipe> query = openQueries(kLatentScores);
  Pipe handed(control, rings.handed, kLatentScores),
      scaled(control, rings.scaled, kLatentScores);
  std::vector<Pipe> key = openKeys(slices, kLatentScores);
  tiles.forTiles(control, [&] {
    emitScoreDescale(tile);
    tile.valueDescale = emitValueDescale(tile);
    Value scale = emitExponentScale(tile);
    SmallVector<Slot, 3> queries;
    for (Pipe &pipe : query)
      queries.push_back(pipe.acquire());
    SmallVector<Value, 3> operands;
    for (unsigned i = 0; i < slices.size(); ++i) {
      if (!slices[i].isHeld) {
        operands.push_back(convertQueries(slices[i]));
        continue;
      }
      Slot slot = key[i].acquire();
      operands.push_back(loadQueries(slices[i], slot));
      slot.release();
      key[i].advance();
    }
    RunningState init = emitInitialState(
        tile, /*bets=*/plan.getSoftmax() == SoftmaxPolicy::Optimistic ||
                  plan.getSoftmax() == SoftmaxPolicy::Lagged);
    Var m(control, init.m), l(control, init.l),
        largest(control,
                makeLeast(tile, tile.hasWholeMaxima ? init.l : init.m));

    forBlocks([&](Value firstKey) {
      SmallVector<Slot, 3> keys;
      Value product;
      for (unsigned i : rings.order) {
        Slot slot = key[i].acquire();
        product = multiplyKeys(b, operands[i], slices[i].ring.at(slot),
                               slices[i].columns, product);
        keys.push_back(slot);
        key[i].advance();
      }
      Value s = awaitProducts(b, product, /*pending=*/0).front();
      for (Slot &slot : keys)
        slot.release();

      auto [p, factor] = softmax(scale, firstKey, s, m, l, largest);
      if (!p)
        return;
      if (!handsOnHalves(plan)) {
        Slot slot = handed.acquire();
        LocalStoreOp::create(b, p, rings.probabilities);
        LocalStoreOp::create(b, factor, rings.factors);
        slot.release();
      } else {
        Value firstHalf = cutHalf(p, 0);
        auto [front, back] = handed.acquire().split<2>();
        LocalStoreOp::create(b, firstHalf, getHalf(0));
        LocalStoreOp::create(b, factor, rings.factors);
        front.release();
        LocalStoreOp::create(b, cutHalf(p, 1), getHalf(1));
        back.release();
      }
      handed.advance();
    });
    if (!control.isWhole())
      return;

    for (Slot &slot : queries)
      slot.release();
    FinalRows rows = emitFinalRows(tile, m, l, largest);
    Value factor = emitRowFactor(tile, rows);
    Slot slot = scaled.acquire();
    LocalStoreOp::create(b, factor, rings.scales);
    slot.release();
    storeLse(rows);
    for (Pipe &pipe : query)
      pipe.advance();
    scaled.advance();
  });
}

void MlaKernel::storeLse(const FinalRows &rows) {
  auto store = [&] { emitLSE(tile, rows.m, rows.l, emitLogViews(tile)); };
  if (!facts.lse)
    return;
  if (!tile.at.piece)
    return store();
  control.ifElse(
      tiles.isWhole(),
      [&] {
        if (LogViews views = emitMergedLogViews(tile))
          emitLSE(tile, rows.m, rows.l, views);
      },
      store);
}

void MlaKernel::forBlocks(function_ref<void(Value)> body) {
  const BlockBounds &bounds = tile.bounds;
  control.loop(
      bounds.end.getType(), body, [&](ValueRange inits, Control::Fill fill) {
        return KVLoopOp::create(b, bounds.begin, bounds.fullBegin,
                                bounds.fullEnd, bounds.end, plan.getBlockN(),
                                /*stages=*/1, inits, fill);
      });
}

Value MlaKernel::getQueries(const LatentSlice &slice) {
  return SlotOp::create(b, slice.queries.slotType, slice.queries.buffer,
                        context.i32(0), /*distance=*/IntegerAttr());
}

Value MlaKernel::convertQueries(const LatentSlice &slice) {
  Value slot = getQueries(slice);
  if (facts.elementType == tile.getOperandType())
    return slot;
  for (Value part : listSlotParts(tile, slot))
    emitConverted(tile, part);
  return ReinterpretOp::create(
      b,
      tile.bufferType(slice.queries.slotType.getShape(), tile.getOperandType()),
      slot);
}

Value MlaKernel::loadQueries(const LatentSlice &slice, Slot slot) {
  return LocalLoadOp::create(
      b, tile.tileType(slice.queries.slotType.getShape(), facts.elementType),
      slice.ring.at(slot));
}

std::pair<Value, Value> MlaKernel::softmax(Value scale, Value firstKey, Value s,
                                           Var &m, Var &l, Var &largest) {
  if (failed(emitScores(tile, firstKey, s))) {
    control.fail();
    return {};
  }
  auto op = OnlineSoftmaxOp::create(b, s, m.get(), l.get(), /*o=*/Value(),
                                    scale, plan.getSoftmax(), largest.get());
  op.setWhole(tile.hasWholeMaxima);
  m = op.getNewM();
  l = op.getNewL();
  largest = op.getNewLargest();
  Value p = arith::TruncFOp::create(
      b,
      tile.tileType({plan.getBlockM(), plan.getBlockN()},
                    tile.getOperandType()),
      op.getP());
  return {p, op.getFactor()};
}

Value MlaKernel::cutHalf(Value p, int64_t index) {
  int64_t columns = plan.getBlockN() / 2;
  return SliceOp::create(
      b, tile.tileType({plan.getBlockM(), columns}, tile.getOperandType()), p,
      index * columns);
}

Value MlaKernel::getHalf(int64_t index) {
  return SlotOp::create(
      b,
      tile.bufferType({plan.getBlockM(), plan.getBlockN() / 2},
                      tile.getOperandType()),
      rings.probabilities, context.i32(index),
      /*distance=*/IntegerAttr());
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void MlaKernel::prefetchPages() {
  constexpr int64_t kLineBytes = 128, kEntryBytes = 4, kMostLines = 32;
  const TensorFacts &table = facts.pageTable;
  if (!table || !rings.byTma || !hasOneTile() ||
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
  control.ifThen(has, [&] {
    Value pointer = context.getPointer(table.name);
    Value offset = arith::MulIOp::create(b, context.widen(thread),
                                         context.i64(kLineBytes));
    NVVM::PrefetchOp::create(
        b,
        NVVM::PrefetchCacheLevelAttr::get(b.getContext(),
                                          NVVM::PrefetchCacheLevel::L2),
        /*evictPriority=*/NVVM::CacheEvictionPriorityAttr(),
        LLVM::GEPOp::create(b, pointer.getType(), b.getI8Type(), pointer,
                            ValueRange{offset}),
        /*predicate=*/Value(), /*tensormap=*/UnitAttr(),
        /*uniform=*/UnitAttr(), /*inParamSpace=*/UnitAttr());
  });
}

bool MlaKernel::hasSimpleLoads() const {
  int64_t blockN = plan.getBlockN();
  bool isSlot = !facts.isPaged() || getBoxRows(facts, 2 * blockN) == blockN;
  return rings.byTma && isSlot && facts.mask.getKind() != MaskKind::Window;
}

MlaKernel::RoleBudget MlaKernel::getBudget() const {
  static constexpr RegisterLimit kResults{"mla.results_registers"},
      kLoad{"mla.load_registers"}, kHeldLoad{"mla.held_load_registers"},
      kSimpleLoad{"mla.simple_load_registers"},
      kWidenedLoad{"mla.widened_load_registers"},
      kWidenedScores{"mla.widened_scores_registers"};
  RoleBudget registers;
  registers.results = kResults;
  registers.load = holdsLatentQueries(facts, plan) ? kHeldLoad : kLoad;
  if (facts.hasNarrowKeys()) {
    registers.scores = kWidenedScores;
    registers.load = hasSimpleLoads() ? kSimpleLoad : kWidenedLoad;
  }
  // One warpgroup has what the others leave.
  int64_t taken = 2 * registers.results + registers.scores + registers.load;
  int64_t rest = divideRegisters(countLatentThreads(facts, plan), taken, 1);
  (facts.hasNarrowKeys() ? registers.widener : registers.scores) = rest;
  return registers;
}

SmallVector<Partition> MlaKernel::listPartitions() {
  RoleBudget registers = getBudget();
  SmallVector<Partition> list = {
      {kLatentResults.partition,
       /*warps=*/8,
       {plan.getWarpsM(), plan.getWarpsN()},
       registers.results,
       [&] { computeResults(); }},
      {kLatentScores.partition,
       kWarpgroupWarps,
       {kWarpgroupWarps, 1},
       registers.scores,
       [&] { computeScores(); }},
      {kLatentLoad.partition, kWarpgroupWarps, {0, 0}, registers.load, [&] {
         if (rings.byTma)
           loadByTma();
         else
           loadByThreads();
       }}};
  if (facts.hasNarrowKeys())
    list.push_back({kLatentWidener.partition,
                    kWarpgroupWarps,
                    {kWarpgroupWarps, 1},
                    registers.widener,
                    [&] { widen(); }});
  return list;
}

LogicalResult MlaKernel::run() {
  rings = makeLatentRings(tiles, plan);
  prefetchPages();
  tiles.emitExtents();
  control.partitions(listPartitions());
  return success(control.isWhole());
}
