//===- RowMerge.cpp - Partial results of a row ----------------------------===//
//
//   m = max over s of lse[s]
//   for s: w = exp(lse[s] - m);  sum += w;  acc += w * partial_o[s]
//   o = acc / sum;  lse = m + log(sum)
//
// The loads of one s do not depend on those of another one; up to
// kUnrolledSplits of them stand side by side, so that they are in flight
// together. Of more partial results those behind the last one that has keys
// are not read: most sequences of a batch may be short.
//
//===----------------------------------------------------------------------===//

#include "RowMerge.h"
#include "attn/Schedule/Core/CombineSchedule.h"

using namespace mlir;
using namespace mlir::attn;

/// The same of LSEs, which a thread has one register for.
static constexpr int64_t kUnrolledMaxima = 64;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {

class RowMerger {
public:
  RowMerger(KernelFrame &frame, const CombineFacts &facts)
      : frame(frame), facts(facts), b(frame.b),
        columns(getCombineColumns(facts)) {}
  void emit(const MergedColumns &place);

private:
  using Step = llvm::function_ref<SmallVector<Value>(
      ImplicitLocOpBuilder &, Value split, Value exists, ValueRange carried)>;

  /// `init` through `step` for the partial results from 0 up to `last`, of
  /// which `together` stand side by side. `step` also gets whether there is
  /// one.
  SmallVector<Value> loopOverSplits(Value last, int64_t together,
                                    ArrayRef<Value> init, Step step);
  /// The largest LSE of all partial results and, as i32 and for a number of
  /// them that is not unrolled, the last one with keys.
  std::pair<Value, Value> findMaximum(Value lseOffset);
  bool isUnrolled() const {
    return !ShapedType::isDynamic(facts.splits) &&
           facts.splits <= kUnrolledSplits;
  }
  /// The offset of the columns in a tensor whose dimension `first` is the
  /// batch, i64.
  Value emitOffset(StringRef name, unsigned first, const MergedColumns &place,
                   bool hasColumns);
  Value emitAddress(ImplicitLocOpBuilder &lb, StringRef name, Value offset);
  /// The offset of a partial result, i64.
  Value addSplit(ImplicitLocOpBuilder &lb, StringRef name, Value offset,
                 Value split);
  Value loadLse(ImplicitLocOpBuilder &lb, Value offset, Value split);
  SmallVector<Value> loadColumns(ImplicitLocOpBuilder &lb, Value offset,
                                 Value split);
  void storeColumns(ArrayRef<Value> values, Value offset);
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
  /// Columns of a thread.
  int64_t columns;
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

Value RowMerger::emitAddress(ImplicitLocOpBuilder &lb, StringRef name,
                             Value offset) {
  Value pointer = frame.getPointer(name);
  return LLVM::GEPOp::create(lb, pointer.getType(),
                             frame.getTensor(name).elementType, pointer,
                             ValueRange{offset});
}

Value RowMerger::addSplit(ImplicitLocOpBuilder &lb, StringRef name,
                          Value offset, Value split) {
  Value stride = frame.getStride(name, 0);
  return arith::AddIOp::create(lb, offset,
                               arith::MulIOp::create(lb, split, stride));
}

Value RowMerger::loadLse(ImplicitLocOpBuilder &lb, Value offset, Value split) {
  Value address = emitAddress(lb, "partial_lse",
                              addSplit(lb, "partial_lse", offset, split));
  return LLVM::LoadOp::create(lb, lb.getF32Type(), address, 4);
}

SmallVector<Value> RowMerger::loadColumns(ImplicitLocOpBuilder &lb,
                                          Value offset, Value split) {
  Value address =
      emitAddress(lb, "partial_o", addSplit(lb, "partial_o", offset, split));
  Type f32 = lb.getF32Type();
  if (columns == 1)
    return {LLVM::LoadOp::create(lb, f32, address, 4)};
  Value loaded = LLVM::LoadOp::create(lb, VectorType::get({columns}, f32),
                                      address, 4 * columns);
  SmallVector<Value> values;
  for (int64_t column = 0; column < columns; ++column)
    values.push_back(LLVM::ExtractElementOp::create(
        lb, loaded, arith::ConstantIntOp::create(lb, column, 32).getResult()));
  return values;
}

void RowMerger::storeColumns(ArrayRef<Value> values, Value offset) {
  Type type = facts.o.elementType;
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

SmallVector<Value> RowMerger::loopOverSplits(Value last, int64_t together,
                                             ArrayRef<Value> init, Step step) {
  Value end = arith::AddIOp::create(b, last, frame.i32(1));
  auto loop = scf::ForOp::create(
      b, frame.i32(0), end, frame.i32(together), init,
      [&](OpBuilder &builder, Location loc, Value split, ValueRange carried) {
        ImplicitLocOpBuilder lb(loc, builder);
        SmallVector<Value> state(carried);
        for (int64_t i = 0; i < together; ++i) {
          Value each = arith::AddIOp::create(
              lb, split, arith::ConstantIntOp::create(lb, i, 32));
          Value exists =
              arith::CmpIOp::create(lb, arith::CmpIPredicate::sle, each, last);
          each = arith::MinSIOp::create(lb, each, last);
          state = step(lb, arith::ExtUIOp::create(lb, lb.getI64Type(), each),
                       exists, state);
        }
        scf::YieldOp::create(lb, state);
      });
  return llvm::to_vector(ValueRange(loop.getResults()));
}

std::pair<Value, Value> RowMerger::findMaximum(Value lseOffset) {
  if (isUnrolled()) {
    Value m = f32(b, -kInfinity);
    for (int64_t split = 0; split < facts.splits; ++split)
      m = arith::MaximumFOp::create(b, m,
                                    loadLse(b, lseOffset, frame.i64(split)));
    return {m, Value()};
  }
  Value count = frame.getExtent({{"partial_o", 0}}, facts.splits);
  Value last = arith::SubIOp::create(b, count, frame.i32(1));
  int64_t together = kUnrolledMaxima;
  if (!ShapedType::isDynamic(facts.splits))
    together = std::min(together, facts.splits);
  SmallVector<Value> found = loopOverSplits(
      last, together, {f32(b, -kInfinity), frame.i32(0)},
      [&](ImplicitLocOpBuilder &lb, Value split, Value,
          ValueRange carried) -> SmallVector<Value> {
        Value lse = loadLse(lb, lseOffset, split);
        Value hasKeys = arith::CmpFOp::create(lb, arith::CmpFPredicate::UNE,
                                              lse, f32(lb, -kInfinity));
        Value number = arith::TruncIOp::create(lb, lb.getI32Type(), split);
        return {arith::MaximumFOp::create(lb, carried[0], lse),
                arith::SelectOp::create(lb, hasKeys, number, carried[1])};
      });
  return {found[0], found[1]};
}

void RowMerger::emit(const MergedColumns &place) {
  Value lseOffset = emitOffset("partial_lse", 1, place, false);
  Value oOffset = emitOffset("partial_o", 1, place, true);
  auto [m, last] = findMaximum(lseOffset);
  // A row without any key has nothing to subtract.
  Value isEmpty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, m,
                                        f32(b, -kInfinity));
  Value shift = arith::SelectOp::create(b, isEmpty, f32(b, 0), m);
  auto add = [&](ImplicitLocOpBuilder &lb, Value split, Value exists,
                 ValueRange carried) -> SmallVector<Value> {
    Value difference =
        arith::SubFOp::create(lb, loadLse(lb, lseOffset, split), shift);
    Value weight = call(
        lb, "llvm.nvvm.ex2.approx.ftz.f32",
        arith::MulFOp::create(lb, difference, f32(lb, llvm::numbers::log2e)));
    if (exists)
      weight = arith::SelectOp::create(lb, exists, weight, f32(lb, 0));
    SmallVector<Value> next;
    next.push_back(arith::AddFOp::create(lb, carried[0], weight));
    // What has no weight may be anything.
    Value counts = arith::CmpFOp::create(lb, arith::CmpFPredicate::UNE, weight,
                                         f32(lb, 0));
    for (auto [value, sum] :
         llvm::zip(loadColumns(lb, oOffset, split), carried.drop_front())) {
      Value term = arith::SelectOp::create(lb, counts, value, f32(lb, 0));
      next.push_back(math::FmaOp::create(lb, weight, term, sum));
    }
    return next;
  };
  SmallVector<Value> sums(columns + 1, f32(b, 0));
  if (last)
    sums = loopOverSplits(last, kUnrolledSplits, sums, add);
  else
    for (int64_t split = 0; split < facts.splits; ++split)
      sums = add(b, frame.i64(split), Value(), sums);
  Value some =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, sums[0], f32(b, 0));
  Value divisor = arith::SelectOp::create(b, some, sums[0], f32(b, 1));
  Value inverse = arith::DivFOp::create(b, f32(b, 1), divisor);
  SmallVector<Value> results;
  for (Value sum : ArrayRef(sums).drop_front())
    results.push_back(arith::MulFOp::create(b, sum, inverse));
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
  Value lse = math::FmaOp::create(b, log, f32(b, llvm::numbers::ln2), shift);
  LLVM::StoreOp::create(
      b, lse, emitAddress(b, "lse", emitOffset("lse", 0, place, false)), 4);
}

void attn::emitRowMerge(KernelFrame &frame, const CombineFacts &facts,
                        const MergedColumns &place) {
  RowMerger(frame, facts).emit(place);
}
