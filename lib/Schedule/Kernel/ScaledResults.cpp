//===- ScaledResults.cpp - Results in units that are stored too -----------===//
//
// Results of 8 bits may have a scale for each group of columns, by which the
// group's largest number becomes the type's. Partial results of f16 have one
// for each row, or each group of columns that leaves on its own, a power of
// two, so that nothing is lost by it and the largest number has all 11 bits
// wherever it lies.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/NarrowFloats.h"
#include "attn/Schedule/Kernel/PowerScale.h"
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
  /// The byte that the type of scales has for it, i32; null where that is f32.
  Value code;
};

} // namespace

/// Opens a map of the elements of rows, whose one value the caller yields.
static MapElementsOp openRows(const AttentionTile &tile, Value rows) {
  ImplicitLocOpBuilder &b = tile.b;
  Value none = tile.context.i32(0);
  auto map = MapElementsOp::create(b, rows.getType(), rows, none, none);
  Type i32 = b.getI32Type();
  b.createBlock(&map.getBody(), {}, {getElementTypeOrSelf(rows), i32, i32},
                SmallVector<Location>(3, b.getLoc()));
  return map;
}

/// Rounds rows of scales that are not below zero to numbers of f8E4M3FN: f32
/// and the bytes of their type. A chip's own conversion does it, of one number
/// at a time: rows of a thread are too few for a word of bytes.
static std::pair<Value, Value> roundScales(const AttentionTile &tile,
                                           Value scales) {
  ImplicitLocOpBuilder &b = tile.b;
  auto rows = cast<RankedTensorType>(scales.getType());
  RankedTensorType words = rows.clone(b.getI32Type());
  Type narrow = Float8E4M3FNType::get(b.getContext());
  // NaN becomes the largest number.
  Value finite = arith::MinNumFOp::create(
      b, scales, tile.splat(rows, getLargestNumber(narrow)));
  auto codes = openRows(tile, arith::BitcastOp::create(b, words, finite));
  {
    OpBuilder::InsertionGuard guard(b);
    Block &body = codes.getBody().front();
    b.setInsertionPointToStart(&body);
    Value number =
        arith::BitcastOp::create(b, b.getF32Type(), body.getArgument(0));
    Value byte = arith::BitcastOp::create(
        b, b.getI8Type(),
        arith::TruncFOp::create(b, narrow, number).getResult());
    YieldOp::create(
        b, arith::ExtUIOp::create(b, b.getI32Type(), byte).getResult());
  }
  b.setInsertionPointAfter(codes);
  auto rounded = openRows(tile, codes.getResult());
  {
    OpBuilder::InsertionGuard guard(b);
    Block &body = rounded.getBody().front();
    b.setInsertionPointToStart(&body);
    Value byte = arith::TruncIOp::create(b, b.getI8Type(), body.getArgument(0));
    Value number = arith::ExtFOp::create(
        b, b.getF32Type(),
        arith::BitcastOp::create(b, narrow, byte).getResult());
    YieldOp::create(
        b, arith::BitcastOp::create(b, b.getI32Type(), number).getResult());
  }
  b.setInsertionPointAfter(rounded);
  return {arith::BitcastOp::create(b, rows, rounded.getResult()),
          codes.getResult()};
}

/// Returns the f32 nearest to one by each of `scales`, positive numbers of
/// f8E4M3FN; of zeros anything. One step of Newton's behind an approximation:
/// the inverse of a number with four bits is nowhere near the middle of two
/// f32.
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

/// Returns the scales of rows whose largest numbers in size are `most`, before
/// what getGroupFactor leaves joins them.
static GroupScale emitGroupScale(const AttentionTile &tile, Value most) {
  ImplicitLocOpBuilder &b = tile.b;
  Type outType = tile.facts.outType;
  auto rows = cast<RankedTensorType>(most.getType());
  Value one = tile.splat(rows, 1), zero = tile.splat(rows, 0);
  auto isAbove = [&](Value x) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, zero);
  };
  bool isFloat4 = isa<Float4E2M1FNType>(outType);
  double left = tile.facts.getGroupFactor();
  float inverseOfLargest = 1 / getLargestNumber(outType);
  Value scale =
      arith::MulFOp::create(b, most, tile.splat(rows, left * inverseOfLargest));
  if (isa<Float8E8M0FNUType>(tile.facts.oScales.elementType)) {
    PowerScale power = emitPowerScale(b, scale, isAbove(most));
    return {power.scale, power.inverse, power.code};
  }
  if (!isFloat4) {
    scale = arith::SelectOp::create(b, isAbove(most), scale, one);
    return {scale, arith::DivFOp::create(b, one, scale), Value()};
  }
  auto [rounded, code] = roundScales(tile, scale);
  // Nothing is left of numbers that are too small for a scale.
  Value inverse = emitScaleInverse(tile, rounded);
  if (left != 1)
    inverse = arith::MulFOp::create(b, inverse, tile.splat(rows, left));
  return {rounded, arith::SelectOp::create(b, isAbove(rounded), inverse, zero),
          code};
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
  if (scales.elementType.getIntOrFloatBitWidth() != 8 ||
      facts.valueDim % (facts.outGroup * kWordScales) != 0 ||
      scales.getRowAlignment() % kWordScales != 0)
    return false;
  if (facts.hasTiledScales())
    return true;
  return scales.strides.back() == 1 &&
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

/// Returns true if the `owners` threads that hold a row make scales of their
/// own.
static bool dividesScales(const ProblemFacts &facts, int64_t owners) {
  return owners == kRowOwners && isa<Float4E2M1FNType>(facts.outType) &&
         !facts.hasTiledScales() && facts.oScales.strides.back() == 1 &&
         facts.valueDim % (facts.outGroup * kRowOwners) == 0;
}

/// Stores the scales of the groups of rows whose largest numbers are `most`,
/// and returns what these are multiplied by. All threads that hold a row have
/// its values: each makes scales of its own, of which `owners` is a tile of as
/// many as there are threads.
static SmallVector<Value> emitDividedScales(const AttentionTile &tile,
                                            ArrayRef<Value> most,
                                            RankedTensorType owners) {
  ImplicitLocOpBuilder &b = tile.b;
  RankedTensorType rows = tile.f32Tile({tile.blockM});
  RankedTensorType numbers = owners.clone(b.getI32Type());
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(numbers, b.getI32IntegerAttr(value)));
  };
  Value none = tile.context.i32(0);
  auto columns = MapElementsOp::create(b, numbers, number(0), none, none);
  {
    OpBuilder::InsertionGuard guard(b);
    Type i32 = b.getI32Type();
    Block *body = b.createBlock(&columns.getBody(), {}, {i32, i32, i32},
                                SmallVector<Location>(3, b.getLoc()));
    YieldOp::create(b, body->getArgument(2));
  }
  SmallVector<Value> isColumn;
  for (int64_t column = 0; column < kRowOwners; ++column)
    isColumn.push_back(arith::CmpIOp::create(
        b, arith::CmpIPredicate::eq, columns.getResult(), number(column)));
  SmallVector<Value> factors;
  for (size_t first = 0; first < most.size(); first += kRowOwners) {
    Value own;
    for (int64_t column = 0; column < kRowOwners; ++column) {
      Value spread = BroadcastOp::create(b, owners, most[first + column]);
      own = own ? arith::SelectOp::create(b, isColumn[column], spread, own)
                      .getResult()
                : spread;
    }
    GroupScale scale = emitGroupScale(tile, own);
    ResultColumns place;
    place.first = first;
    place.columns = kRowOwners;
    GlobalStoreOp::create(b, scale.scale,
                          emitResultView(tile, "o_scales", place), tile.row);
    for (int64_t column = 0; column < kRowOwners; ++column)
      factors.push_back(ColumnOp::create(b, rows, scale.factor, column));
  }
  return factors;
}

void attn::emitScaledGroups(const AttentionTile &tile, Value o, int64_t owners,
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
  SmallVector<Value> most;
  for (int64_t first = 0; first < facts.valueDim; first += facts.outGroup) {
    Value part = getColumns(first, facts.outGroup);
    most.push_back(ReduceOp::create(b, rows, ReduceKind::Max,
                                    math::AbsFOp::create(b, part).getResult()));
  }
  SmallVector<Value> factors;
  if (dividesScales(facts, owners)) {
    factors = emitDividedScales(
        tile, most,
        RankedTensorType::get(
            {tile.blockM, kRowOwners}, b.getF32Type(),
            PartialLayoutAttr::get(
                b.getContext(),
                cast<RankedTensorType>(o.getType()).getEncoding())));
  } else {
    SmallVector<GroupScale> scales;
    for (Value each : most) {
      scales.push_back(emitGroupScale(tile, each));
      factors.push_back(scales.back().factor);
    }
    storeScales(tile, scales);
  }
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

SmallVector<Value>
attn::emitScaledRows(const AttentionTile &tile, ValueRange columns,
                     Value factor, Value initWeight, const DividedRows *divided,
                     const ResultColumns &group, const ResultColumns &stored) {
  ImplicitLocOpBuilder &b = tile.b;
  ResultColumns scales = group;
  scales.isOneColumn = true;
  SmallVector<Value> wide(columns);
  // A factor of both could be beyond the range where only units of v make the
  // first one large.
  if (initWeight || tile.valueDescale) {
    Value spread = divided ? divided->spread(b, factor) : factor;
    for (Value &part : wide)
      part = emitQuotient(tile, part, spread, stored, initWeight,
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
                        emitResultView(tile, "o_scales", scales), tile.row);
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
