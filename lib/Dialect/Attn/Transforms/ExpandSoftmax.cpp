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
//===----------------------------------------------------------------------===//

#include "ExpandSoftmax.h"

using namespace mlir;
using namespace mlir::attn;

static RankedTensorType tileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

LogicalResult attn::expandOnlineSoftmax(OnlineSoftmaxOp op) {
  if (op.getPolicy() != SoftmaxPolicy::Exact)
    return op.emitError("softmax policy '")
           << stringifySoftmaxPolicy(op.getPolicy())
           << "' is not supported by this pipeline";

  OpBuilder builder(op);
  Location loc = op.getLoc();
  RankedTensorType tile = tileType(op.getS()), row = tileType(op.getM()),
                   partial = tileType(op.getL()), output = tileType(op.getO());
  Value scale = op.getScale();
  Value rowScale = tensor::SplatOp::create(builder, loc, scale, row);
  Value negated = arith::NegFOp::create(builder, loc, scale);
  Value rowNegated = tensor::SplatOp::create(builder, loc, negated, row);

  Value rowMax =
      ReduceOp::create(builder, loc, row, ReduceKind::Max, op.getS());
  Value newM = arith::MaxNumFOp::create(builder, loc, op.getM(), rowMax);
  Value offset = arith::MulFOp::create(builder, loc, newM, rowNegated);
  if (!op.getFinite()) {
    APFloat largest = APFloat::getLargest(APFloat::IEEEsingle());
    Value bound = arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(row, largest));
    offset = arith::MinNumFOp::create(builder, loc, offset, bound);
  }

  Value tileScale = tensor::SplatOp::create(builder, loc, scale, tile);
  Value tileOffset = BroadcastOp::create(builder, loc, tile, offset);
  Value exponent =
      math::FmaOp::create(builder, loc, op.getS(), tileScale, tileOffset);
  Value p = Exp2Op::create(builder, loc, exponent);

  Value old = arith::MulFOp::create(builder, loc, op.getM(), rowScale);
  Value factor = Exp2Op::create(
      builder, loc, arith::AddFOp::create(builder, loc, old, offset));
  Value sums = ReduceOp::create(builder, loc, partial, ReduceKind::Add, p,
                                /*partial=*/true);
  Value partialFactor = BroadcastOp::create(builder, loc, partial, factor);
  Value newL =
      math::FmaOp::create(builder, loc, op.getL(), partialFactor, sums);
  Value outputFactor = BroadcastOp::create(builder, loc, output, factor);
  Value newO = arith::MulFOp::create(builder, loc, op.getO(), outputFactor);

  op.replaceAllUsesWith(ValueRange{p, newM, newL, newO});
  op.erase();
  return success();
}
