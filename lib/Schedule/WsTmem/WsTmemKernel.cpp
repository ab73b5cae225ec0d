//===- WsTmemKernel.cpp - The kernel of ws_tmem ---------------------------===//

#include "WsTmemKernel.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"

using namespace mlir;
using namespace mlir::attn;

WsTmemKernel::WsTmemKernel(KernelContext &context, WsTmemPlanAttr plan)
    : context(context), facts(context.facts), plan(plan), b(context.b),
      control(b), walk(context, getTilePlan(facts, plan)), tile(walk.tile),
      memory(makeMemory(walk, plan)) {
  // A gather has one map.
  tile.source->align = plan.getBlockN();
}

void WsTmemKernel::emitExtents() {
  walk.emitExtents();
  // The walk's place is that of a tile.
  rank = walk.rank;
}

bool WsTmemKernel::dividesResults() const { return plan.getValueCtas() > 1; }

ResultColumns WsTmemKernel::getResultColumns(int64_t first, int64_t count) {
  if (!dividesResults())
    return {first, count};
  return {first, count, rank, getOwnResultColumns(facts, plan)};
}

Value WsTmemKernel::getPlace(int64_t number) {
  if (!rank)
    return context.i32(number);
  return b.createOrFold<arith::AddIOp>(
      rank, context.i32(number * countClusterCTAs(plan)));
}

ClusterTile WsTmemKernel::emitProductRows(int64_t number) {
  assert(countClusterPairs(plan) == 1 && "expected one pair with own blocks");
  return walk.emitPart(walk.cluster.firstRow, context.i32(number),
                       countPairCTAs(plan));
}

void WsTmemKernel::forTiles(int64_t number, function_ref<void()> body) {
  if (!hasOneTile(plan))
    walk.rank = getPlace(number);
  walk.forTiles(control, body,
                [&](TileLoopOp loop) { setTileDealer(loop, memory.dealer); });
}

Value WsTmemKernel::hasBlocks() {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, walk.cluster.begin,
                               walk.cluster.end);
}

void WsTmemKernel::ifBlocks(function_ref<void()> body) {
  control.ifThen(hasBlocks(), body);
}

Value WsTmemKernel::getLastTrip() {
  Value trips =
      b.createOrFold<arith::SubIOp>(walk.cluster.end, walk.cluster.begin);
  return arith::SubIOp::create(b, trips, context.i32(1));
}

Value WsTmemKernel::getFirstKey(Value trip) {
  Value last = arith::SubIOp::create(b, walk.cluster.end, context.i32(1));
  return arith::MulIOp::create(b, arith::SubIOp::create(b, last, trip),
                               context.i32(plan.getBlockN()));
}

void WsTmemKernel::forOperands(function_ref<void(Value)> keys,
                               function_ref<void()> then,
                               function_ref<void(Value)> values) {
  bool keysFirst = hasOneTile(plan) || plan.getPBeside();
  Value zero = context.i32(0), one = context.i32(1), last = getLastTrip();
  keys(zero);
  then();
  control.forRange(zero, last, [&](Value trip) {
    Value next = arith::AddIOp::create(b, trip, one);
    if (keysFirst)
      keys(next);
    values(trip);
    if (!keysFirst)
      keys(next);
  });
  values(last);
}

LogicalResult attn::emitWsTmem(KernelContext &context, WsTmemPlanAttr plan) {
  WsTmemKernel shared(context, plan);
  // Softmax threads have no registers for what only results need: that is
  // computed again after the loop over blocks.
  context.getKernel()->setAttr(kRenewEntryAttr, shared.b.getUnitAttr());
  shared.emitExtents();
  Control &control = shared.control;
  TmemRegisters registers = getTmemRegisters(shared.facts, plan);
  SmallVector<Partition> list;
  for (int64_t number = 0; number < plan.getTiles(); ++number)
    list.push_back({kSoftmaxes[number].partition,
                    4,
                    {4, 1},
                    registers.softmax,
                    [&, number] { computeSoftmax(shared, number); }});
  bool isOne = hasOneTile(plan);
  auto multiply = [&] {
    isOne ? multiplySlices(shared) : multiplyBlocks(shared);
  };
  auto *load = hasHalfTiles(shared.facts, plan) ? loadHalves
               : isOne                          ? loadSlices
                                                : loadBlocks;
  if (isOne)
    list.push_back({kStorer.partition, 4, {4, 1}, registers.results, [&] {
                      storeResults(shared);
                    }});
  list.push_back({kMultiplier.partition, 1, {0, 0}, registers.others, [&] {
                    control.elect([&] {
                      // The first CTA of each pair, where there are several.
                      int64_t pairBits = countClusterPairs(plan) > 1 ? 1 : 0;
                      plan.getPair() ? control.inLeader(multiply, pairBits)
                                     : multiply();
                    });
                  }});
  // Three warps make up a warpgroup with the one that multiplies. One thread
  // of them loads; where rows lie apart, two of these warps say which they are.
  bool gathers = gathersKeys(shared.facts);
  list.push_back(
      {kLoader.partition, gathers ? 1 : 3, {0, 0}, registers.others, [&] {
         control.elect([&] { load(shared); });
       }});
  if (gathers)
    list.push_back({kNumberer.partition, 2, {0, 0}, registers.others, [&] {
                      numberRows(shared);
                    }});
  if (shared.facts.hasNarrowKeys())
    list.push_back({kTmemWidener.partition, 4, {4, 1}, registers.widener, [&] {
                      widenKeys(shared);
                    }});
  control.partitions(list);
  return success(control.isWhole());
}
