//===- Work.cpp - Which work a CTA does -----------------------------------===//
//
// Each warp finds out for itself, so that nobody waits for another one: lane i
// has the lengths of neighbouring sequences, as many as other lanes.
//
//===----------------------------------------------------------------------===//

#include "PartitionLowering.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

/// Blocks that a sequence counts as at most, so that their sum fits 32 bits.
static constexpr int64_t kMostBlocks = int64_t(1) << 22;
static constexpr int64_t kLanes = 32;

namespace {

/// A run, i32 each: its sequence, its number there, how many runs the sequence
/// has, and its keys.
struct Run {
  Value sequence, number, count, keys;
};

/// One warp's code. Numbers are i32.
class RunDealer {
public:
  template <typename Op>
  RunDealer(Op op, ImplicitLocOpBuilder &b, Value lane)
      : lengths(op.getLengths()), index(op.getIndex()),
        capacity(op.getCapacity()), total(op.getTotal()),
        sequences(op.getSequences()), most(op.getMost()),
        isSearched(std::is_same_v<Op, PlanWorkOp>), b(b), lane(lane),
        each(llvm::divideCeil(sequences, kLanes)) {}
  Run emit();

private:
  Value number(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32);
  }
  Value compare(arith::CmpIPredicate how, Value x, Value y) {
    return arith::CmpIOp::create(b, how, x, y);
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value divideUp(Value x, Value y) {
    Value less = arith::SubIOp::create(b, y, number(1));
    return arith::DivUIOp::create(b, add(x, less), y);
  }
  Value shuffle(Value value, Value from, NVVM::ShflKind kind, int64_t clamp) {
    return NVVM::ShflOp::create(b, b.getI32Type(), number(-1), value, from,
                                number(clamp), kind,
                                /*return_value_and_is_valid=*/UnitAttr());
  }
  /// The sequence of place `i` of the lane, and whether there is one.
  std::pair<Value, Value> findSequence(int64_t i);
  /// A sequence's keys, those of the first one where there is none.
  Value emitKeys(Value sequence, Value exists);
  /// What these are in blocks, 0 where there is no sequence.
  Value emitBlocks(Value keys, Value exists);
  /// The sum over all lanes, the largest number of any, and the sum over the
  /// lanes up to this one.
  Value emitSum(Value own);
  Value emitLargest(Value own);
  Value emitPrefix(Value own);
  /// How many runs of `length` blocks the sequences of this lane have, and of
  /// each of them.
  Value emitRuns(Value length, SmallVectorImpl<Value> *own);
  /// The blocks of a run.
  Value emitLength();
  /// The least number that leaves at most `total` runs, up to `enough`.
  Value emitSearch(Value least, Value enough);

  Value lengths, index, capacity;
  int64_t total, sequences, most;
  bool isSearched;
  /// Of this lane's sequences.
  SmallVector<Value> blocks;
  ImplicitLocOpBuilder &b;
  Value lane;
  /// Sequences of a lane.
  int64_t each;
};

} // namespace

std::pair<Value, Value> RunDealer::findSequence(int64_t i) {
  Value sequence = add(arith::MulIOp::create(b, lane, number(each)), number(i));
  return {sequence,
          compare(arith::CmpIPredicate::ult, sequence, number(sequences))};
}

Value RunDealer::emitKeys(Value sequence, Value exists) {
  Value place = arith::SelectOp::create(b, exists, sequence, number(0));
  Value address = LLVM::GEPOp::create(
      b, lengths.getType(), b.getI32Type(), lengths,
      ValueRange{arith::ExtUIOp::create(b, b.getI64Type(), place)});
  return LLVM::LoadOp::create(b, b.getI32Type(), address, 4);
}

Value RunDealer::emitBlocks(Value keys, Value exists) {
  Value length = arith::MinSIOp::create(
      b, arith::MaxSIOp::create(b, keys, number(0)), capacity);
  length = arith::MaxSIOp::create(b, length, number(0));
  Value count = arith::DivUIOp::create(
      b, add(length, number(2 * DealRunOp::kBlockKeys - 1)),
      number(DealRunOp::kBlockKeys));
  count = arith::MinUIOp::create(b, count, number(kMostBlocks));
  return arith::SelectOp::create(b, exists, count, number(0));
}

Value RunDealer::emitSum(Value own) {
  for (int64_t distance = 1; distance < kLanes; distance *= 2)
    own = add(own,
              shuffle(own, number(distance), NVVM::ShflKind::bfly, kLanes - 1));
  return own;
}

Value RunDealer::emitLargest(Value own) {
  for (int64_t distance = 1; distance < kLanes; distance *= 2)
    own = arith::MaxUIOp::create(
        b, own,
        shuffle(own, number(distance), NVVM::ShflKind::bfly, kLanes - 1));
  return own;
}

Value RunDealer::emitPrefix(Value own) {
  for (int64_t distance = 1; distance < kLanes; distance *= 2) {
    Value before =
        shuffle(own, number(distance), NVVM::ShflKind::up, /*clamp=*/0);
    Value counts = compare(arith::CmpIPredicate::uge, lane, number(distance));
    own = add(own, arith::SelectOp::create(b, counts, before, number(0)));
  }
  return own;
}

Value RunDealer::emitRuns(Value length, SmallVectorImpl<Value> *own) {
  Value sum = number(0);
  for (Value count : blocks) {
    Value runs = divideUp(count, length);
    if (!isSearched)
      runs = arith::MinUIOp::create(b, runs, number(most));
    if (own)
      own->push_back(runs);
    sum = add(sum, runs);
  }
  return sum;
}

Value RunDealer::emitSearch(Value least, Value enough) {
  auto loop = scf::WhileOp::create(
      b, TypeRange{least.getType(), least.getType()}, ValueRange{least, enough},
      [&](OpBuilder &builder, Location loc, ValueRange range) {
        Value isOpen = arith::CmpIOp::create(
            builder, loc, arith::CmpIPredicate::ult, range[0], range[1]);
        scf::ConditionOp::create(builder, loc, isOpen, range);
      },
      [&](OpBuilder &builder, Location, ValueRange range) {
        OpBuilder::InsertionGuard guard(b);
        b.restoreInsertionPoint(builder.saveInsertionPoint());
        Value middle =
            arith::DivUIOp::create(b, add(range[0], range[1]), number(2));
        Value isEnough =
            compare(arith::CmpIPredicate::ule,
                    emitSum(emitRuns(middle, /*own=*/nullptr)), number(total));
        Value low = arith::SelectOp::create(b, isEnough, range[0],
                                            add(middle, number(1)));
        Value high = arith::SelectOp::create(b, isEnough, middle, range[1]);
        scf::YieldOp::create(b, ValueRange{low, high});
      });
  return loop.getResult(1);
}

Value RunDealer::emitLength() {
  Value own = number(0), largest = number(0);
  for (Value count : blocks) {
    own = add(own, count);
    if (isSearched)
      largest = arith::MaxUIOp::create(b, largest, count);
  }
  // As many runs of this length as there may be, beside one of each sequence
  // that is shorter.
  Value sum = emitSum(own);
  Value enough = divideUp(sum, number(total - sequences));
  if (!isSearched)
    return enough;
  Value needed = divideUp(emitLargest(largest), number(most));
  auto atLeast = [&](Value length) -> Value {
    return arith::MaxUIOp::create(b, length, needed);
  };
  return emitSearch(atLeast(divideUp(sum, number(total))), atLeast(enough));
}

Run RunDealer::emit() {
  SmallVector<Value> places, keys, runs;
  for (int64_t i = 0; i < each; ++i) {
    auto [sequence, exists] = findSequence(i);
    places.push_back(sequence);
    keys.push_back(emitKeys(sequence, exists));
    blocks.push_back(emitBlocks(keys.back(), exists));
  }
  Value length = emitLength();
  Value own = emitRuns(length, &runs);
  Value last = emitPrefix(own);
  // The lane whose sequences have the run is the first one whose runs reach
  // behind it.
  Value isBehind = compare(arith::CmpIPredicate::ule, last, index);
  Value lanes = NVVM::VoteSyncOp::create(b, b.getI32Type(), number(-1),
                                         isBehind, NVVM::VoteSyncKind::ballot);
  Value owner = LLVM::CtPopOp::create(b, b.getI32Type(), lanes);
  Value exists = compare(arith::CmpIPredicate::ult, owner, number(kLanes));
  Value begin = arith::SubIOp::create(b, last, own);
  Run found = {number(0), number(0), number(0), number(0)};
  for (int64_t i = 0; i < each; ++i) {
    Value isLater = compare(arith::CmpIPredicate::uge, index, begin);
    auto take = [&](Value &to, Value value) {
      to = arith::SelectOp::create(b, isLater, value, to);
    };
    take(found.sequence, places[i]);
    take(found.number, arith::SubIOp::create(b, index, begin));
    take(found.count, runs[i]);
    if (isSearched)
      take(found.keys, keys[i]);
    begin = add(begin, runs[i]);
  }
  SmallVector<Value *> shared = {&found.sequence, &found.number, &found.count};
  if (isSearched)
    shared.push_back(&found.keys);
  for (Value *value : shared) {
    Value got = shuffle(*value, owner, NVVM::ShflKind::idx, kLanes - 1);
    *value = arith::SelectOp::create(b, exists, got, number(0));
  }
  return found;
}

template <>
LogicalResult PartitionLowering::lower(DealRunOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Run run = RunDealer(op, b, lane()).emit();
  op.getSequence().replaceAllUsesWith(run.sequence);
  op.getRun().replaceAllUsesWith(run.number);
  op.getRuns().replaceAllUsesWith(run.count);
  return success();
}

template <>
LogicalResult PartitionLowering::lower(PlanWorkOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Run run = RunDealer(op, b, lane()).emit();
  Value zero = arith::ConstantIntOp::create(b, 0, 32);
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane(), zero);
  auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  Value first = arith::MulIOp::create(
      b, arith::ExtUIOp::create(b, b.getI64Type(), op.getIndex()),
      arith::ConstantIntOp::create(b, PlanWorkOp::kRecordWords, 64));
  Value record = LLVM::GEPOp::create(b, op.getPlan().getType(), b.getI32Type(),
                                     op.getPlan(), ValueRange{first});
  int32_t place = 0;
  for (Value word : {run.sequence, run.number, run.count, run.keys}) {
    Value address =
        LLVM::GEPOp::create(b, record.getType(), b.getI32Type(), record,
                            ArrayRef<LLVM::GEPArg>{place++});
    LLVM::StoreOp::create(b, word, address, 4);
  }
  return success();
}

void lowering::addWorkLowerings(LoweringTable &table) {
  table.addReplaced<DealRunOp>();
  table.addReplaced<PlanWorkOp>();
}
