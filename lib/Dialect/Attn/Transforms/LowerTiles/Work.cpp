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

/// One warp's code. Numbers are i32.
class RunDealer {
public:
  RunDealer(DealRunOp op, ImplicitLocOpBuilder &b, Value lane)
      : op(op), b(b), lane(lane),
        each(llvm::divideCeil(int64_t(op.getSequences()), kLanes)) {}
  void emit();

private:
  Value number(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32);
  }
  Value compare(arith::CmpIPredicate how, Value x, Value y) {
    return arith::CmpIOp::create(b, how, x, y);
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value shuffle(Value value, Value from, NVVM::ShflKind kind, int64_t clamp) {
    return NVVM::ShflOp::create(b, b.getI32Type(), number(-1), value, from,
                                number(clamp), kind,
                                /*return_value_and_is_valid=*/UnitAttr());
  }
  /// The sequence of place `i` of the lane, and whether there is one.
  std::pair<Value, Value> findSequence(int64_t i);
  /// What a sequence's keys are in blocks, 0 where there is none.
  Value emitBlocks(Value sequence, Value exists);
  /// The sum over all lanes, and that over the lanes up to this one.
  Value emitSum(Value own);
  Value emitPrefix(Value own);

  DealRunOp op;
  ImplicitLocOpBuilder &b;
  Value lane;
  /// Sequences of a lane.
  int64_t each;
};

} // namespace

std::pair<Value, Value> RunDealer::findSequence(int64_t i) {
  Value sequence = add(arith::MulIOp::create(b, lane, number(each)), number(i));
  return {sequence, compare(arith::CmpIPredicate::ult, sequence,
                            number(int64_t(op.getSequences())))};
}

Value RunDealer::emitBlocks(Value sequence, Value exists) {
  // Lanes without a sequence read the first one's length.
  Value index = arith::SelectOp::create(b, exists, sequence, number(0));
  Value address = LLVM::GEPOp::create(
      b, op.getLengths().getType(), b.getI32Type(), op.getLengths(),
      ValueRange{arith::ExtUIOp::create(b, b.getI64Type(), index)});
  Value length = LLVM::LoadOp::create(b, b.getI32Type(), address, 4);
  length = arith::MinSIOp::create(
      b, arith::MaxSIOp::create(b, length, number(0)), op.getCapacity());
  length = arith::MaxSIOp::create(b, length, number(0));
  Value blocks = arith::DivUIOp::create(
      b, add(length, number(2 * DealRunOp::kBlockKeys - 1)),
      number(DealRunOp::kBlockKeys));
  blocks = arith::MinUIOp::create(b, blocks, number(kMostBlocks));
  return arith::SelectOp::create(b, exists, blocks, number(0));
}

Value RunDealer::emitSum(Value own) {
  for (int64_t distance = 1; distance < kLanes; distance *= 2)
    own = add(own,
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

void RunDealer::emit() {
  SmallVector<Value> sequences, blocks, runs;
  Value sum = number(0);
  for (int64_t i = 0; i < each; ++i) {
    auto [sequence, exists] = findSequence(i);
    sequences.push_back(sequence);
    blocks.push_back(emitBlocks(sequence, exists));
    sum = add(sum, blocks.back());
  }
  // As many runs of this length as there may be, beside one of each sequence
  // that is shorter.
  Value spare = number(int64_t(op.getTotal() - op.getSequences()));
  auto divideUp = [&](Value x, Value y) -> Value {
    Value less = arith::SubIOp::create(b, y, number(1));
    return arith::DivUIOp::create(b, add(x, less), y);
  };
  Value length = divideUp(emitSum(sum), spare);
  Value own = number(0);
  for (int64_t i = 0; i < each; ++i) {
    runs.push_back(arith::MinUIOp::create(b, divideUp(blocks[i], length),
                                          number(int64_t(op.getMost()))));
    own = add(own, runs.back());
  }
  Value last = emitPrefix(own);
  // The lane whose sequences have the run is the first one whose runs reach
  // behind it.
  Value isBehind = compare(arith::CmpIPredicate::ule, last, op.getIndex());
  Value lanes = NVVM::VoteSyncOp::create(b, b.getI32Type(), number(-1),
                                         isBehind, NVVM::VoteSyncKind::ballot);
  Value owner = LLVM::CtPopOp::create(b, b.getI32Type(), lanes);
  Value exists = compare(arith::CmpIPredicate::ult, owner, number(kLanes));
  Value begin = arith::SubIOp::create(b, last, own);
  Value sequence = number(0), run = number(0), count = number(0);
  for (int64_t i = 0; i < each; ++i) {
    Value isLater = compare(arith::CmpIPredicate::uge, op.getIndex(), begin);
    auto take = [&](Value &to, Value value) {
      to = arith::SelectOp::create(b, isLater, value, to);
    };
    take(sequence, sequences[i]);
    take(run, arith::SubIOp::create(b, op.getIndex(), begin));
    take(count, runs[i]);
    begin = add(begin, runs[i]);
  }
  Value found[] = {sequence, run, count};
  for (auto [index, value] : llvm::enumerate(found)) {
    Value shared = shuffle(value, owner, NVVM::ShflKind::idx, kLanes - 1);
    op->getResult(index).replaceAllUsesWith(
        arith::SelectOp::create(b, exists, shared, number(0)));
  }
}

template <>
LogicalResult PartitionLowering::lower(DealRunOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  RunDealer(op, b, lane()).emit();
  return success();
}

void lowering::addWorkLowerings(LoweringTable &table) {
  table.addReplaced<DealRunOp>();
}
