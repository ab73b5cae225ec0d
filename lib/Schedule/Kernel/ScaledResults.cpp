//===- ScaledResults.cpp - Results in units that are stored too -----------===//
//
// Results of 8 bits may have a scale for each group of columns, by which the
// group's largest number becomes the type's. Partial results of f16 have one
// for each row, or each group of columns that leaves on its own, a power of
// two, so that nothing is lost by it and the largest number has all 11 bits
// wherever it lies.
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Kernel/StoreResults.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::attn;

/// Returns column `column` alone.
static ResultColumns getColumn(int64_t column) {
  ResultColumns columns;
  columns.first = column;
  columns.isOneColumn = true;
  return columns;
}

/// Rounds rows of scales that are not below zero to numbers of f8E4M3FN, which
/// stay f32.
static Value roundScales(const AttentionTile &tile, Value scales) {
  ImplicitLocOpBuilder &b = tile.b;
  auto rows = cast<RankedTensorType>(scales.getType());
  RankedTensorType words = rows.clone(b.getI32Type());
  auto word = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(words, b.getI32IntegerAttr(value)));
  };
  constexpr int32_t kDropped = 20;
  constexpr double kLargest = 448, kLeastNormal = 0x1p-6;
  // NaN becomes the largest number.
  Value isLess = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, scales,
                                       tile.splat(rows, kLargest));
  Value finite =
      arith::SelectOp::create(b, isLess, scales, tile.splat(rows, kLargest));
  // Half a unit of what stays of the mantissa, so that even ones are nearest.
  Value bits = arith::BitcastOp::create(b, words, finite);
  Value last = arith::AndIOp::create(
      b, arith::ShRUIOp::create(b, bits, word(kDropped)), word(1));
  Value rounded = arith::AddIOp::create(
      b, arith::AddIOp::create(b, bits, word((1 << (kDropped - 1)) - 1)), last);
  Value normal = arith::BitcastOp::create(
      b, rows,
      arith::AndIOp::create(b, rounded, word(-(1 << kDropped))).getResult());
  // Below the normal numbers the sum's last bit is their distance.
  Value magic = tile.splat(rows, kLeastNormal * (1 << kDropped));
  Value small = arith::SubFOp::create(
      b, arith::AddFOp::create(b, finite, magic).getResult(), magic);
  Value isSmall = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, finite,
                                        tile.splat(rows, kLeastNormal));
  return arith::SelectOp::create(b, isSmall, small, normal);
}

/// Returns the scales of rows whose largest numbers in size are `most`, and
/// what numbers are multiplied by for them.
static std::pair<Value, Value> emitGroupScale(const AttentionTile &tile,
                                              Value most) {
  ImplicitLocOpBuilder &b = tile.b;
  Type outType = tile.facts.outType;
  auto rows = cast<RankedTensorType>(most.getType());
  Value one = tile.splat(rows, 1), zero = tile.splat(rows, 0);
  auto isAbove = [&](Value x) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, zero);
  };
  bool isFloat4 = isa<Float4E2M1FNType>(outType);
  double largest = isFloat4 ? 6 : isa<Float8E5M2Type>(outType) ? 57344 : 448;
  Value scale = arith::MulFOp::create(b, most, tile.splat(rows, 1 / largest));
  if (!isFloat4) {
    scale = arith::SelectOp::create(b, isAbove(most), scale, one);
    return {scale, arith::DivFOp::create(b, one, scale)};
  }
  scale = roundScales(tile, scale);
  // Nothing is left of numbers that are too small for a scale.
  Value some = isAbove(scale);
  Value divisor = arith::SelectOp::create(b, some, scale, one);
  Value inverse = arith::DivFOp::create(b, one, divisor);
  return {scale, arith::SelectOp::create(b, some, inverse, zero)};
}

void attn::emitScaledGroups(const AttentionTile &tile, Value o,
                            EpilogueKind epilogue) {
  ImplicitLocOpBuilder &b = tile.b;
  const ProblemFacts &facts = tile.facts;
  RankedTensorType rows = tile.f32Tile({tile.blockM});
  // Columns of the tile for each element of o.
  int64_t perElement = isa<Float4E2M1FNType>(facts.outType) ? 2 : 1;
  for (int64_t group = 0; group * facts.outGroup < facts.valueDim; ++group) {
    int64_t first = group * facts.outGroup;
    RankedTensorType type = cast<RankedTensorType>(o.getType())
                                .clone({tile.blockM, facts.outGroup});
    Value part =
        SliceOp::create(b, type, o, b.getI64IntegerAttr(first)).getResult();
    Value most = ReduceOp::create(b, rows, ReduceKind::Max,
                                  math::AbsFOp::create(b, part).getResult());
    auto [scale, factor] = emitGroupScale(tile, most);
    GlobalStoreOp::create(
        b, scale, emitResultView(tile, "o_scales", getColumn(group)), tile.row);
    Value inverse = BroadcastOp::create(b, type, factor);
    Value narrow = arith::TruncFOp::create(
        b, type.clone(facts.outType), arith::MulFOp::create(b, part, inverse));
    StoreResultOp::create(
        b, narrow,
        emitResultView(tile, "o",
                       {first / perElement, facts.outGroup / perElement}),
        tile.row,
        /*scratch=*/Value(), /*map=*/Value(),
        /*coordinates=*/ValueRange(), epilogue);
  }
}

/// f32 as bits: the exponent, and where it begins.
static constexpr int32_t kExponent = 0x7f800000;
static constexpr int kMantissaBits = 23;
/// Exponents of the largest numbers of rows in units of their scales, and of
/// the smallest scale, as f32 has them.
static constexpr int32_t kLargestExponent = 14, kSmallestExponent = 1;
/// The sum of such exponents of a number and its inverse.
static constexpr int32_t kInverseExponents = 254;

SmallVector<Value> attn::emitScaledRows(const AttentionTile &tile,
                                        ValueRange columns, Value factor,
                                        Value initWeight,
                                        const DividedRows *divided,
                                        int64_t group) {
  ImplicitLocOpBuilder &b = tile.b;
  SmallVector<Value> wide(columns);
  // A factor of both could be beyond the range where only units of v make the
  // first one large.
  if (initWeight || tile.valueDescale) {
    Value spread = divided ? divided->spread(b, factor) : factor;
    for (Value &part : wide)
      part = emitQuotient(tile, part, spread, /*columns=*/{}, initWeight,
                          /*rounds=*/false);
    factor = {};
  }
  RankedTensorType rows = tile.f32Tile({tile.blockM});
  Value most;
  for (Value part : wide) {
    Value own = ReduceOp::create(b, divided ? divided->getPartialType() : rows,
                                 ReduceKind::Max,
                                 math::AbsFOp::create(b, part).getResult(),
                                 divided ? b.getUnitAttr() : UnitAttr());
    most = most ? arith::MaxNumFOp::create(b, most, own).getResult() : own;
  }
  if (divided)
    most = ReduceOp::create(b, rows, ReduceKind::Max, divided->gather(b, most));
  if (factor)
    most = arith::MulFOp::create(b, most, factor);

  RankedTensorType words = tile.tileType({tile.blockM}, b.getI32Type());
  auto word = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(words, b.getI32IntegerAttr(value)));
  };
  auto exponent = [&](int32_t value) { return word(value << kMantissaBits); };
  Value exponents = arith::AndIOp::create(
      b, arith::BitcastOp::create(b, words, most), word(kExponent));
  Value least = exponent(kLargestExponent + kSmallestExponent);
  Value unit =
      arith::SubIOp::create(b, arith::MaxUIOp::create(b, exponents, least),
                            exponent(kLargestExponent));
  GlobalStoreOp::create(b, arith::BitcastOp::create(b, rows, unit),
                        emitResultView(tile, "o_scales", getColumn(group)),
                        tile.row);
  Value inverse = arith::BitcastOp::create(
      b, rows, arith::SubIOp::create(b, exponent(kInverseExponents), unit));
  if (factor)
    inverse = arith::MulFOp::create(b, inverse, factor);
  if (divided)
    inverse = divided->spread(b, inverse);
  for (Value &part : wide)
    part = emitQuotient(tile, part, inverse, /*columns=*/{});
  return wide;
}
