//===- BarrierLoops.cpp - Loops as steps ----------------------------------===//

#include "BarrierCompiler.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// True if a counter from `first` on has not left its type behind the last
/// trip.
static bool endsInType(int64_t first, int64_t trips, int64_t by, unsigned width,
                       bool isUnsigned) {
  int64_t moved, end;
  if (llvm::MulOverflow(trips, by, moved) ||
      llvm::AddOverflow(first, moved, end))
    return false;
  return isUnsigned && width < 64 ? llvm::isUIntN(width, end)
                                  : llvm::isIntN(width, end);
}

/// How often a loop goes around.
static Arithmetic countTrips(scf::ForOp op) {
  Type type = op.getLowerBound().getType();
  unsigned width = getWidth(type);
  bool isUnsigned = op.getUnsignedCmp();
  return [=](const RegionNumber *x, RegionNumber &result) {
    int64_t first = x[0].integer, last = x[1].integer, by = x[2].integer;
    if (isUnsigned && width < 64) {
      first &= llvm::maskTrailingOnes<uint64_t>(width);
      last &= llvm::maskTrailingOnes<uint64_t>(width);
    }
    // Numbers of 63 bits are enough.
    if (by <= 0 || (isUnsigned && (first < 0 || last < 0)))
      return false;
    result.integer =
        first < last ? int64_t(llvm::divideCeil(last - first, by)) : 0;
    // A counter that wraps around goes on.
    return endsInType(first, result.integer, by, width, isUnsigned);
  };
}

Slot Compiler::emitCount(scf::ForOp op) {
  auto [place, isNew] = trips.try_emplace(op, kNoSlot);
  if (!isNew)
    return place->second;
  Slot left = place->second = newTemporary();
  program.counters.push_back(left);
  Step &count = emit(Code::Count, op);
  count.dst = left;
  count.args = {slotOf(op.getLowerBound()), slotOf(op.getUpperBound()),
                slotOf(op.getStep())};
  count.compute = countTrips(op);
  emitDifferences(op);
  return left;
}

/// Takes the steps that give a value in front of `op`, if they can be taken
/// there.
bool Compiler::emitBefore(Operation *op, Value value) {
  Operation *def = value.getDefiningOp();
  if (!def || def->getBlock() != op->getBlock() || def->isBeforeInBlock(op) ||
      emittedBefore.contains(def))
    return true;
  if (needed.contains(def) || tiles.contains(def) || !isDemanded(value) ||
      def->getNumRegions() != 0 || def->getNumResults() != 1 ||
      !llvm::all_of(def->getOperands(),
                    [&](Value operand) { return emitBefore(op, operand); }))
    return false;
  emitScalar(def);
  emittedBefore.insert(def);
  return true;
}

/// Counts down, so that loops that have as many trips left are in one state,
/// however many there were. For that bounds must not be kept either: trips of
/// the loops behind this one are counted before it, if they can be, and so are
/// conditions computed.
void Compiler::emitFor(scf::ForOp op) {
  Slot left = emitCount(op);
  for (Operation *later = op->getNextNode(); later;
       later = later->getNextNode()) {
    if (later->getNumResults() == 1 && isDemanded(later->getResult(0)) &&
        later->getResult(0).getType().isInteger(1))
      emitBefore(op, later->getResult(0));
    auto loop = dyn_cast<scf::ForOp>(later);
    if (!loop || !needed.contains(loop) || tileValues.contains(loop))
      continue;
    SmallVector<Value> bounds = {loop.getLowerBound(), loop.getUpperBound(),
                                 loop.getStep()};
    for (Difference &difference : findDifferences(loop))
      for (auto [value, factor] : difference.terms)
        bounds.push_back(value);
    if (llvm::all_of(bounds,
                     [&](Value bound) { return emitBefore(op, bound); }))
      emitCount(loop);
  }
  bool needsNumber = isDemanded(op.getInductionVar());
  Slot iv = slotOf(op.getInductionVar());
  int64_t period = needsNumber ? findPeriod(op).value_or(0) : 0;
  if (needsNumber) {
    Step &start = emit(Code::Copy, op);
    start.dst = iv;
    start.args = {slotOf(op.getLowerBound())};
  }
  copyAll(op, op.getInitArgs(), op.getRegionIterArgs());
  uint32_t head = here();
  Step &test = emit(Code::Branch, op);
  test.args = {left};
  test.flag = true;
  emitBlock(*op.getBody());
  copyAll(op, op.getYieldedValues(), op.getRegionIterArgs());
  if (needsNumber) {
    Step &next = emit(Code::Compute, op);
    next.dst = iv;
    next.args = {iv, slotOf(op.getStep())};
    if (period == 0)
      next.factors = {1, 1};
    next.compute = [period](const RegionNumber *x, RegionNumber &result) {
      result.integer = x[0].integer + x[1].integer;
      if (period != 0)
        result.integer %= period;
      return true;
    };
  }
  emitNextDifferences(op);
  Step &next = emit(Code::Compute, op);
  next.dst = left;
  next.args = {left};
  next.factors = {1};
  next.value = -1;
  next.compute = [](const RegionNumber *x, RegionNumber &result) {
    result.integer = x[0].integer - 1;
    return true;
  };
  emit(Code::Jump, op).target = head;
  program.steps[head].target = here();
  copyAll(op, op.getRegionIterArgs(), op.getResults());
}

/// The numbers of the tiles come one after the other, whatever the loop says:
/// in any order, as many as there are.
void Compiler::emitTileLoop(scf::ForOp op) {
  copyAll(op, op.getInitArgs(), op.getRegionIterArgs());
  uint32_t head = here();
  Step &tile = emit(Code::Tile, op);
  tile.value = kNextTile;
  Value value = tileValues.lookup(op);
  tile.dst = slotOf(value);
  for (Operation &inner : *op.getBody())
    if (value.getDefiningOp() != &inner)
      emitOp(&inner);
  copyAll(op, op.getYieldedValues(), op.getRegionIterArgs());
  emit(Code::Jump, op).target = head;
  program.steps[head].target = here();
  copyAll(op, op.getRegionIterArgs(), op.getResults());
}

void Compiler::emitWhile(scf::WhileOp op) {
  copyAll(op, op.getInits(), op.getBeforeArguments());
  if (Value tile = tileValues.lookup(op)) {
    Step &first = emit(Code::Tile, op);
    first.value = kFirstTile;
    first.flag = true;
    first.dst = slotOf(tile);
  }
  uint32_t head = here();
  emitBlock(*op.getBeforeBody());
  scf::ConditionOp condition = op.getConditionOp();
  copyAll(op, condition.getArgs(), op.getResults());
  uint32_t test = here();
  // Which numbers are tiles is the same for all partitions.
  Value tile = tileValues.lookup(op);
  if (program.hasOpenTiles() && tile)
    emit(Code::TileTest, op).args = {slotOf(tile)};
  else
    emit(Code::Branch, op).args = {slotOf(condition.getCondition())};
  copyAll(op, condition.getArgs(), op.getAfterArguments());
  emitBlock(*op.getAfterBody());
  copyAll(op, op.getYieldOp().getOperands(), op.getBeforeArguments());
  emit(Code::Jump, op).target = head;
  program.steps[test].target = here();
}
