//===- RowMerge.cpp - Partial results of a row ----------------------------===//
//
//   m = max over s of lse[s]
//   for s: w = exp(lse[s] - m);  sum += w;  acc += w * partial_o[s]
//   o = acc / sum;  lse = m + log(sum)
//
// Rows that are not divided have a maximum m[s] and a sum z[s] each, and so has
// what they give:
//
//   m = max over s of m[s]
//   for s: w = exp(m[s] - m);  sum += w * z[s];  acc += w * partial_o[s]
//
// What infinities and NaN give stands in docs/spec.md ("Infinite and NaN
// logits"): exp(inf - inf) is 1 above, which maxima that are no larger than
// finite numbers make it.
//
// The loads of one s do not depend on those of another one; as many of them as
// the way says stand side by side, so that they are in flight together. What
// has no loop reads each lse once, for the maximum and the weight. Else, where
// a warp has one row, its lanes divide the row's lse for the maximum.
//
// Where runs were dealt, such a warp reads no results after the last one with
// keys: most sequences of a batch have few of their runs.
//
//===----------------------------------------------------------------------===//

#include "RowMerge.h"
#include "RowResults.h"
#include "RowWeights.h"
#include "attn/Problem/ScaleTiles.h"
#include "attn/Schedule/Core/CombineSchedule.h"
#include "attn/Schedule/Kernel/Control.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

static constexpr int32_t kLanes = int32_t(kWarpLanes);
/// Runs that a row asks for without a loop where runs were dealt.
static constexpr int64_t kFewRuns = 4;
static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {

/// The sums of a row over its runs.
struct RowSums {
  /// The sum of weights, or of weighted sums, and the weighted sums of the
  /// thread's columns.
  Var weights;
  Vars columns;
};

class RowMerger {
public:
  RowMerger(KernelFrame &frame, const CombineFacts &facts, RowMergeWay way,
            const MergedColumns &place)
      : frame(frame), facts(facts), place(place), b(frame.b), control(b),
        columns(way.columns), together(way.together),
        isUnrolled(!facts.areDealt && !place.pieces &&
                   !ShapedType::isDynamic(facts.splits) &&
                   facts.splits <= together),
        hasWarps(facts.valueDim / columns % kLanes == 0),
        present(place.pieces) {}
  /// Returns the largest size of the results if it is wanted, else null.
  Value merge();

private:
  /// Gets a partial result's number, i64, and i1 whether it counts, false for
  /// one that was there before; null if it does.
  using Body = llvm::function_ref<void(Value split, Value counts)>;

  /// Calls `body` for `size` partial results from `first` on, of `count` in
  /// all; `isWhole` if there are as many.
  void forGroup(Value first, int64_t size, Value count, bool isWhole,
                Body body);
  /// Calls `body` for each partial result.
  void forEachSplit(Body body);

  /// Returns the largest lse of the row.
  Value findLargest();
  /// Does so by the lanes of a warp; where runs were dealt it also finds how
  /// many partial results count.
  Value findWarpLargest();
  /// Returns the largest of all lanes, by `combine`.
  Value reduceLanes(Value own, llvm::function_ref<Value(Value, Value)> combine);
  Value getLane();
  RowSums makeNoSums();
  /// Adds the columns `values` of one more run if it `isThere`; `unit` is null
  /// without scales.
  void addColumns(RowSums &sums, Value weight, Value isThere, Value unit,
                  ArrayRef<Value> values);
  /// Sums up all runs; `largest` is the largest lse.
  RowSums sumRuns(Value &largest);
  /// Does so where lanes divide what a row has one number of for each run, and
  /// give it to each other.
  RowSums sumRunsByLanes(Value &largest);
  /// True for many runs of which a row has two numbers each: asked for by all
  /// lanes they are more loads and more instructions than the columns.
  bool lanesDivideRuns() const {
    return isUnrolled && hasWarps && facts.partialScales &&
           facts.splits > kUnrolledSplits;
  }

  /// Returns the offset of the columns in a tensor whose dimension `first` is
  /// the batch, i64.
  Value getOffset(StringRef name, unsigned first, bool hasColumns);
  /// Returns how many partial results the row has, i32.
  Value countSplits() {
    return present ? present
                   : frame.getExtent({{"partial_o", 0}}, facts.splits);
  }
  /// Returns that of the number that the columns' group of `size` columns has.
  Value getGroupOffset(StringRef name, unsigned first, int64_t size);
  /// Returns that of the columns in o.
  Value getResultOffset();
  Value getAddress(StringRef name, Value offset);
  /// Returns the offset of a partial result, i64.
  Value addSplit(StringRef name, Value offset, Value split);
  /// Loads what a partial result has one number of for each row: its LSE, or
  /// what its units stand for.
  Value loadRow(StringRef name, Value offset, Value split);
  Value loadLse(Value split) {
    return loadRow("partial_lse", lseOffset, split);
  }
  Value loadUnit(Value split) {
    return loadRow(facts.partialScales.name, unitOffset, split);
  }
  SmallVector<Value> loadColumns(Value split);
  void storeColumns(ArrayRef<Value> values, Value offset);
  /// Divides columns by the scale of their group, which is stored.
  void scaleColumns(SmallVector<Value> &values);
  /// Adds one more run to the sum of weights if it `isThere`.
  void addWeight(RowSums &sums, Value split, Value weight, Value isThere);
  /// Stores LSE, or maximum and sum, in the thread that has the first column.
  void storeLse(Value weights, Value largest);
  /// Returns what columns are multiplied by, given the sum of weights.
  Value makeInverse(Value weights);
  Value f32(double value) {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  }
  Value integer(Type type, int64_t value) {
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
  }

  KernelFrame &frame;
  const CombineFacts &facts;
  const MergedColumns place;
  ImplicitLocOpBuilder &b;
  Control control;
  /// Columns of a thread, and partial results that it asks for together.
  int64_t columns, together;
  /// There is no loop over partial results.
  bool isUnrolled;
  /// All lanes of a warp have the same row.
  bool hasWarps;
  /// The row's offsets in the partial results, without the run, i64; the last
  /// one is null without scales.
  Value lseOffset, oOffset, unitOffset;
  /// Partial results up to the last one with keys, i32; null for all.
  Value present;
};

} // namespace

Value RowMerger::getOffset(StringRef name, unsigned first, bool hasColumns) {
  auto wide = [&](Value value) -> Value {
    return value.getType().isInteger(64) ? value : frame.widen(value);
  };
  Value offset;
  bool isPiece = place.firstPiece && first == 1;
  Value indices[] = {isPiece ? place.firstPiece : place.batch, place.head,
                     place.query};
  for (auto [dim, index] : llvm::enumerate(indices)) {
    Value part = arith::MulIOp::create(b, wide(index),
                                       frame.getStride(name, first + dim));
    offset = offset ? arith::AddIOp::create(b, offset, part).getResult() : part;
  }
  return hasColumns
             ? arith::AddIOp::create(b, offset, wide(place.column)).getResult()
             : offset;
}

Value RowMerger::getGroupOffset(StringRef name, unsigned first, int64_t size) {
  Type type = place.column.getType();
  Value group = arith::DivUIOp::create(b, place.column, integer(type, size));
  if (!type.isInteger(64))
    group = frame.widen(group);
  Value stride = frame.getStride(name, first + 3);
  return arith::AddIOp::create(b, getOffset(name, first, /*hasColumns=*/false),
                               arith::MulIOp::create(b, group, stride));
}

Value RowMerger::getResultOffset() {
  if (!facts.hasFloat4Results())
    return getOffset("o", 0, /*hasColumns=*/true);
  // Two columns are a byte.
  return getGroupOffset("o", 0, /*size=*/2);
}

Value RowMerger::getAddress(StringRef name, Value offset) {
  Value pointer = frame.getPointer(name);
  // LLVM has no floats of 8 bits.
  Type type = frame.getTensor(name).elementType;
  if (type.getIntOrFloatBitWidth() == 8)
    type = b.getI8Type();
  return LLVM::GEPOp::create(b, pointer.getType(), type, pointer,
                             ValueRange{offset});
}

Value RowMerger::addSplit(StringRef name, Value offset, Value split) {
  // Pieces of one sequence are neighbours.
  Value stride = frame.getStride(name, place.firstPiece ? 1 : 0);
  return arith::AddIOp::create(b, offset,
                               arith::MulIOp::create(b, split, stride));
}

Value RowMerger::loadRow(StringRef name, Value offset, Value split) {
  Value address = getAddress(name, addSplit(name, offset, split));
  return LLVM::LoadOp::create(b, b.getF32Type(), address, 4);
}

SmallVector<Value> RowMerger::loadColumns(Value split) {
  Value address =
      getAddress("partial_o", addSplit("partial_o", oOffset, split));
  Type f32 = b.getF32Type(), type = facts.partialO.elementType;
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  auto widen = [&](Value value) -> Value {
    return type == f32 ? value
                       : arith::ExtFOp::create(b, f32, value).getResult();
  };
  if (columns == 1)
    return {widen(LLVM::LoadOp::create(b, type, address, bytes))};
  Value loaded = LLVM::LoadOp::create(b, VectorType::get({columns}, type),
                                      address, bytes * columns);
  SmallVector<Value> values;
  for (int64_t column = 0; column < columns; ++column)
    values.push_back(widen(LLVM::ExtractElementOp::create(
        b, loaded, arith::ConstantIntOp::create(b, column, 32).getResult())));
  return values;
}

void RowMerger::storeColumns(ArrayRef<Value> values, Value offset) {
  Type type = facts.o.elementType;
  if (type.getIntOrFloatBitWidth() == 8)
    return storeNarrow(frame, facts, values, getAddress("o", offset));
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  SmallVector<Value> rounded;
  for (Value value : values)
    rounded.push_back(
        type.isF32() ? value
                     : arith::TruncFOp::create(b, type, value).getResult());
  Value address = getAddress("o", offset);
  if (columns == 1) {
    LLVM::StoreOp::create(b, rounded.front(), address, bytes);
    return;
  }
  Value vector = LLVM::UndefOp::create(b, VectorType::get({columns}, type));
  for (auto [column, value] : llvm::enumerate(rounded))
    vector = LLVM::InsertElementOp::create(b, vector, value,
                                           frame.i32(int64_t(column)));
  LLVM::StoreOp::create(b, vector, address, bytes * columns);
}

void RowMerger::scaleColumns(SmallVector<Value> &values) {
  // NaN has no part in it, as where a tile is rounded, unless there is nothing
  // else.
  auto larger = [&](Value x, Value y) -> Value {
    return arith::MaxNumFOp::create(b, x, y);
  };
  Value most = math::AbsFOp::create(b, values.front());
  for (Value value : ArrayRef(values).drop_front())
    most = larger(most, math::AbsFOp::create(b, value));
  // The lanes of a group are neighbours, and all of them or none are there.
  int32_t lanes = int32_t(facts.groupColumns / columns);
  if (lanes > 1) {
    Value thread = arith::IndexCastUIOp::create(
        b, b.getI32Type(), gpu::ThreadIdOp::create(b, gpu::Dimension::x));
    Value first = arith::AndIOp::create(b, thread,
                                        frame.i32((kLanes - 1) & ~(lanes - 1)));
    Value mask = arith::ShLIOp::create(
        b, frame.i32(int32_t((uint64_t(1) << lanes) - 1)), first);
    for (int32_t distance = lanes / 2; distance != 0; distance /= 2) {
      Value other = NVVM::ShflOp::create(
          b, most.getType(), mask, most, frame.i32(distance),
          frame.i32(kLanes - 1), NVVM::ShflKind::bfly, UnitAttr());
      most = larger(most, other);
    }
  }
  GroupScale scale = makeGroupScale(frame, facts, most);
  for (Value &value : values)
    value = arith::MulFOp::create(b, value, scale.inverse);
  Type type = place.column.getType();
  Value size = integer(type, facts.groupColumns);
  Value isFirst = arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq,
      arith::RemUIOp::create(b, place.column, size), integer(type, 0));
  auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value offset = isInScaleTiles(facts.oScales.shape)
                     ? getTiledOffset(frame, facts, place)
                     : getGroupOffset("o_scales", 0, facts.groupColumns);
  LLVM::StoreOp::create(b, scale.stored, getAddress("o_scales", offset),
                        scale.stored.getType().getIntOrFloatBitWidth() / 8);
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

void RowMerger::forGroup(Value first, int64_t size, Value count, bool isWhole,
                         Body body) {
  Value last = arith::SubIOp::create(b, count, frame.i32(1));
  for (int64_t i = 0; i < size; ++i) {
    Value each = arith::AddIOp::create(b, first, frame.i32(i));
    Value counts;
    if (!isWhole && i != 0) {
      counts = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, each, last);
      each = arith::MinSIOp::create(b, each, last);
    }
    body(arith::ExtUIOp::create(b, b.getI64Type(), each), counts);
  }
}

void RowMerger::forEachSplit(Body body) {
  if (isUnrolled) {
    for (int64_t split = 0; split < facts.splits; ++split)
      body(frame.i64(split), Value());
    return;
  }
  // Groups of one size. Where they are more than there is, the last partial
  // result is asked for again and does not count.
  int64_t size = together;
  bool isWhole = false;
  if (!place.pieces && !ShapedType::isDynamic(facts.splits)) {
    size = llvm::divideCeil(facts.splits, llvm::divideCeil(facts.splits, size));
    isWhole = !present && facts.splits % size == 0;
  }
  Value count = countSplits();
  auto forAll = [&] {
    control.forRange(frame.i32(0), count, frame.i32(size), [&](Value split) {
      forGroup(split, size, count, isWhole, body);
    });
  };
  if (!present || size <= kFewRuns)
    return forAll();
  // Most rows have few runs, and what they ask for again keeps others waiting.
  Value isFew = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, count,
                                      frame.i32(kFewRuns));
  control.ifElse(
      isFew,
      [&] { forGroup(frame.i32(0), kFewRuns, count, /*isWhole=*/false, body); },
      forAll);
}

//===----------------------------------------------------------------------===//
// The largest LSE
//===----------------------------------------------------------------------===//

Value RowMerger::findLargest() {
  if (!isUnrolled && hasWarps)
    return findWarpLargest();
  Var largest(control, f32(-kInfinity));
  forEachSplit([&](Value split, Value) {
    largest = arith::MaximumFOp::create(b, largest.get(), loadLse(split));
  });
  return largest;
}

Value RowMerger::reduceLanes(Value own,
                             llvm::function_ref<Value(Value, Value)> combine) {
  for (int32_t distance = kLanes / 2; distance != 0; distance /= 2) {
    Value other = NVVM::ShflOp::create(
        b, own.getType(), frame.i32(-1), own, frame.i32(distance),
        frame.i32(kLanes - 1), NVVM::ShflKind::bfly, UnitAttr());
    own = combine(own, other);
  }
  return own;
}

Value RowMerger::getLane() {
  Value thread = arith::IndexCastUIOp::create(
      b, b.getI32Type(), gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  return arith::AndIOp::create(b, thread, frame.i32(kLanes - 1));
}

Value RowMerger::findWarpLargest() {
  Value lane = getLane();
  Value count = countSplits();
  Value last = arith::SubIOp::create(b, count, frame.i32(1));
  Var largest(control, f32(-kInfinity)), found(control, frame.i32(0));
  // Lanes after the last one read its lse again.
  control.forRange(frame.i32(0), count, frame.i32(kLanes), [&](Value first) {
    Value split =
        arith::MinSIOp::create(b, arith::AddIOp::create(b, first, lane), last);
    Value lse = loadLse(arith::ExtUIOp::create(b, b.getI64Type(), split));
    largest = arith::MaximumFOp::create(b, largest.get(), lse);
    if (facts.areDealt)
      found = arith::SelectOp::create(b, hasRun(b, lse), split, found.get());
  });
  if (facts.areDealt) {
    Value most = reduceLanes(found, [&](Value x, Value y) -> Value {
      return arith::MaxSIOp::create(b, x, y);
    });
    present = arith::AddIOp::create(b, most, frame.i32(1));
  }
  return reduceLanes(largest, [&](Value x, Value y) -> Value {
    return arith::MaximumFOp::create(b, x, y);
  });
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

RowSums RowMerger::makeNoSums() {
  Value zero = f32(0);
  return {{control, zero}, {control, SmallVector<Value>(columns, zero)}};
}

void RowMerger::addColumns(RowSums &sums, Value weight, Value isThere,
                           Value unit, ArrayRef<Value> values) {
  SmallVector<Value> next;
  for (auto [value, sum] : llvm::zip_equal(values, sums.columns.get())) {
    // Exact, since units are powers of two.
    Value own = unit ? arith::MulFOp::create(b, value, unit) : value;
    // What is not there may be anything.
    Value term = arith::SelectOp::create(b, isThere, own, f32(0));
    next.push_back(math::FmaOp::create(b, weight, term, sum));
  }
  sums.columns = next;
}

void RowMerger::addWeight(RowSums &sums, Value split, Value weight,
                          Value isThere) {
  if (!facts.areStates()) {
    sums.weights = arith::AddFOp::create(b, sums.weights.get(), weight);
    return;
  }
  Value offset =
      arith::AddIOp::create(b, lseOffset, frame.getStride("partial_lse", 4));
  Value own = loadRow("partial_lse", offset, split);
  // A run that is not there may have left anything.
  own = arith::SelectOp::create(b, isThere, own, f32(0));
  sums.weights = math::FmaOp::create(b, weight, own, sums.weights.get());
}

RowSums RowMerger::sumRuns(Value &largest) {
  largest = findLargest();
  Value shift = makeShift(b, largest);
  RowSums sums = makeNoSums();
  forEachSplit([&](Value split, Value counts) {
    Value lse = loadLse(split);
    if (counts)
      lse = arith::SelectOp::create(b, counts, lse, f32(-kInfinity));
    Value weight = makeWeight(b, lse, shift), isThere = hasRun(b, lse), unit;
    addWeight(sums, split, weight, isThere);
    if (facts.partialScales)
      unit = loadUnit(split);
    addColumns(sums, weight, isThere, unit, loadColumns(split));
  });
  return sums;
}

RowSums RowMerger::sumRunsByLanes(Value &largest) {
  Value lane = getLane();
  Value last = frame.i32(int32_t(facts.splits - 1));
  SmallVector<Value> lses, units;
  for (int32_t first = 0; first < facts.splits; first += kLanes) {
    // Lanes after the last run read it again, and nobody asks them.
    Value run = arith::ExtUIOp::create(
        b, b.getI64Type(),
        arith::MinSIOp::create(
            b, arith::AddIOp::create(b, lane, frame.i32(first)), last));
    lses.push_back(loadLse(run));
    units.push_back(loadUnit(run));
  }
  SmallVector<SmallVector<Value>> values;
  for (int64_t split = 0; split < facts.splits; ++split)
    values.push_back(loadColumns(frame.i64(split)));
  auto larger = [&](Value x, Value y) -> Value {
    return arith::MaximumFOp::create(b, x, y);
  };
  Value own;
  for (Value lse : lses)
    own = own ? larger(own, lse) : lse;
  largest = reduceLanes(own, larger);
  Value shift = makeShift(b, largest);
  // A weight of -0 says that a run is not there, so that lanes give each other
  // one number for both.
  SmallVector<Value> weights;
  for (Value lse : lses)
    weights.push_back(arith::SelectOp::create(
        b, hasRun(b, lse), makeWeight(b, lse, shift), f32(-0.0)));
  RowSums sums = makeNoSums();
  for (int32_t split = 0; split < facts.splits; ++split) {
    auto ofLane = [&](ArrayRef<Value> each) -> Value {
      return NVVM::ShflOp::create(
          b, b.getF32Type(), frame.i32(-1), each[split / kLanes],
          frame.i32(split % kLanes), frame.i32(kLanes - 1), NVVM::ShflKind::idx,
          UnitAttr());
    };
    Value weight = ofLane(weights);
    Value isThere = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne,
        arith::BitcastOp::create(b, b.getI32Type(), weight),
        frame.i32(std::numeric_limits<int32_t>::min()));
    sums.weights = arith::AddFOp::create(b, sums.weights.get(), weight);
    addColumns(sums, weight, isThere, ofLane(units), values[split]);
  }
  return sums;
}

//===----------------------------------------------------------------------===//
// A row
//===----------------------------------------------------------------------===//

void RowMerger::storeLse(Value weights, Value largest) {
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, place.column,
                            integer(place.column.getType(), 0));
  control.ifThen(isFirst, [&] {
    Value offset = getOffset("lse", 0, /*hasColumns=*/false);
    if (facts.areStates()) {
      LLVM::StoreOp::create(b, largest, getAddress("lse", offset), 4);
      offset = arith::AddIOp::create(b, offset, frame.getStride("lse", 3));
      LLVM::StoreOp::create(b, weights, getAddress("lse", offset), 4);
      return;
    }
    // log2 0 = -inf, so a row without keys gets -inf.
    Value log = makeLog2(b, weights);
    Value lse = math::FmaOp::create(b, log, f32(llvm::numbers::ln2), largest);
    LLVM::StoreOp::create(b, lse, getAddress("lse", offset), 4);
  });
}

Value RowMerger::makeInverse(Value weights) {
  Value some =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, weights, f32(0));
  Value divisor = arith::SelectOp::create(b, some, weights, f32(1));
  // A region that changes results comes before their factor.
  Value one = f32(facts.usesResults() ? 1 : facts.outScale);
  return arith::DivFOp::create(b, one, divisor);
}

Value RowMerger::merge() {
  lseOffset = getOffset("partial_lse", 1, /*hasColumns=*/false);
  oOffset = getOffset("partial_o", 1, /*hasColumns=*/true);
  if (const TensorFacts &scales = facts.partialScales)
    unitOffset = facts.getUnitColumns() == facts.valueDim
                     ? getOffset(scales.name, 1, /*hasColumns=*/false)
                     : getGroupOffset(scales.name, 1, facts.getUnitColumns());
  Value largest;
  RowSums sums = lanesDivideRuns() ? sumRunsByLanes(largest) : sumRuns(largest);
  // Of several that take all nobody knows which takes more.
  Value takesAll = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, largest,
                                         f32(kInfinity));
  Value areSeveral = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT,
                                           sums.weights.get(), f32(1));
  Value isUnknown = arith::AndIOp::create(b, takesAll, areSeveral);
  Value nan = f32(std::numeric_limits<double>::quiet_NaN());
  Value weights =
      arith::SelectOp::create(b, isUnknown, nan, sums.weights.get());
  Value inverse = facts.areStates()
                      ? arith::SelectOp::create(b, isUnknown, nan, f32(1))
                      : makeInverse(weights);
  SmallVector<Value> results;
  for (Value sum : sums.columns.get())
    results.push_back(arith::MulFOp::create(b, sum, inverse));
  Value most = changeResults(frame, facts, place, results);
  if (facts.groupColumns != 0)
    scaleColumns(results);
  storeColumns(results, getResultOffset());
  if (facts.lse)
    storeLse(weights, largest);
  return most;
}

Value attn::emitRowMerge(KernelFrame &frame, const CombineFacts &facts,
                         RowMergeWay way, const MergedColumns &place) {
  return RowMerger(frame, facts, way, place).merge();
}
