//===- RingIndex.cpp - Which slot of a ring an index names ----------------===//

#include "RingIndex.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

int64_t attn::getDepth(SlotOp slot) {
  return slot.getSource().getType().getNumSlots();
}

int64_t attn::wrap(int64_t number, int64_t depth) {
  return ((number % depth) + depth) % depth;
}

static std::optional<int64_t> getKnownNumber(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return number.getSExtValue();
  return std::nullopt;
}

/// The loop whose counter or carried value `value` is; null for others.
static LoopLikeOpInterface getLoopOf(Value value) {
  auto argument = dyn_cast_or_null<BlockArgument>(value);
  return argument
             ? dyn_cast<LoopLikeOpInterface>(argument.getOwner()->getParentOp())
             : LoopLikeOpInterface();
}

//===----------------------------------------------------------------------===//
// Counters
//===----------------------------------------------------------------------===//

Value attn::getCounter(LoopLikeOpInterface loop) {
  auto counters = loop.getLoopInductionVars();
  return counters && counters->size() == 1 ? counters->front() : Value();
}

/// A constant bound or step of a loop with one counter.
static std::optional<int64_t>
getOnly(const std::optional<SmallVector<OpFoldResult>> &bounds) {
  if (!bounds || bounds->size() != 1)
    return std::nullopt;
  return getConstantIntValue(bounds->front());
}

std::optional<int64_t> attn::getCounterStep(LoopLikeOpInterface loop) {
  return getOnly(loop.getLoopSteps());
}

std::optional<int64_t> attn::getCounterEnd(LoopLikeOpInterface loop) {
  auto lower = getOnly(loop.getLoopLowerBounds()),
       upper = getOnly(loop.getLoopUpperBounds()), step = getCounterStep(loop);
  if (!lower || !upper || !step || *step <= 0)
    return std::nullopt;
  int64_t range = std::max<int64_t>(*upper - *lower, 0);
  return *lower + int64_t(llvm::divideCeil(range, *step)) * *step;
}

//===----------------------------------------------------------------------===//
// Least numbers
//===----------------------------------------------------------------------===//

/// Values that are looked at for one number.
static constexpr unsigned kMostLooks = 64;

/// True if a number is not negative when `carried` are not.
static bool isNotNegative(Value value, int64_t offset,
                          SmallVector<Value, 2> &carried, unsigned &looks) {
  if (++looks > kMostLooks)
    return false;
  if (llvm::is_contained(carried, value))
    return offset >= 0;
  if (std::optional<int64_t> number = getKnownNumber(value))
    return *number + offset >= 0;
  if (LoopLikeOpInterface loop = getLoopOf(value)) {
    if (value == getCounter(loop)) {
      auto first = getOnly(loop.getLoopLowerBounds()),
           step = getCounterStep(loop);
      return first && step && *step > 0 && *first + offset >= 0;
    }
    auto argument = cast<BlockArgument>(value);
    OpOperand *init = loop.getTiedLoopInit(argument);
    OpOperand *next = loop.getTiedLoopYieldedValue(argument);
    if (!init || !next || offset < 0)
      return false;
    carried.push_back(value);
    return isNotNegative(init->get(), 0, carried, looks) &&
           isNotNegative(next->get(), 0, carried, looks);
  }
  Operation *op = value.getDefiningOp();
  // A loop's results are what it carried last.
  if (auto loop = dyn_cast_or_null<LoopLikeOpInterface>(op)) {
    BlockArgument argument =
        loop.getTiedLoopRegionIterArg(cast<OpResult>(value));
    return argument && isNotNegative(argument, offset, carried, looks);
  }
  if (isa_and_nonnull<arith::RemUIOp, arith::RemSIOp, arith::AndIOp,
                      arith::IndexCastOp, arith::ExtSIOp>(op))
    return offset >= 0 && isNotNegative(op->getOperand(0), 0, carried, looks);
  if (auto add = dyn_cast_or_null<arith::AddIOp>(op)) {
    Value from = add.getLhs(), other = add.getRhs();
    if (getKnownNumber(from))
      std::swap(from, other);
    std::optional<int64_t> number = getKnownNumber(other);
    return number && isNotNegative(from, offset + *number, carried, looks);
  }
  if (auto subtract = dyn_cast_or_null<arith::SubIOp>(op)) {
    std::optional<int64_t> number = getKnownNumber(subtract.getRhs());
    return number &&
           isNotNegative(subtract.getLhs(), offset - *number, carried, looks);
  }
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op))
    return isNotNegative(select.getTrueValue(), offset, carried, looks) &&
           isNotNegative(select.getFalseValue(), offset, carried, looks);
  return false;
}

static bool isNotNegative(Value value) {
  SmallVector<Value, 2> carried;
  unsigned looks = 0;
  return isNotNegative(value, 0, carried, looks);
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

/// Ops in a row that an index is followed through.
static constexpr unsigned kMostOps = 8;

static bool operator==(const RingIndex &a, const RingIndex &b) {
  return a.base == b.base && a.distance == b.distance;
}

static RingIndex findIndex(Value index, int64_t depth, unsigned ops);

/// True if `sum` is a slot's number plus one, which is at most the depth:
/// `next` is what the loop that carries the slot goes on with.
static bool isNextSlot(Value sum, arith::SelectOp next, int64_t depth) {
  auto add = sum.getDefiningOp<arith::AddIOp>();
  LoopLikeOpInterface loop =
      add ? getLoopOf(add.getLhs()) : LoopLikeOpInterface();
  if (!loop || getKnownNumber(add.getRhs()) != 1)
    return false;
  auto slot = cast<BlockArgument>(add.getLhs());
  OpOperand *init = loop.getTiedLoopInit(slot);
  OpOperand *yielded = loop.getTiedLoopYieldedValue(slot);
  std::optional<int64_t> first =
      init ? getKnownNumber(init->get()) : std::nullopt;
  return first && *first >= 0 && *first < depth && yielded &&
         yielded->get() == next.getResult();
}

/// Of a choice between a number and where the ring starts over.
static std::optional<RingIndex> findSelect(arith::SelectOp op, int64_t depth,
                                           unsigned ops) {
  RingIndex ofTaken = findIndex(op.getTrueValue(), depth, ops),
            ofOther = findIndex(op.getFalseValue(), depth, ops);
  if (ofTaken == ofOther)
    return ofTaken;
  auto compare = op.getCondition().getDefiningOp<arith::CmpIOp>();
  std::optional<int64_t> limit =
      compare ? getKnownNumber(compare.getRhs()) : std::nullopt;
  if (!limit)
    return std::nullopt;
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = compare.getPredicate();
  // The constant stands where the number is the limit.
  if (llvm::is_contained({Predicate::ne, Predicate::slt, Predicate::ult},
                         predicate)) {
    std::swap(ofTaken, ofOther);
    predicate = arith::invertPredicate(predicate);
  }
  if (ofTaken.base || ofTaken.distance != wrap(*limit, depth) ||
      !(ofOther == findIndex(compare.getLhs(), depth, ops)))
    return std::nullopt;
  bool isAtLeast = predicate == Predicate::sge || predicate == Predicate::uge;
  if (predicate == Predicate::eq ||
      (isAtLeast && *limit == depth && isNextSlot(compare.getLhs(), op, depth)))
    return ofOther;
  return std::nullopt;
}

/// What an op computes, if it keeps to what is known of its operands.
static std::optional<RingIndex> findOpIndex(Operation *op, int64_t depth,
                                            unsigned ops) {
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return findSelect(select, depth, ops);
  if (op->getNumOperands() == 0)
    return std::nullopt;
  Value from = op->getOperand(0), other = op->getOperands().back();
  if (op->hasTrait<OpTrait::IsCommutative>() && getKnownNumber(from))
    std::swap(from, other);
  auto moved = [&](int64_t by) {
    RingIndex index = findIndex(from, depth, ops);
    index.distance = wrap(index.distance + wrap(by, depth), depth);
    return index;
  };
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::ExtUIOp>(op))
    return isNotNegative(from) ? std::optional(moved(0)) : std::nullopt;
  if (!isa<arith::AddIOp, arith::SubIOp, arith::RemUIOp, arith::RemSIOp,
           arith::AndIOp, arith::XOrIOp>(op))
    return std::nullopt;
  std::optional<int64_t> number = getKnownNumber(other);
  if (!number)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return moved(*number);
  if (isa<arith::SubIOp>(op))
    return moved(-*number);
  if (isa<arith::XOrIOp>(op))
    return depth == 2 && *number == 1 ? std::optional(moved(1)) : std::nullopt;
  bool isMask = isa<arith::AndIOp>(op);
  int64_t divisor = isMask ? *number + 1 : *number;
  if (divisor <= 0 || divisor % depth != 0 ||
      (isMask && !llvm::isPowerOf2_64(divisor)))
    return std::nullopt;
  if (!llvm::isPowerOf2_64(divisor) && !isNotNegative(from))
    return std::nullopt;
  return moved(0);
}

/// Behind at most `ops` ops.
static RingIndex findIndex(Value index, int64_t depth, unsigned ops) {
  if (std::optional<int64_t> number = getKnownNumber(index))
    return {{}, wrap(*number, depth)};
  Operation *op = index.getDefiningOp();
  if (op && ops != 0)
    if (std::optional<RingIndex> found = findOpIndex(op, depth, ops - 1))
      return *found;
  return {index, 0};
}

RingIndex attn::getRingIndex(Value index, int64_t depth) {
  return findIndex(index, depth, kMostOps);
}

std::optional<RingIndex> attn::getFirstRingIndex(Value argument,
                                                 int64_t depth) {
  LoopLikeOpInterface loop = getLoopOf(argument);
  if (!loop)
    return std::nullopt;
  if (argument == getCounter(loop)) {
    OpFoldResult lower = loop.getLoopLowerBounds()->front();
    if (auto value = dyn_cast<Value>(lower))
      return getRingIndex(value, depth);
    return RingIndex{{}, wrap(*getConstantIntValue(lower), depth)};
  }
  OpOperand *init = loop.getTiedLoopInit(cast<BlockArgument>(argument));
  if (!init)
    return std::nullopt;
  return getRingIndex(init->get(), depth);
}
