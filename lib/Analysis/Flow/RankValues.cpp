//===- RankValues.cpp - Values as functions of a CTA's rank ---------------===//
//
// A value is a number for each rank, plus something that is the same in all
// CTAs: constants and ranks have nothing of that, so that any operation on them
// can be carried out, of others sums and multiples are known.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Flow/RankValues.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

RankValues::RankValues(gpu::GPUFuncOp kernel,
                       const ClusterUniformity &uniformity)
    : kernel(kernel), uniformity(uniformity) {
  std::optional<ArrayRef<int32_t>> size = kernel.getKnownClusterSize();
  if (size && (*size)[1] == 1 && (*size)[2] == 1)
    ctas = (*size)[0];
}

/// The constant that `value` is, if it is one.
static std::optional<int64_t> getKnownInt(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)))
    return std::nullopt;
  return constant.trySExtValue();
}

/// The result of an operation on whole numbers.
static std::optional<int64_t> computeWhole(Operation *op, int64_t a,
                                           int64_t b) {
  if (isa<arith::AndIOp>(op))
    return a & b;
  if (isa<arith::OrIOp>(op))
    return a | b;
  if (isa<arith::XOrIOp>(op))
    return a ^ b;
  int64_t product;
  if (isa<arith::MulIOp>(op))
    return llvm::MulOverflow(a, b, product) ? std::nullopt
                                            : std::optional(product);
  if (a < 0 || b < 0)
    return std::nullopt;
  if (isa<arith::ShLIOp>(op) && b < 32)
    return llvm::MulOverflow(a, int64_t(1) << b, product)
               ? std::nullopt
               : std::optional(product);
  if (isa<arith::ShRUIOp, arith::ShRSIOp>(op) && b < 32)
    return a >> b;
  if (isa<arith::DivUIOp, arith::DivSIOp>(op) && b != 0)
    return a / b;
  if (isa<arith::RemUIOp, arith::RemSIOp>(op) && b != 0)
    return a % b;
  return std::nullopt;
}

std::optional<RankValues::ByRank> RankValues::evaluate(Value value) const {
  ByRank result;
  if (std::optional<int64_t> constant = getKnownInt(value)) {
    result.at.assign(ctas, *constant);
    result.isWhole = true;
    return result;
  }
  if (!uniformity.getSource(value)) {
    result.at.assign(ctas, 0);
    return result;
  }
  Operation *op = value.getDefiningOp();
  return op ? evaluateOp(op) : std::nullopt;
}

/// True for the number of the CTA along x.
static bool isNumberOfBlock(Value value) {
  while (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  auto block = value.getDefiningOp<gpu::BlockIdOp>();
  return block && block.getDimension() == gpu::Dimension::x;
}

/// Types of at least 32 bits have what ranks and sizes are; others cut.
std::optional<RankValues::ByRank>
RankValues::evaluateCast(Operation *op) const {
  std::optional<ByRank> found = evaluate(op->getOperand(0));
  auto isWide = [](Type type) {
    return type.isIndex() || type.getIntOrFloatBitWidth() >= 32;
  };
  if (!found || (isWide(op->getOperand(0).getType()) &&
                 isWide(op->getResult(0).getType())))
    return found;
  bool fits = found->isWhole;
  for (Type type : {op->getOperand(0).getType(), op->getResult(0).getType()})
    for (int64_t number : found->at)
      fits &= number >= 0 &&
              (isWide(type) ||
               llvm::isUIntN(type.getIntOrFloatBitWidth() - 1, number));
  return fits ? found : std::nullopt;
}

std::optional<RankValues::ByRank> RankValues::evaluateOp(Operation *op) const {
  ByRank result;
  result.at.resize(ctas);
  auto rank = dyn_cast<gpu::ClusterBlockIdOp>(op);
  if ((rank && rank.getDimension() == gpu::Dimension::x) ||
      (op->getNumResults() == 1 && isNumberOfBlock(op->getResult(0)))) {
    for (int64_t cta = 0; cta < ctas; ++cta)
      result.at[cta] = cta;
    result.isWhole = bool(rank);
    return result;
  }
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp,
          arith::ExtSIOp, arith::TruncIOp>(op))
    return evaluateCast(op);
  if (op->getNumOperands() != 2)
    return std::nullopt;
  std::optional<ByRank> a = evaluate(op->getOperand(0)),
                        b = evaluate(op->getOperand(1));
  if (!a || !b)
    return std::nullopt;
  result.isWhole = a->isWhole && b->isWhole;
  bool isSum = isa<arith::AddIOp, arith::SubIOp>(op);
  std::optional<int64_t> factor = getKnownInt(op->getOperand(1));
  if (isa<arith::MulIOp>(op) && !factor)
    factor = getKnownInt(op->getOperand(0));
  // Clusters begin at multiples of their size.
  bool isInCluster = isNumberOfBlock(op->getOperand(0)) && factor &&
                     *factor > 0 && ctas % *factor == 0;
  if (isInCluster && isa<arith::RemUIOp, arith::RemSIOp>(op))
    result.isWhole = true;
  else if (!result.isWhole && !isSum && !(isa<arith::MulIOp>(op) && factor) &&
           !(isInCluster && isa<arith::DivUIOp, arith::DivSIOp>(op)))
    return std::nullopt;
  for (int64_t cta = 0; cta < ctas; ++cta) {
    int64_t left = a->at[cta], right = b->at[cta];
    if (isSum) {
      if (isa<arith::AddIOp>(op)
              ? llvm::AddOverflow(left, right, result.at[cta])
              : llvm::SubOverflow(left, right, result.at[cta]))
        return std::nullopt;
      continue;
    }
    // Multiples of what all CTAs have are the same in all of them.
    if (isa<arith::MulIOp>(op) && !result.isWhole) {
      if (llvm::MulOverflow(a->isWhole ? right : left, *factor, result.at[cta]))
        return std::nullopt;
      continue;
    }
    std::optional<int64_t> value = computeWhole(op, left, right);
    if (!value)
      return std::nullopt;
    result.at[cta] = *value;
  }
  return result;
}

std::optional<SmallVector<int64_t>>
RankValues::getDifferences(Value value) const {
  if (ctas == 0)
    return std::nullopt;
  std::optional<ByRank> found = evaluate(value);
  if (!found)
    return std::nullopt;
  for (int64_t cta = ctas - 1; cta >= 0; --cta)
    if (llvm::SubOverflow(found->at[cta], found->at[0], found->at[cta]))
      return std::nullopt;
  return found->at;
}
