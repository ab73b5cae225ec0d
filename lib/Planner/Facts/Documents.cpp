//===- Documents.cpp - Masks of equal numbers, and of nothing else --------===//

#include "Documents.h"
#include "KeyRangeValues.h"
#include "RangeModel.h"
#include "attn/Dialect/Attn/IR/BlockBounds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;

/// Returns the constant that `value` is.
static std::optional<int64_t> getConstant(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

/// Returns `value` without limits that are no key's number.
static Value skipLimits(Value value, int64_t keys) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::MinSIOp, arith::MaxSIOp>(op))
      break;
    std::optional<int64_t> limit = getConstant(op->getOperand(1));
    if (!limit || (isa<arith::MinSIOp>(op) ? *limit < keys : *limit > 0))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Returns how much more than `base` the number is.
static std::optional<int64_t> getDistance(Value value, Value base,
                                          int64_t keys) {
  value = skipLimits(value, keys);
  if (value == base)
    return 0;
  auto sum = value.getDefiningOp<arith::AddIOp>();
  if (!sum || sum.getLhs() != base)
    return std::nullopt;
  return getConstant(sum.getRhs());
}

/// Returns true if the keys in which `first` looks are all that the mask leaves
/// to its queries.
static bool looksInAll(FindKeyOp first, const ProblemFacts &facts) {
  MaskAttr mask = facts.mask;
  int64_t keys = facts.keys;
  std::optional<int64_t> from = getConstant(first.getFrom());
  std::optional<int64_t> to = getConstant(first.getTo());
  if (!from && mask.hasLeft() &&
      getDistance(first.getFrom(), first.getFirst(), keys) == mask.leftBound())
    from = 0;
  if (!to && mask.hasRight() &&
      getDistance(first.getTo(), first.getLast(), keys) ==
          mask.rightBound() + 1)
    to = keys;
  return from && *from <= 0 && to && *to >= keys;
}

/// Returns true for numbers that the batch alone indexes, beside the query.
static bool isOfBatch(OperandRange indices, Value batch) {
  if (indices.empty())
    return true;
  auto cast = indices.front().getDefiningOp<arith::IndexCastOp>();
  return indices.size() == 1 && cast && cast.getIn() == batch;
}

std::optional<Documents> attn::findDocuments(const ProblemFacts &facts) {
  // Lists of blocks know full ones without a key_range.
  if (!facts.hasKeyRange() || !facts.knowsFullKeys() || facts.hasScoreMod() ||
      ShapedType::isDynamic(facts.queries) || facts.queries != facts.keys)
    return std::nullopt;
  KeyRangeValues range(*AttentionOp(facts.op).getKeyRange());
  auto first = range.begin.getDefiningOp<FindKeyOp>();
  auto last = range.end.getDefiningOp<FindKeyOp>();
  auto same = range.fullEnd.getDefiningOp<FindKeyOp>();
  if (!first || !last || !same || range.fullBegin != range.begin ||
      first.getSearch() != KeySearch::First ||
      last.getSearch() != KeySearch::Last ||
      same.getSearch() != KeySearch::Same)
    return std::nullopt;
  for (FindKeyOp find : {first, last, same})
    if (find.getKeys() != first.getKeys() ||
        find.getQueries() != first.getKeys() ||
        find.getFirst() != range.firstQuery ||
        find.getLast() != range.lastQuery ||
        !isOfBatch(find.getKeyIndices(), range.batch) ||
        !isOfBatch(find.getQueryIndices(), range.batch))
      return std::nullopt;
  if (!looksInAll(first, facts) || last.getFrom() != first.getKey() ||
      last.getTo() != first.getTo() || same.getFrom() != first.getKey() ||
      same.getTo() != last.getKey())
    return std::nullopt;
  const TensorFacts *numbers =
      llvm::find_if(facts.captures, [&](const TensorFacts &capture) {
        return capture.value == first.getKeys();
      });
  if (numbers == facts.captures.end() ||
      numbers->shape.back() != facts.queries || numbers->strides.back() != 1)
    return std::nullopt;
  return Documents{*numbers, !first.getKeyIndices().empty(), first};
}

ProblemFacts attn::getTypicalDocuments(const ProblemFacts &facts) {
  ProblemFacts one = facts;
  one.isDocument = true;
  int64_t length =
      std::max<int64_t>(1, RangeModel::kDocumentShare * facts.queries);
  one.batch = facts.batch * llvm::divideCeil(facts.queries, length);
  one.queries = one.keys = length;
  return one;
}

int64_t attn::countUnreadBlocks(const ProblemFacts &facts, int64_t blockM,
                                int64_t blockN) {
  int64_t blocks = 0, most = std::numeric_limits<int32_t>::max();
  for (int64_t row = 0; row < facts.queries && blocks < most; row += blockM) {
    BlockBoundsOf<int64_t> bounds = computeBlockBounds(
        facts.mask, row, facts.queries, facts.keys, blockM, blockN);
    blocks += facts.batch * (bounds.end - bounds.begin);
  }
  return std::min(blocks, most);
}
