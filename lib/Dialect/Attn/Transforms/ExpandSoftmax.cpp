//===- ExpandSoftmax.cpp - The online softmax as arithmetic ---------------===//
//
// With x = scale (which holds log2 e and is positive), one step of the exact
// policy becomes
//
//   m' = max(m, rowmax(s))
//   n  = -(m' * x), at most the largest finite number
//   p  = exp2(fma(s, x, n))
//   f  = exp2(m * x + n)
//   l' = fma(l, f, partial row sums of p)
//   o' = o * f
//
// The bound on n stands for the test of m' against -inf: a row without any key
// has s = m = m' = -inf, and -inf plus a finite number is -inf, so that p = 0
// and f = 0 as the op's formula wants, for the price of one instruction a row.
// m * x is rounded before n is added, as n was: a maximum that stays gives
// f = 1 exactly, so that rounding does not pile up over thousands of blocks.
//
// The policy threshold computes rowmax(s) too, but changes m, and with it l and
// o, on a rare path only: when the maximum of some row of the warp has grown by
// more than 2^8 since m was set. The policy optimistic does not even compute
// it: p is computed with the standing m, and a partial sum that does not stay
// below 2^14 (f16 ends at 2^16) sends the warp to the exact step. Sums of
// positive numbers bound each of them, and a NaN takes the rare path too.
//
//===----------------------------------------------------------------------===//

#include "ExpandSoftmax.h"

using namespace mlir;
using namespace mlir::attn;

/// Powers of two by which a row's maximum may outgrow the standing one.
static constexpr float kThreshold = 8.0f;
/// What a partial sum of probabilities must stay below under `optimistic`.
static constexpr float kLargestSum = 16384.0f;

namespace {

/// Emits the pieces of one step.
class SoftmaxStep {
public:
  SoftmaxStep(OpBuilder &builder, OnlineSoftmaxOp op)
      : builder(builder), loc(op.getLoc()), op(op), tile(typeOf(op.getS())),
        row(typeOf(op.getM())), partial(typeOf(op.getL())),
        output(typeOf(op.getO())) {}

  /// max(m, rowmax(s)).
  Value grownMaximum() {
    Value rowMax =
        ReduceOp::create(builder, loc, row, ReduceKind::Max, op.getS());
    return arith::MaxNumFOp::create(builder, loc, op.getM(), rowMax);
  }

  /// n for a maximum.
  Value offsetOf(Value maximum) {
    Value negated = arith::NegFOp::create(builder, loc, op.getScale());
    Value rowNegated = tensor::SplatOp::create(builder, loc, negated, row);
    Value offset = arith::MulFOp::create(builder, loc, maximum, rowNegated);
    if (op.getFinite())
      return offset;
    APFloat largest = APFloat::getLargest(APFloat::IEEEsingle());
    Value bound = arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(row, largest));
    return arith::MinNumFOp::create(builder, loc, offset, bound);
  }

  /// m * x.
  Value scaled(Value maximum) {
    Value rowScale = tensor::SplatOp::create(builder, loc, op.getScale(), row);
    return arith::MulFOp::create(builder, loc, maximum, rowScale);
  }

  Value probabilities(Value offset) {
    Value tileScale =
        tensor::SplatOp::create(builder, loc, op.getScale(), tile);
    Value tileOffset = BroadcastOp::create(builder, loc, tile, offset);
    Value exponent =
        math::FmaOp::create(builder, loc, op.getS(), tileScale, tileOffset);
    return Exp2Op::create(builder, loc, exponent);
  }

  /// The factor from the standing maximum to the one of `offset`.
  Value factor(Value offset) {
    return Exp2Op::create(
        builder, loc,
        arith::AddFOp::create(builder, loc, scaled(op.getM()), offset));
  }

  Value partialSums(Value p) {
    return ReduceOp::create(builder, loc, partial, ReduceKind::Add, p,
                            /*partial=*/true);
  }

  Value rescaledSums(Value factor, Value sums) {
    Value spread = BroadcastOp::create(builder, loc, partial, factor);
    if (!sums)
      return arith::MulFOp::create(builder, loc, op.getL(), spread);
    return math::FmaOp::create(builder, loc, op.getL(), spread, sums);
  }

  Value rescaledOutput(Value factor) {
    Value spread = BroadcastOp::create(builder, loc, output, factor);
    return arith::MulFOp::create(builder, loc, op.getO(), spread);
  }

  /// All of the exact step: p, m', l', o'.
  SmallVector<Value, 4> exact() {
    Value maximum = grownMaximum();
    Value offset = offsetOf(maximum);
    Value p = probabilities(offset);
    Value change = factor(offset);
    Value l = rescaledSums(change, partialSums(p));
    return {p, maximum, l, rescaledOutput(change)};
  }

  SmallVector<Value, 4> threshold() {
    Value maximum = grownMaximum();
    Value growth =
        arith::SubFOp::create(builder, loc, scaled(maximum), scaled(op.getM()));
    // Unordered: a first maximum has grown from -inf, and -inf from -inf.
    Value grown = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UGT,
                                        growth, constant(row, kThreshold));
    ValueRange kept = rare(grown, {op.getM(), op.getL(), op.getO()}, [&]() {
      Value change = factor(offsetOf(maximum));
      return SmallVector<Value, 4>{maximum, rescaledSums(change, Value()),
                                   rescaledOutput(change)};
    });
    Value p = probabilities(offsetOf(kept[0]));
    Value l = arith::AddFOp::create(builder, loc, kept[1], partialSums(p));
    return {p, kept[0], l, kept[2]};
  }

  SmallVector<Value, 4> optimistic() {
    Value p = probabilities(offsetOf(op.getM()));
    Value sums = partialSums(p);
    Value large = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UGE,
                                        sums, constant(partial, kLargestSum));
    Value l = arith::AddFOp::create(builder, loc, op.getL(), sums);
    ValueRange results =
        rare(large, {p, op.getM(), l, op.getO()}, [&]() { return exact(); });
    return SmallVector<Value, 4>(results);
  }

private:
  static RankedTensorType typeOf(Value value) {
    return cast<RankedTensorType>(value.getType());
  }

  Value constant(RankedTensorType type, float value) {
    return arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, APFloat(value)));
  }

  ValueRange rare(Value condition, ValueRange defaults,
                  function_ref<SmallVector<Value, 4>()> emit) {
    auto path =
        RareOp::create(builder, loc, defaults.getTypes(), condition, defaults);
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&path.getBody());
    SmallVector<Value, 4> results = emit();
    YieldOp::create(builder, loc, results);
    return path.getResults();
  }

  OpBuilder &builder;
  Location loc;
  OnlineSoftmaxOp op;
  RankedTensorType tile, row, partial, output;
};

} // namespace

LogicalResult attn::expandOnlineSoftmax(OnlineSoftmaxOp op) {
  OpBuilder builder(op);
  SoftmaxStep step(builder, op);
  SmallVector<Value, 4> results;
  switch (op.getPolicy()) {
  case SoftmaxPolicy::Exact:
    results = step.exact();
    break;
  case SoftmaxPolicy::Threshold:
    results = step.threshold();
    break;
  case SoftmaxPolicy::Optimistic:
    results = step.optimistic();
    break;
  case SoftmaxPolicy::Lagged:
    return op.emitError("softmax policy '")
           << stringifySoftmaxPolicy(op.getPolicy())
           << "' is not supported by this pipeline";
  }
  op.replaceAllUsesWith(results);
  op.erase();
  return success();
}
