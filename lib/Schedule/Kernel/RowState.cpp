//===- RowState.cpp - The softmax's state of rows -------------------------===//

#include "attn/Schedule/Kernel/RowState.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// Before the first block
//===----------------------------------------------------------------------===//

/// An exponent of two that no score 0 comes near.
static constexpr double kAbsentMaximum = 64;

static Value emitAbsentRows(const AttentionTile &tile, Value m) {
  ImplicitLocOpBuilder &b = tile.b;
  // A narrow tile, since rows are numbered where elements are.
  RankedTensorType type = tile.f32Tile({tile.blockM, 8});
  Value infinity = tile.splat(type, -std::numeric_limits<double>::infinity());
  auto map =
      MapElementsOp::create(b, type, infinity, tile.row, tile.context.i32(0));
  {
    OpBuilder::InsertionGuard guard(b);
    auto [element, row, column] = openElements(tile, map);
    Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row,
                                         tile.getRows());
    Value value = arith::SelectOp::create(
        b, exists, element,
        arith::ConstantOp::create(b, b.getF32FloatAttr(kAbsentMaximum)));
    YieldOp::create(b, ValueRange{value});
  }
  Value least = ReduceOp::create(b, tile.f32Tile({tile.blockM}),
                                 ReduceKind::Max, map.getResult());
  return arith::MaxNumFOp::create(b, m, least);
}

RunningState attn::emitInitialState(const AttentionTile &tile, bool bets) {
  Value m = tile.splat(tile.f32Tile({tile.blockM}),
                       -std::numeric_limits<double>::infinity());
  if (bets && !tile.hasWholeTiles())
    m = emitAbsentRows(tile, m);
  Value l = tile.splat(getPartialSumsType(tile.b.getContext(), tile.blockM), 0);
  Value o = tile.splat(tile.f32Tile({tile.blockM, tile.resultColumns}), 0);
  return {m, l, o};
}

//===----------------------------------------------------------------------===//
// Sums of rows
//===----------------------------------------------------------------------===//

Value attn::emitDivisor(const AttentionTile &tile, Value sums, Value m,
                        Value largest) {
  ImplicitLocOpBuilder &b = tile.b;
  RankedTensorType rows = tile.f32Tile({tile.blockM});
  if (largest.getType() != m.getType())
    largest = ReduceOp::create(b, rows, ReduceKind::Max, largest,
                               /*partial=*/UnitAttr());
  Value exponents = arith::SubFOp::create(b, largest, m);
  // In a row without keys that is NaN, and its sum is 0, which other states and
  // logits may join: any finite exponent leaves the sum as it is. Whole maxima
  // are not below the largest exponent, others are hardly above it.
  if (tile.hasWholeMaxima)
    exponents = arith::MinNumFOp::create(b, exponents, tile.splat(rows, 0));
  else
    exponents = arith::MaxNumFOp::create(
        b, exponents,
        tile.splat(rows, std::numeric_limits<float>::min_exponent - 1));
  Value p = Exp2Op::create(b, rows, exponents);
  // x (2^k + 1) less what it has more than x is x without its last k digits,
  // to nearest. A thread's one number would be half of a register as it is.
  unsigned dropped =
      b.getF32Type().getFPMantissaWidth() -
      cast<FloatType>(tile.getOperandType()).getFPMantissaWidth();
  Value scaled =
      arith::MulFOp::create(b, p, tile.splat(rows, (1u << dropped) + 1.0));
  Value more = arith::SubFOp::create(b, scaled, p);
  Value rounded = arith::SubFOp::create(b, scaled, more);
  // Others' sum does not wait for that.
  Value others = arith::SubFOp::create(b, sums, p);
  return arith::AddFOp::create(b, others, rounded);
}

/// Exponents of two from which on a maximum is off by more than probabilities
/// of a type hold (docs/Reference.md, "Range of scores").
static float getScoreLimit(Type probabilities) {
  if (probabilities.getIntOrFloatBitWidth() == 8)
    return 0x1p24f;
  return probabilities.isF16() ? 0x1p28f : 0x1p30f;
}

/// Returns the sums of whole rows; NaN where a maximum is beyond what scores
/// may be.
static Value emitSums(const AttentionTile &tile, Value l, Value m) {
  return SoftmaxSumsOp::create(tile.b, l, m,
                               APFloat(getScoreLimit(tile.getOperandType())));
}

FinalRows attn::emitFinalRows(const AttentionTile &tile, Value m, Value l,
                              Value largest) {
  Value sums = emitSums(tile, l, m);
  Value divisor;
  if (largest)
    divisor = emitDivisor(tile, sums, m, largest);
  return emitLogits(tile, {m, sums, Value(), divisor});
}

RunningState attn::emitRowSums(const AttentionTile &tile,
                               const RunningState &state) {
  Value l = emitSums(tile, state.l, state.m);
  RunningState whole(state.m, l, state.o);
  if (state.largest)
    whole.divisor = emitDivisor(tile, l, state.m, state.largest);
  return whole;
}

RunningState attn::emitMergedState(const AttentionTile &tile,
                                   const RunningState &first,
                                   const RunningState &second) {
  ImplicitLocOpBuilder &b = tile.b;
  RankedTensorType rows = tile.f32Tile({tile.blockM});
  Value m = arith::MaximumFOp::create(b, first.m, second.m);
  // Rows without keys in both have nothing to subtract.
  Value infinity = tile.splat(rows, -std::numeric_limits<double>::infinity());
  Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, m, infinity);
  Value shift = arith::SelectOp::create(b, none, tile.splat(rows, 0), m);
  RunningState merged(m, {}, {});
  auto add = [&](Value &sum, Value term) {
    sum = sum ? arith::AddFOp::create(b, sum, term).getResult() : term;
  };
  for (const RunningState &each : {first, second}) {
    Value factor =
        Exp2Op::create(b, rows, arith::SubFOp::create(b, each.m, shift));
    Value l = arith::MulFOp::create(b, each.l, factor);
    Value o = arith::MulFOp::create(
        b, each.o, BroadcastOp::create(b, each.o.getType(), factor));
    add(merged.l, l);
    add(merged.o, o);
    if (each.divisor)
      add(merged.divisor, arith::MulFOp::create(b, each.divisor, factor));
  }
  return merged;
}

//===----------------------------------------------------------------------===//
// States and factors
//===----------------------------------------------------------------------===//

RunningState attn::emitWithSinks(const AttentionTile &tile,
                                 const RunningState &state) {
  FinalRows rows = {state.m, state.l, Value(), state.divisor};
  return emitState(tile, emitLogits(tile, rows), state.o);
}

RunningState attn::emitState(const AttentionTile &tile, const FinalRows &rows,
                             Value o) {
  RunningState state(rows.m, rows.l, o);
  state.divisor = rows.divisor;
  state.initShare = rows.initShare;
  if (rows.factor)
    state.o = arith::MulFOp::create(
        tile.b, o, BroadcastOp::create(tile.b, o.getType(), rows.factor));
  return state;
}

RunningState attn::emitFinalState(const AttentionTile &tile,
                                  const RunningState &state) {
  return emitWithSinks(tile, emitRowSums(tile, state));
}

Value attn::emitReciprocal(const AttentionTile &tile, Value l, Value one) {
  ImplicitLocOpBuilder &b = tile.b;
  RankedTensorType rows = tile.f32Tile({tile.blockM});
  Value zero = tile.splat(rows, 0);
  // NaN is some.
  Value some = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, l, zero);
  Value divisor = arith::SelectOp::create(b, some, l, tile.splat(rows, 1));
  return arith::DivFOp::create(b, one, divisor);
}

Value attn::emitInverse(const AttentionTile &tile, Value l) {
  double factor = tile.facts.getRowFactor();
  Value unit = tile.valueDescale;
  if (tile.facts.rowState)
    return unit ? tile.splatRows(unit)
                : tile.splat(tile.f32Tile({tile.blockM}), 1);
  if (unit && factor != 1)
    unit = arith::MulFOp::create(tile.b, unit, tile.context.f32(factor));
  if (!unit && factor == 1)
    return SoftmaxInverseOp::create(tile.b, l);
  Value one = unit ? tile.splatRows(unit)
                   : tile.splat(tile.f32Tile({tile.blockM}), factor);
  return emitReciprocal(tile, l, one);
}

Value attn::emitRowFactor(const AttentionTile &tile, const FinalRows &rows) {
  Value inverse = emitInverse(tile, rows.getDivisor());
  return rows.factor
             ? arith::MulFOp::create(tile.b, inverse, rows.factor).getResult()
             : inverse;
}

SmallVector<Value> attn::emitRareRescale(ImplicitLocOpBuilder &b, Value factor,
                                         ValueRange results) {
  auto rows = cast<RankedTensorType>(factor.getType());
  Value one =
      arith::ConstantOp::create(b, DenseElementsAttr::get(rows, APFloat(1.0f)));
  Value changed =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, factor, one);
  auto path = RareOp::create(b, results.getTypes(), changed, results,
                             /*each_warpgroup=*/false,
                             /*barrier=*/IntegerAttr(), /*leave_loop=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&path.getBody());
  SmallVector<Value> rescaled;
  for (Value result : results) {
    auto type = cast<RankedTensorType>(result.getType());
    Value spread = BroadcastOp::create(b, type.clone(b.getF32Type()), factor);
    if (!type.getElementType().isF32())
      spread = arith::TruncFOp::create(b, type, spread);
    rescaled.push_back(arith::MulFOp::create(b, result, spread));
  }
  YieldOp::create(b, rescaled);
  return llvm::to_vector(ValueRange(path.getResults()));
}
