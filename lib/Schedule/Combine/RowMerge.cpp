//===- RowMerge.cpp - Partial results of a row ----------------------------===//
//
//   m = max over s of lse[s]
//   for s: w = exp(lse[s] - m);  sum += w;  acc += w * partial_o[s]
//   o = acc / sum;  lse = m + log(sum)
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
// Where runs were dealt, such a warp reads no results behind the last one with
// keys: most sequences of a batch have few of their runs.
//
//===----------------------------------------------------------------------===//

#include "RowMerge.h"
#include "attn/Dialect/Attn/IR/NarrowFloats.h"
#include "attn/Schedule/Core/CombineSchedule.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

static constexpr int32_t kLanes = int32_t(kWarpLanes);
/// Runs that a row asks for without a loop where runs were dealt.
static constexpr int64_t kFewRuns = 4;
static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {

class RowMerger {
public:
  RowMerger(KernelFrame &frame, const CombineFacts &facts, RowMergeWay way)
      : frame(frame), facts(facts), b(frame.b), columns(way.columns),
        together(way.together),
        isUnrolled(!facts.areDealt && !ShapedType::isDynamic(facts.splits) &&
                   facts.splits <= together),
        hasWarps(facts.valueDim / columns % kLanes == 0) {}
  void emit(const MergedColumns &place);

private:
  /// `counts` is null, or false for a partial result that was there before.
  using Step = llvm::function_ref<SmallVector<Value>(
      ImplicitLocOpBuilder &, Value split, Value counts, ValueRange carried)>;

  /// `carried` through `step` for `size` partial results from `first` on, of
  /// `count` in all; `isWhole` if there are as many.
  SmallVector<Value> emitGroup(ImplicitLocOpBuilder &lb, Value first,
                               int64_t size, Value count, bool isWhole,
                               ValueRange carried, Step step);
  /// `init` through `step` for each partial result.
  SmallVector<Value> forEachSplit(ArrayRef<Value> init, Step step);
  /// The largest lse of the row.
  Value emitMaximum(Value lseOffset);
  /// The same, by the lanes of a warp; where runs were dealt it also finds how
  /// many partial results count.
  Value emitWarpMaximum(Value lseOffset);
  /// The largest of all lanes, by `combine`.
  Value emitLargest(Value own, llvm::function_ref<Value(Value, Value)> combine);
  /// `lse` where that is finite or NaN; the largest finite number for +inf.
  Value emitFinite(ImplicitLocOpBuilder &lb, Value lse);
  /// What is subtracted from the lse of a row whose largest one is `m`.
  Value emitShift(Value m);
  Value emitWeight(ImplicitLocOpBuilder &lb, Value lse, Value shift);
  /// Whether there is a partial result: its lse is not -inf.
  Value emitIsThere(ImplicitLocOpBuilder &lb, Value lse);
  /// The sums of weights and of columns, `carried`, with those of one more run
  /// if it `isThere`.
  SmallVector<Value>
  addRun(ImplicitLocOpBuilder &lb, Value weight, Value isThere,
         llvm::function_ref<Value()> emitUnit,
         llvm::function_ref<SmallVector<Value>()> emitColumns,
         ValueRange carried);
  /// The sums over all runs; `most` is the largest lse.
  SmallVector<Value> emitSums(Value lseOffset, Value oOffset,
                              Value scalesOffset, Value &most);
  /// The same where lanes divide what a row has one number of for each run, and
  /// give it to each other.
  SmallVector<Value> emitLaneSums(Value lseOffset, Value oOffset,
                                  Value scalesOffset, Value &most);
  /// True for many runs of which a row has two numbers each: asked for by all
  /// lanes they are more loads and more instructions than the columns.
  bool lanesDivideRuns() const {
    return isUnrolled && hasWarps && facts.partialScales &&
           facts.splits > kUnrolledSplits;
  }
  /// The offset of the columns in a tensor whose dimension `first` is the
  /// batch, i64.
  Value emitOffset(StringRef name, unsigned first, const MergedColumns &place,
                   bool hasColumns);
  /// The same of the number that the columns' group of `size` columns has.
  Value emitGroupOffset(StringRef name, unsigned first,
                        const MergedColumns &place, int64_t size);
  Value emitAddress(ImplicitLocOpBuilder &lb, StringRef name, Value offset);
  /// The offset of a partial result, i64.
  Value addSplit(ImplicitLocOpBuilder &lb, StringRef name, Value offset,
                 Value split);
  /// What a partial result has one number of for each row: its LSE, or what its
  /// units stand for.
  Value loadRow(ImplicitLocOpBuilder &lb, StringRef name, Value offset,
                Value split);
  Value loadLse(ImplicitLocOpBuilder &lb, Value offset, Value split) {
    return loadRow(lb, "partial_lse", offset, split);
  }
  SmallVector<Value> loadColumns(ImplicitLocOpBuilder &lb, Value offset,
                                 Value split);
  void storeColumns(ArrayRef<Value> values, Value offset);
  /// Divides columns by the scale of their group, which is stored.
  void scaleColumns(SmallVector<Value> &values, const MergedColumns &place);
  /// The same of results of 8 bits.
  void storeNarrow(ArrayRef<Value> values, Value offset);
  Value call(ImplicitLocOpBuilder &lb, StringRef intrinsic, Value operand);
  Value f32(ImplicitLocOpBuilder &lb, double value) {
    return arith::ConstantOp::create(lb, lb.getF32FloatAttr(value));
  }
  Value integer(Type type, int64_t value) {
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
  }

  KernelFrame &frame;
  const CombineFacts &facts;
  ImplicitLocOpBuilder &b;
  /// Columns of a thread, and partial results that it asks for together.
  int64_t columns, together;
  /// There is no loop over partial results.
  bool isUnrolled;
  /// All lanes of a warp have the same row.
  bool hasWarps;
  /// Partial results up to the last one with keys, i32; null for all.
  Value present;
};

} // namespace

Value RowMerger::call(ImplicitLocOpBuilder &lb, StringRef intrinsic,
                      Value operand) {
  return LLVM::CallIntrinsicOp::create(lb, lb.getF32Type(),
                                       lb.getStringAttr(intrinsic),
                                       ValueRange{operand})
      .getResults();
}

Value RowMerger::emitOffset(StringRef name, unsigned first,
                            const MergedColumns &place, bool hasColumns) {
  auto wide = [&](Value value) -> Value {
    return value.getType().isInteger(64) ? value : frame.widen(value);
  };
  Value offset;
  Value indices[] = {place.batch, place.head, place.query};
  for (auto [dim, index] : llvm::enumerate(indices)) {
    Value part = arith::MulIOp::create(b, wide(index),
                                       frame.getStride(name, first + dim));
    offset = offset ? arith::AddIOp::create(b, offset, part).getResult() : part;
  }
  return hasColumns
             ? arith::AddIOp::create(b, offset, wide(place.column)).getResult()
             : offset;
}

Value RowMerger::emitGroupOffset(StringRef name, unsigned first,
                                 const MergedColumns &place, int64_t size) {
  Type type = place.column.getType();
  Value group = arith::DivUIOp::create(b, place.column, integer(type, size));
  if (!type.isInteger(64))
    group = frame.widen(group);
  Value stride = frame.getStride(name, first + 3);
  return arith::AddIOp::create(
      b, emitOffset(name, first, place, /*hasColumns=*/false),
      arith::MulIOp::create(b, group, stride));
}

Value RowMerger::emitAddress(ImplicitLocOpBuilder &lb, StringRef name,
                             Value offset) {
  Value pointer = frame.getPointer(name);
  // LLVM has no floats of 8 bits.
  Type type = frame.getTensor(name).elementType;
  if (type.getIntOrFloatBitWidth() == 8)
    type = lb.getI8Type();
  return LLVM::GEPOp::create(lb, pointer.getType(), type, pointer,
                             ValueRange{offset});
}

Value RowMerger::addSplit(ImplicitLocOpBuilder &lb, StringRef name,
                          Value offset, Value split) {
  Value stride = frame.getStride(name, 0);
  return arith::AddIOp::create(lb, offset,
                               arith::MulIOp::create(lb, split, stride));
}

Value RowMerger::loadRow(ImplicitLocOpBuilder &lb, StringRef name, Value offset,
                         Value split) {
  Value address = emitAddress(lb, name, addSplit(lb, name, offset, split));
  return LLVM::LoadOp::create(lb, lb.getF32Type(), address, 4);
}

SmallVector<Value> RowMerger::loadColumns(ImplicitLocOpBuilder &lb,
                                          Value offset, Value split) {
  Value address =
      emitAddress(lb, "partial_o", addSplit(lb, "partial_o", offset, split));
  Type f32 = lb.getF32Type(), type = facts.partialO.elementType;
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  auto widen = [&](Value value) -> Value {
    return type == f32 ? value
                       : arith::ExtFOp::create(lb, f32, value).getResult();
  };
  if (columns == 1)
    return {widen(LLVM::LoadOp::create(lb, type, address, bytes))};
  Value loaded = LLVM::LoadOp::create(lb, VectorType::get({columns}, type),
                                      address, bytes * columns);
  SmallVector<Value> values;
  for (int64_t column = 0; column < columns; ++column)
    values.push_back(widen(LLVM::ExtractElementOp::create(
        lb, loaded, arith::ConstantIntOp::create(lb, column, 32).getResult())));
  return values;
}

void RowMerger::storeNarrow(ArrayRef<Value> values, Value offset) {
  Type i16 = b.getI16Type();
  SmallVector<Value> pairs;
  for (size_t i = 0; i < values.size(); i += 2)
    pairs.push_back(
        narrowPair(b, values[i], values[std::min(i + 1, values.size() - 1)],
                   facts.o.elementType, !frame.target.has(Capability::Fp8)));
  Value address = emitAddress(b, "o", offset);
  if (columns == 1) {
    Value byte = arith::TruncIOp::create(b, b.getI8Type(), pairs.front());
    LLVM::StoreOp::create(b, byte, address, 1);
    return;
  }
  Value whole =
      LLVM::UndefOp::create(b, VectorType::get({int64_t(pairs.size())}, i16));
  for (auto [place, pair] : llvm::enumerate(pairs))
    whole = LLVM::InsertElementOp::create(b, whole, pair,
                                          frame.i32(int64_t(place)));
  LLVM::StoreOp::create(b, whole, address, columns);
}

void RowMerger::storeColumns(ArrayRef<Value> values, Value offset) {
  Type type = facts.o.elementType;
  if (type.getIntOrFloatBitWidth() == 8)
    return storeNarrow(values, offset);
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  SmallVector<Value> rounded;
  for (Value value : values)
    rounded.push_back(
        type.isF32() ? value
                     : arith::TruncFOp::create(b, type, value).getResult());
  Value address = emitAddress(b, "o", offset);
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

void RowMerger::scaleColumns(SmallVector<Value> &values,
                             const MergedColumns &place) {
  Value most = f32(b, 0);
  for (Value value : values)
    most = arith::MaximumFOp::create(b, most, math::AbsFOp::create(b, value));
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
      most = arith::MaximumFOp::create(b, most, other);
    }
  }
  double largest = isa<Float8E5M2Type>(facts.o.elementType) ? 57344 : 448;
  Value some =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, most, f32(b, 0));
  Value scale = arith::SelectOp::create(
      b, some, arith::MulFOp::create(b, most, f32(b, 1 / largest)), f32(b, 1));
  Value inverse = arith::DivFOp::create(b, f32(b, 1), scale);
  for (Value &value : values)
    value = arith::MulFOp::create(b, value, inverse);
  Type type = place.column.getType();
  Value size = integer(type, facts.groupColumns);
  Value isFirst = arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq,
      arith::RemUIOp::create(b, place.column, size), integer(type, 0));
  auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value offset = emitGroupOffset("o_scales", 0, place, facts.groupColumns);
  LLVM::StoreOp::create(b, scale, emitAddress(b, "o_scales", offset), 4);
}

SmallVector<Value> RowMerger::emitGroup(ImplicitLocOpBuilder &lb, Value first,
                                        int64_t size, Value count, bool isWhole,
                                        ValueRange carried, Step step) {
  Value last =
      arith::SubIOp::create(lb, count, arith::ConstantIntOp::create(lb, 1, 32));
  SmallVector<Value> state(carried);
  for (int64_t i = 0; i < size; ++i) {
    Value each = arith::AddIOp::create(lb, first,
                                       arith::ConstantIntOp::create(lb, i, 32));
    Value counts;
    if (!isWhole && i != 0) {
      counts = arith::CmpIOp::create(lb, arith::CmpIPredicate::sle, each, last);
      each = arith::MinSIOp::create(lb, each, last);
    }
    each = arith::ExtUIOp::create(lb, lb.getI64Type(), each);
    state = step(lb, each, counts, state);
  }
  return state;
}

SmallVector<Value> RowMerger::forEachSplit(ArrayRef<Value> init, Step step) {
  SmallVector<Value> state(init);
  if (isUnrolled) {
    for (int64_t split = 0; split < facts.splits; ++split)
      state = step(b, frame.i64(split), Value(), state);
    return state;
  }
  // Groups of one size. Where they are more than there is, the last partial
  // result is asked for again and does not count.
  int64_t size = together;
  bool isWhole = false;
  if (!ShapedType::isDynamic(facts.splits)) {
    size = llvm::divideCeil(facts.splits, llvm::divideCeil(facts.splits, size));
    isWhole = !present && facts.splits % size == 0;
  }
  Value count =
      present ? present : frame.getExtent({{"partial_o", 0}}, facts.splits);
  auto emitAll = [&](OpBuilder &builder) {
    auto loop = scf::ForOp::create(
        builder, b.getLoc(), frame.i32(0), count, frame.i32(size), init,
        [&](OpBuilder &nested, Location loc, Value split, ValueRange carried) {
          ImplicitLocOpBuilder lb(loc, nested);
          scf::YieldOp::create(
              lb, emitGroup(lb, split, size, count, isWhole, carried, step));
        });
    return llvm::to_vector(ValueRange(loop.getResults()));
  };
  if (!present || size <= kFewRuns)
    return emitAll(b);
  // Most rows have few runs, and what they ask for again keeps others waiting.
  Value zero = frame.i32(0);
  Value isFew = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, count,
                                      frame.i32(kFewRuns));
  auto branch = scf::IfOp::create(
      b, isFew,
      [&](OpBuilder &builder, Location loc) {
        ImplicitLocOpBuilder lb(loc, builder);
        scf::YieldOp::create(lb, emitGroup(lb, zero, kFewRuns, count,
                                           /*isWhole=*/false, init, step));
      },
      [&](OpBuilder &builder, Location loc) {
        scf::YieldOp::create(builder, loc, emitAll(builder));
      });
  return llvm::to_vector(ValueRange(branch.getResults()));
}

Value RowMerger::emitMaximum(Value lseOffset) {
  if (!isUnrolled && hasWarps)
    return emitWarpMaximum(lseOffset);
  return forEachSplit({f32(b, -kInfinity)},
                      [&](ImplicitLocOpBuilder &lb, Value split, Value,
                          ValueRange carried) -> SmallVector<Value> {
                        return {arith::MaximumFOp::create(
                            lb, carried[0], loadLse(lb, lseOffset, split))};
                      })[0];
}

Value RowMerger::emitLargest(Value own,
                             llvm::function_ref<Value(Value, Value)> combine) {
  for (int32_t distance = kLanes / 2; distance != 0; distance /= 2) {
    Value other = NVVM::ShflOp::create(
        b, own.getType(), frame.i32(-1), own, frame.i32(distance),
        frame.i32(kLanes - 1), NVVM::ShflKind::bfly, UnitAttr());
    own = combine(own, other);
  }
  return own;
}

Value RowMerger::emitWarpMaximum(Value lseOffset) {
  Value thread = arith::IndexCastUIOp::create(
      b, b.getI32Type(), gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  Value lane = arith::AndIOp::create(b, thread, frame.i32(kLanes - 1));
  Value count = frame.getExtent({{"partial_o", 0}}, facts.splits);
  Value last = arith::SubIOp::create(b, count, frame.i32(1));
  SmallVector<Value> init = {f32(b, -kInfinity)};
  if (facts.areDealt)
    init.push_back(frame.i32(0));
  // Lanes behind the last one read its lse again.
  auto loop = scf::ForOp::create(
      b, frame.i32(0), count, frame.i32(kLanes), init,
      [&](OpBuilder &builder, Location loc, Value first, ValueRange carried) {
        ImplicitLocOpBuilder lb(loc, builder);
        Value split = arith::MinSIOp::create(
            lb, arith::AddIOp::create(lb, first, lane), last);
        Value wide = arith::ExtUIOp::create(lb, lb.getI64Type(), split);
        Value lse = loadLse(lb, lseOffset, wide);
        SmallVector<Value> next = {
            arith::MaximumFOp::create(lb, carried[0], lse)};
        if (facts.areDealt) {
          Value hasKeys = arith::CmpFOp::create(lb, arith::CmpFPredicate::UNE,
                                                lse, f32(lb, -kInfinity));
          next.push_back(
              arith::SelectOp::create(lb, hasKeys, split, carried[1]));
        }
        scf::YieldOp::create(lb, next);
      });
  if (facts.areDealt) {
    Value found =
        emitLargest(loop.getResult(1), [&](Value x, Value y) -> Value {
          return arith::MaxSIOp::create(b, x, y);
        });
    present = arith::AddIOp::create(b, found, frame.i32(1));
  }
  return emitLargest(loop.getResult(0), [&](Value x, Value y) -> Value {
    return arith::MaximumFOp::create(b, x, y);
  });
}

Value RowMerger::emitFinite(ImplicitLocOpBuilder &lb, Value lse) {
  return arith::MinimumFOp::create(lb, lse,
                                   f32(lb, std::numeric_limits<float>::max()));
}

Value RowMerger::emitShift(Value m) {
  // A row without any key has nothing to subtract.
  Value isEmpty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, m,
                                        f32(b, -kInfinity));
  return arith::SelectOp::create(b, isEmpty, f32(b, 0), emitFinite(b, m));
}

Value RowMerger::emitWeight(ImplicitLocOpBuilder &lb, Value lse, Value shift) {
  Value difference = arith::SubFOp::create(lb, emitFinite(lb, lse), shift);
  return call(
      lb, "llvm.nvvm.ex2.approx.ftz.f32",
      arith::MulFOp::create(lb, difference, f32(lb, llvm::numbers::log2e)));
}

Value RowMerger::emitIsThere(ImplicitLocOpBuilder &lb, Value lse) {
  return arith::CmpFOp::create(lb, arith::CmpFPredicate::UNE, lse,
                               f32(lb, -kInfinity));
}

SmallVector<Value>
RowMerger::addRun(ImplicitLocOpBuilder &lb, Value weight, Value isThere,
                  llvm::function_ref<Value()> emitUnit,
                  llvm::function_ref<SmallVector<Value>()> emitColumns,
                  ValueRange carried) {
  SmallVector<Value> next;
  next.push_back(arith::AddFOp::create(lb, carried[0], weight));
  Value unit = facts.partialScales ? emitUnit() : Value();
  for (auto [value, sum] : llvm::zip(emitColumns(), carried.drop_front())) {
    // Exact, since units are powers of two.
    if (unit)
      value = arith::MulFOp::create(lb, value, unit);
    // What is not there may be anything.
    Value term = arith::SelectOp::create(lb, isThere, value, f32(lb, 0));
    next.push_back(math::FmaOp::create(lb, weight, term, sum));
  }
  return next;
}

SmallVector<Value> RowMerger::emitSums(Value lseOffset, Value oOffset,
                                       Value scalesOffset, Value &most) {
  most = emitMaximum(lseOffset);
  Value shift = emitShift(most);
  SmallVector<Value> init(columns + 1, f32(b, 0));
  return forEachSplit(
      init,
      [&](ImplicitLocOpBuilder &lb, Value split, Value isNew,
          ValueRange carried) -> SmallVector<Value> {
        Value lse = loadLse(lb, lseOffset, split);
        if (isNew)
          lse = arith::SelectOp::create(lb, isNew, lse, f32(lb, -kInfinity));
        return addRun(
            lb, emitWeight(lb, lse, shift), emitIsThere(lb, lse),
            [&] {
              return loadRow(lb, facts.partialScales.name, scalesOffset, split);
            },
            [&] { return loadColumns(lb, oOffset, split); }, carried);
      });
}

SmallVector<Value> RowMerger::emitLaneSums(Value lseOffset, Value oOffset,
                                           Value scalesOffset, Value &most) {
  Value thread = arith::IndexCastUIOp::create(
      b, b.getI32Type(), gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  Value lane = arith::AndIOp::create(b, thread, frame.i32(kLanes - 1));
  Value last = frame.i32(int32_t(facts.splits - 1));
  SmallVector<Value> lses, units;
  for (int32_t first = 0; first < facts.splits; first += kLanes) {
    // Lanes behind the last run read it again, and nobody asks them.
    Value run = arith::ExtUIOp::create(
        b, b.getI64Type(),
        arith::MinSIOp::create(
            b, arith::AddIOp::create(b, lane, frame.i32(first)), last));
    lses.push_back(loadLse(b, lseOffset, run));
    units.push_back(loadRow(b, facts.partialScales.name, scalesOffset, run));
  }
  SmallVector<SmallVector<Value>> values;
  for (int64_t split = 0; split < facts.splits; ++split)
    values.push_back(loadColumns(b, oOffset, frame.i64(split)));
  auto larger = [&](Value x, Value y) -> Value {
    return arith::MaximumFOp::create(b, x, y);
  };
  Value own = lses.front();
  for (Value lse : ArrayRef(lses).drop_front())
    own = larger(own, lse);
  most = emitLargest(own, larger);
  Value shift = emitShift(most);
  // A weight of -0 says that a run is not there, so that lanes give each other
  // one number for both.
  SmallVector<Value> weights;
  for (Value lse : lses)
    weights.push_back(arith::SelectOp::create(
        b, emitIsThere(b, lse), emitWeight(b, lse, shift), f32(b, -0.0)));
  SmallVector<Value> sums(columns + 1, f32(b, 0));
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
    sums = addRun(
        b, weight, isThere, [&] { return ofLane(units); },
        [&] { return values[split]; }, sums);
  }
  return sums;
}

void RowMerger::emit(const MergedColumns &place) {
  Value lseOffset = emitOffset("partial_lse", 1, place, false);
  Value oOffset = emitOffset("partial_o", 1, place, true), scalesOffset;
  if (const TensorFacts &scales = facts.partialScales)
    scalesOffset =
        facts.getUnitColumns() == facts.valueDim
            ? emitOffset(scales.name, 1, place, false)
            : emitGroupOffset(scales.name, 1, place, facts.getUnitColumns());
  Value most;
  SmallVector<Value> sums =
      lanesDivideRuns() ? emitLaneSums(lseOffset, oOffset, scalesOffset, most)
                        : emitSums(lseOffset, oOffset, scalesOffset, most);
  // Of several that take all nobody knows which takes more.
  Value takesAll = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, most,
                                         f32(b, kInfinity));
  Value areSeveral =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, sums[0], f32(b, 1));
  sums[0] = arith::SelectOp::create(
      b, arith::AndIOp::create(b, takesAll, areSeveral),
      f32(b, std::numeric_limits<double>::quiet_NaN()), sums[0]);
  Value some =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, sums[0], f32(b, 0));
  Value divisor = arith::SelectOp::create(b, some, sums[0], f32(b, 1));
  Value inverse = arith::DivFOp::create(b, f32(b, facts.outScale), divisor);
  SmallVector<Value> results;
  for (Value sum : ArrayRef(sums).drop_front())
    results.push_back(arith::MulFOp::create(b, sum, inverse));
  if (facts.groupColumns != 0)
    scaleColumns(results, place);
  storeColumns(results, emitOffset("o", 0, place, true));
  if (!facts.lse)
    return;
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, place.column,
                            integer(place.column.getType(), 0));
  auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  // log2 0 = -inf, so a row without keys gets -inf.
  Value log = call(b, "llvm.nvvm.lg2.approx.ftz.f", sums[0]);
  Value lse = math::FmaOp::create(b, log, f32(b, llvm::numbers::ln2), most);
  LLVM::StoreOp::create(
      b, lse, emitAddress(b, "lse", emitOffset("lse", 0, place, false)), 4);
}

void attn::emitRowMerge(KernelFrame &frame, const CombineFacts &facts,
                        RowMergeWay way, const MergedColumns &place) {
  RowMerger(frame, facts, way).emit(place);
}
