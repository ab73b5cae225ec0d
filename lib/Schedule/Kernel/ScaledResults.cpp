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

namespace {

/// The scale of a group of columns in each row.
struct GroupScale {
  /// The scale and what numbers are multiplied by for it, f32.
  Value scale, factor;
  /// The byte that f8E4M3FN has for the scale, i32; null where scales are f32.
  Value code;
};

} // namespace

/// Rounds rows of scales that are not below zero to numbers of f8E4M3FN: f32
/// and the bytes of their type.
static std::pair<Value, Value> roundScales(const AttentionTile &tile,
                                           Value scales) {
  ImplicitLocOpBuilder &b = tile.b;
  auto rows = cast<RankedTensorType>(scales.getType());
  RankedTensorType words = rows.clone(b.getI32Type());
  auto word = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(words, b.getI32IntegerAttr(value)));
  };
  auto bitsOf = [&](Value number) -> Value {
    return arith::BitcastOp::create(b, words, number);
  };
  constexpr int32_t kDropped = 20, kMantissaBits = 3;
  // Exponents of f32 are that much larger than those of f8E4M3FN.
  constexpr int32_t kExponents = 127 - 7;
  constexpr double kLargest = 448, kLeastNormal = 0x1p-6;
  // NaN becomes the largest number.
  Value isLess = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, scales,
                                       tile.splat(rows, kLargest));
  Value finite =
      arith::SelectOp::create(b, isLess, scales, tile.splat(rows, kLargest));
  // Half a unit of what stays of the mantissa, so that even ones are nearest.
  Value bits = bitsOf(finite);
  Value last = arith::AndIOp::create(
      b, arith::ShRUIOp::create(b, bits, word(kDropped)), word(1));
  Value rounded = arith::AddIOp::create(
      b, arith::AddIOp::create(b, bits, word((1 << (kDropped - 1)) - 1)), last);
  Value normal = arith::BitcastOp::create(
      b, rows,
      arith::AndIOp::create(b, rounded, word(-(1 << kDropped))).getResult());
  Value normalCode = arith::SubIOp::create(
      b, arith::ShRUIOp::create(b, rounded, word(kDropped)),
      word(kExponents << kMantissaBits));
  // Below the normal numbers the sum's last bit is their distance.
  Value magic = tile.splat(rows, kLeastNormal * (1 << kDropped));
  Value sum = arith::AddFOp::create(b, finite, magic);
  Value small = arith::SubFOp::create(b, sum, magic);
  Value smallCode = arith::SubIOp::create(b, bitsOf(sum), bitsOf(magic));
  Value isSmall = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, finite,
                                        tile.splat(rows, kLeastNormal));
  return {arith::SelectOp::create(b, isSmall, small, normal),
          arith::SelectOp::create(b, isSmall, smallCode, normalCode)};
}

/// Returns the f32 nearest to one by each of `scales`, positive numbers of
/// f8E4M3FN. One step of Newton's behind an approximation: the inverse of a
/// number with four bits is nowhere near the middle of two f32.
static Value emitScaleInverse(const AttentionTile &tile, Value scales) {
  ImplicitLocOpBuilder &b = tile.b;
  auto rows = cast<RankedTensorType>(scales.getType());
  Value one = tile.splat(rows, 1);
  Value close =
      arith::DivFOp::create(b, one, scales, arith::FastMathFlags::afn);
  Value product = arith::MulFOp::create(b, scales, tile.splat(rows, -1));
  Value left = math::FmaOp::create(b, product, close, one);
  return math::FmaOp::create(b, close, left, close);
}

/// Returns the scales of rows whose largest numbers in size are `most`.
static GroupScale emitGroupScale(const AttentionTile &tile, Value most) {
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
    return {scale, arith::DivFOp::create(b, one, scale), Value()};
  }
  auto [rounded, code] = roundScales(tile, scale);
  // Nothing is left of numbers that are too small for a scale.
  Value some = isAbove(rounded);
  Value divisor = arith::SelectOp::create(b, some, rounded, one);
  Value inverse = emitScaleInverse(tile, divisor);
  return {rounded, arith::SelectOp::create(b, some, inverse, zero), code};
}

/// Returns a tile of a type whose columns have the values of their group, of
/// `columns` each.
static Value spreadGroups(const AttentionTile &tile, RankedTensorType type,
                          ArrayRef<Value> groups, int64_t columns) {
  ImplicitLocOpBuilder &b = tile.b;
  Value spread = BroadcastOp::create(b, type, groups.back());
  for (size_t group = groups.size() - 1; group-- > 0;) {
    // The columns of this group and those in front of it are constant.
    RankedTensorType front =
        type.clone({type.getShape()[0], int64_t(group + 1) * columns});
    Value ones = ExtendColumnsOp::create(b, type, tile.splat(front, 1));
    Value isFront = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, ones,
                                          tile.splat(type, 0));
    spread = arith::SelectOp::create(
        b, isFront, BroadcastOp::create(b, type, groups[group]).getResult(),
        spread);
  }
  return spread;
}

/// The scales of 8 bits that a word has.
static constexpr size_t kWordScales = 4;

/// Returns true if the scales of rows are whole words, wherever rows begin.
static bool hasScaleWords(const ProblemFacts &facts) {
  const TensorFacts &scales = facts.oScales;
  return scales.elementType.getIntOrFloatBitWidth() == 8 &&
         facts.valueDim % (facts.outGroup * kWordScales) == 0 &&
         scales.getRowAlignment() % kWordScales == 0 &&
         scales.strides.back() == 1 &&
         llvm::all_of(ArrayRef(scales.strides).drop_back(), [](int64_t stride) {
           return !ShapedType::isDynamic(stride) && stride % kWordScales == 0;
         });
}

/// Stores the scales of the groups of rows.
static void storeScales(const AttentionTile &tile,
                        ArrayRef<GroupScale> scales) {
  ImplicitLocOpBuilder &b = tile.b;
  if (!hasScaleWords(tile.facts)) {
    for (auto [group, each] : llvm::enumerate(scales))
      GlobalStoreOp::create(b, each.scale,
                            emitResultView(tile, "o_scales", getColumn(group)),
                            tile.row);
    return;
  }
  auto words = cast<RankedTensorType>(scales.front().code.getType());
  for (size_t first = 0; first < scales.size(); first += kWordScales) {
    Value word = scales[first].code;
    for (size_t i = 1; i < kWordScales; ++i) {
      Value distance = arith::ConstantOp::create(
          b, DenseElementsAttr::get(words, b.getI32IntegerAttr(8 * i)));
      Value moved = arith::ShLIOp::create(b, scales[first + i].code, distance);
      word = arith::OrIOp::create(b, word, moved);
    }
    ResultColumns columns;
    columns.first = first;
    columns.inWord = kWordScales;
    GlobalStoreOp::create(b, word, emitResultView(tile, "o_scales", columns),
                          tile.row);
  }
}

void attn::emitScaledGroups(const AttentionTile &tile, Value o,
                            EpilogueKind epilogue) {
  ImplicitLocOpBuilder &b = tile.b;
  const ProblemFacts &facts = tile.facts;
  RankedTensorType rows = tile.f32Tile({tile.blockM});
  auto getColumns = [&](int64_t first, int64_t columns) -> Value {
    auto type = cast<RankedTensorType>(o.getType());
    if (columns == type.getShape()[1])
      return o;
    return SliceOp::create(b, type.clone({tile.blockM, columns}), o,
                           b.getI64IntegerAttr(first));
  };
  SmallVector<GroupScale> scales;
  SmallVector<Value> factors;
  for (int64_t first = 0; first < facts.valueDim; first += facts.outGroup) {
    Value part = getColumns(first, facts.outGroup);
    Value most = ReduceOp::create(b, rows, ReduceKind::Max,
                                  math::AbsFOp::create(b, part).getResult());
    scales.push_back(emitGroupScale(tile, most));
    factors.push_back(scales.back().factor);
  }
  storeScales(tile, scales);
  // All columns are stored together, so that a thread has many of them.
  Value whole = getColumns(0, facts.valueDim);
  auto type = cast<RankedTensorType>(whole.getType());
  Value factor = spreadGroups(tile, type, factors, facts.outGroup);
  Value narrow = arith::TruncFOp::create(
      b, type.clone(facts.outType), arith::MulFOp::create(b, whole, factor));
  // With 8-bit operands a thread has even and odd columns apart, whose bytes
  // are no neighbours.
  if (isa<Float4E2M1FNType>(facts.outType))
    epilogue = facts.isNarrow() ? EpilogueKind::Direct : EpilogueKind::Auto;
  StoreResultOp::create(b, narrow, emitResultView(tile, "o"), tile.row,
                        /*scratch=*/Value(), /*map=*/Value(),
                        /*coordinates=*/ValueRange(), epilogue);
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
