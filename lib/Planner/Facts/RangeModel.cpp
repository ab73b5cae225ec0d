//===- RangeModel.cpp - Keys that key_range leaves to a tile --------------===//

#include "RangeModel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

RangeModel::RangeModel(const ProblemFacts &facts, int64_t queries, int64_t keys)
    : mask(facts.mask), queries(queries), keys(keys) {
  if (facts.hasKeyRange())
    block = &AttentionOp(facts.op).getKeyRange()->front();
}

int64_t RangeModel::get(Value value) {
  auto known = numbers.find(value);
  if (known != numbers.end())
    return known->second;
  APInt constant;
  int64_t number = kCapturedShare * keys;
  if (matchPattern(value, m_ConstantInt(&constant)))
    number = constant.getSExtValue();
  numbers[value] = number;
  return number;
}

void RangeModel::set(Value value, int64_t number) {
  // Sums of 32 bits may wrap where a kernel asks if they do.
  if (value.getType().isInteger(32))
    number = int32_t(number);
  numbers[value] = number;
}

static bool holds(arith::CmpIPredicate predicate, int64_t x, int64_t y) {
  uint64_t first = x, second = y;
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return x == y;
  case arith::CmpIPredicate::ne:
    return x != y;
  case arith::CmpIPredicate::slt:
    return x < y;
  case arith::CmpIPredicate::sle:
    return x <= y;
  case arith::CmpIPredicate::sgt:
    return x > y;
  case arith::CmpIPredicate::sge:
    return x >= y;
  case arith::CmpIPredicate::ult:
    return first < second;
  case arith::CmpIPredicate::ule:
    return first <= second;
  case arith::CmpIPredicate::ugt:
    return first > second;
  case arith::CmpIPredicate::uge:
    return first >= second;
  }
  llvm_unreachable("covered switch");
}

/// Computes what an operation of two integers gives; nothing for others.
static std::optional<int64_t> computeBinary(Operation *op, int64_t x,
                                            int64_t y) {
  using Result = std::optional<int64_t>;
  bool divides = y != 0;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<arith::AddIOp>([&](auto) { return x + y; })
      .Case<arith::SubIOp>([&](auto) { return x - y; })
      .Case<arith::MulIOp>([&](auto) { return x * y; })
      .Case<arith::MinSIOp>([&](auto) { return std::min(x, y); })
      .Case<arith::MaxSIOp>([&](auto) { return std::max(x, y); })
      .Case<arith::AndIOp>([&](auto) { return x & y; })
      .Case<arith::OrIOp>([&](auto) { return x | y; })
      .Case<arith::XOrIOp>([&](auto) { return x ^ y; })
      .Case<arith::ShLIOp>([&](auto) { return x << (y & 63); })
      .Case<arith::ShRSIOp>([&](auto) { return x >> (y & 63); })
      .Case<arith::FloorDivSIOp>([&](auto) {
        return divides ? Result(llvm::divideFloorSigned(x, y)) : Result();
      })
      .Case<arith::DivSIOp>(
          [&](auto) { return divides ? Result(x / y) : Result(); })
      .Case<arith::CmpIOp>([&](arith::CmpIOp compare) {
        return int64_t(holds(compare.getPredicate(), x, y));
      })
      .Default([](Operation *) { return std::nullopt; });
}

void RangeModel::compute(FindKeyOp find) {
  int64_t length = std::max<int64_t>(1, kDocumentShare * keys);
  int64_t first = get(find.getFirst()) / length;
  int64_t last = get(find.getLast()) / length;
  int64_t from = std::max<int64_t>(get(find.getFrom()), 0);
  int64_t to = std::clamp<int64_t>(get(find.getTo()), from, keys);
  switch (find.getSearch()) {
  case KeySearch::First:
    return set(find.getKey(), std::clamp(first * length, from, to));
  case KeySearch::Last:
    return set(find.getKey(), std::clamp((last + 1) * length, from, to));
  case KeySearch::Same:
    return set(find.getKey(), first == last ? to : from);
  }
  llvm_unreachable("covered switch");
}

void RangeModel::compute(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>() || op->getNumResults() != 1)
    return;
  Value result = op->getResult(0);
  if (auto find = dyn_cast<FindKeyOp>(op))
    return compute(find);
  if (auto choice = dyn_cast<arith::SelectOp>(op))
    return set(result, get(choice.getCondition()) != 0
                           ? get(choice.getTrueValue())
                           : get(choice.getFalseValue()));
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(
          op))
    return set(result, get(op->getOperand(0)));
  std::optional<int64_t> number;
  if (op->getNumOperands() == 2)
    number = computeBinary(op, get(op->getOperand(0)), get(op->getOperand(1)));
  set(result, number.value_or(kCapturedShare * keys));
}

BlockBoundsOf<int64_t> RangeModel::findBlocks(int64_t row, int64_t blockM,
                                              int64_t blockN) {
  SmallVector<int64_t, 4> range;
  if (block) {
    numbers.clear();
    int64_t most = std::max<int64_t>(queries, 1) - 1;
    int64_t first = std::clamp<int64_t>(row, 0, most);
    int64_t last = std::clamp<int64_t>(row + blockM - 1, 0, most);
    // It is one of the first batch and head.
    const int64_t tile[] = {0, 0, 0, first, last};
    for (auto [argument, number] : llvm::zip_equal(block->getArguments(), tile))
      numbers[argument] = number;
    for (Operation &op : block->without_terminator())
      compute(&op);
    for (Value bound : block->getTerminator()->getOperands())
      range.push_back(get(bound));
  }
  return computeBlockBounds(mask, row, queries, keys, blockM, blockN,
                            /*group=*/1, range);
}
