//===- Scores.cpp - What stands between products and softmax --------------===//

#include "attn/Schedule/Kernel/Scores.h"
#include "attn/Schedule/Kernel/RowViews.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;

ScoreCost attn::getScoreCost(const ProblemFacts &facts) {
  ScoreCost cost;
  if (facts.softcap != 0) {
    cost.registers += 6;
    cost.instructions += 8;
  }
  if (facts.hasScoreMod() || facts.hasMaskMod()) {
    cost.registers += 16;
    cost.instructions += 10;
  }
  if (facts.hidesPlaces()) {
    cost.registers += 8;
    cost.instructions += 10;
  }
  return cost;
}

//===----------------------------------------------------------------------===//
// Operands and units
//===----------------------------------------------------------------------===//

Value attn::emitOperand(const AttentionTile &tile, Value q) {
  ImplicitLocOpBuilder &b = tile.b;
  auto type = cast<RankedTensorType>(q.getType());
  if (tile.facts.elementType == tile.getOperandType())
    return q;
  q = arith::ExtFOp::create(b, type.clone(b.getF32Type()), q);
  return arith::TruncFOp::create(b, type.clone(tile.getOperandType()), q);
}

Value attn::emitConverted(const AttentionTile &tile, Value buffer) {
  ImplicitLocOpBuilder &b = tile.b;
  auto type = cast<BufferType>(buffer.getType());
  Value q = LocalLoadOp::create(
      b, tile.tileType(type.getShape(), tile.facts.elementType), buffer);
  Value converted = ReinterpretOp::create(
      b,
      BufferType::get(b.getContext(), type.getShape(), tile.getOperandType(),
                      type.getLayout(), type.getSpace()),
      buffer);
  LocalStoreOp::create(b, emitOperand(tile, q), converted);
  return converted;
}

/// Returns the element of a (batch, heads) tensor that is the tile's.
static Value emitDescale(const AttentionTile &tile, StringRef name,
                         Value head) {
  KernelContext &context = tile.context;
  ImplicitLocOpBuilder &b = tile.b;
  Type type = context.getTensor(name).elementType;
  Value address = context.getPointer(name);
  auto advance = [&](Value index, unsigned dim) {
    Value distance = arith::MulIOp::create(b, context.widen(index),
                                           context.getStride(name, dim));
    address = LLVM::GEPOp::create(b, address.getType(), type, address,
                                  ValueRange{distance});
  };
  // A sum of both would be one for k and v, and be kept through the loop.
  advance(tile.at.batch, 0);
  advance(head, 1);
  return LLVM::LoadOp::create(b, type, address, /*alignment=*/4);
}

Value attn::emitHeadValues(const AttentionTile &tile, StringRef name) {
  KernelContext &context = tile.context;
  ImplicitLocOpBuilder &b = tile.b;
  unsigned headDim = context.getTensor(name).shape.size() - 1;
  Value stride = context.getStride(name, headDim);
  Value first = arith::MulIOp::create(b, context.widen(tile.at.head), stride);
  if (headDim != 0)
    first = arith::AddIOp::create(
        b, first,
        arith::MulIOp::create(b, context.widen(tile.at.batch),
                              context.getStride(name, 0)));
  Value view = GlobalViewOp::create(
      b,
      GlobalType::get(b.getContext(), {ShapedType::kDynamic}, b.getF32Type()),
      context.getPointer(name), first, tile.getRows(),
      /*stride=*/context.i64(0), /*members=*/stride, /*first=*/Value(),
      /*alignment=*/IntegerAttr(), b.getI64IntegerAttr(tile.group),
      getPresentRows(context, tile.getQueryRows()),
      tile.getQueryRows().isInBounds ? b.getUnitAttr() : UnitAttr());
  return GlobalLoadOp::create(b, tile.f32Tile({tile.blockM}), view, tile.row);
}

void attn::emitScoreDescale(AttentionTile &tile) {
  if (!tile.facts.kDescale)
    return;
  Value ofQueries;
  if (tile.facts.qDescale) {
    // Heads of one tile have units of their own.
    if (tile.group == 1)
      ofQueries = emitDescale(tile, "q_descale", tile.at.head);
    else
      tile.rowDescale = emitHeadValues(tile, "q_descale");
  }
  tile.scoreDescale = emitDescale(tile, "k_descale", tile.at.kvHead);
  if (ofQueries)
    tile.scoreDescale =
        arith::MulFOp::create(tile.b, ofQueries, tile.scoreDescale);
}

Value attn::emitValueDescale(const AttentionTile &tile) {
  if (!tile.facts.vDescale)
    return {};
  return emitDescale(tile, "v_descale", tile.at.kvHead);
}

/// True if scores are made before the softmax, so that it gets no factor but
/// log2 e.
static bool hasNaturalScores(const ProblemFacts &facts) {
  return facts.softcap != 0 || facts.readsScores();
}

Value attn::emitExponentScale(const AttentionTile &tile) {
  KernelContext &context = tile.context;
  if (hasNaturalScores(tile.facts))
    return context.f32(llvm::numbers::log2e);
  Value scale = context.f32(std::abs(tile.facts.scale) * llvm::numbers::log2e);
  if (!tile.scoreDescale)
    return scale;
  return arith::MulFOp::create(tile.b, tile.scoreDescale, scale);
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

std::pair<Value, Value> attn::emitHeadAndQuery(const AttentionTile &tile,
                                               Value row) {
  if (tile.group == 1)
    return {tile.at.head, row};
  ImplicitLocOpBuilder &b = tile.b;
  Value rows = arith::ConstantIntOp::create(b, tile.group, 32);
  Value member = arith::RemUIOp::create(b, row, rows);
  // Rows that do not exist are those of the last head once more.
  if (tile.members != tile.group)
    member = arith::MinSIOp::create(
        b, member, arith::ConstantIntOp::create(b, tile.members - 1, 32));
  Value head = arith::AddIOp::create(b, tile.at.head, member);
  return {head, arith::DivUIOp::create(b, row, rows)};
}

void attn::emitRowKeys(AttentionTile &tile) {
  KernelContext &context = tile.context;
  ImplicitLocOpBuilder &b = tile.b;
  tile.rowKeys = {};
  if (tile.isOneDocument) {
    // Ends are those of the tile, which limits say; begins of blocks may lie
    // before its document.
    tile.rowKeys.exact = tile.isOneDocument;
    APInt begin;
    if (!matchPattern(tile.range.begin, m_ConstantInt(&begin)))
      tile.rowKeys.from = tensor::SplatOp::create(
          b, tile.range.begin, tile.tileType({tile.blockM}, b.getI32Type()));
    return;
  }
  if (!tile.facts.knowsFullKeys() || !context.knowsOrders())
    return;
  auto isAtMost = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sle, x, y);
  };
  auto min = [&](Value x, Value y) -> Value {
    return arith::MinSIOp::create(b, x, y);
  };
  // A range that is exact for the tile is exact for each of its rows.
  auto [begin, end, fullBegin, fullEnd] = tile.bounds.range;
  Value same = arith::AndIOp::create(b, isAtMost(fullBegin, begin),
                                     isAtMost(end, fullEnd));
  RankedTensorType type = tile.tileType({tile.blockM}, b.getI32Type());
  auto keys = RowKeysOp::create(b, type, type, b.getI1Type(), tile.row, same,
                                begin, end);
  tile.rowKeys = {keys.getFrom(), keys.getTo(), keys.getExact()};
  OpBuilder::InsertionGuard guard(b);
  Block *body =
      b.createBlock(&keys.getBody(), {}, {b.getI32Type()}, {b.getLoc()});
  // Rows beyond the last query, whose results nobody stores, count as its own.
  Value zero = context.i32(0);
  Value last = arith::SubIOp::create(b, tile.getRows(), context.i32(1));
  Value row = arith::MaxSIOp::create(b, min(body->getArgument(0), last), zero);
  auto [head, query] = emitHeadAndQuery(tile, row);
  SmallVector<Value> own = context.inlineRangeBetween(
      b, {tile.at.batch, head, head, query, query}, begin, end);
  YieldOp::create(b, own);
}

/// Hides keys in whose place the table has no page, or whose place a query does
/// not see.
static Value emitSeen(const AttentionTile &tile, Value key, Value scores,
                      bool quads) {
  ImplicitLocOpBuilder &b = tile.b;
  auto map =
      MapElementsOp::create(b, scores.getType(), scores, tile.row, key, quads);
  OpBuilder::InsertionGuard guard(b);
  auto [score, row, index] = openElements(tile, map);
  Value isHidden = tile.source->emitIsHidden(
      [&, position = row] { return emitHeadAndQuery(tile, position).second; },
      index);
  Value excluded = arith::ConstantOp::create(
      b, b.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
  YieldOp::create(
      b, arith::SelectOp::create(b, isHidden, excluded, score).getResult());
  return map.getResult();
}

/// Does so only in blocks of keys in front, i1 `isFront`: of the others masks
/// say all.
static Value emitSeenInFront(const AttentionTile &tile, Value isFront,
                             Value key, Value scores, bool quads) {
  ImplicitLocOpBuilder &b = tile.b;
  auto branch = scf::IfOp::create(b, TypeRange(scores.getType()), isFront,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, emitSeen(tile, key, scores, quads));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, scores);
  return branch.getResult(0);
}

/// Applies score_mod, and mask_mod where it does not stand apart, or with
/// `hides` mask_mod alone. Null after a diagnostic.
static Value emitRegions(const AttentionTile &tile, Value key, Value scores,
                         bool quads, bool hides) {
  KernelContext &context = tile.context;
  const ProblemFacts &facts = tile.facts;
  ImplicitLocOpBuilder &b = tile.b;
  AttentionOp op = facts.op;
  // From places in a list to numbers of keys.
  Value shift, unasked = hides ? tile.rowKeys.exact : Value();
  if (tile.source->isListed()) {
    shift = arith::SubIOp::create(b, tile.source->emitKey(key), key);
    // Loops may test the first block that they walk, whether it is full or not.
    if (hides)
      unasked = arith::CmpIOp::create(
          b, arith::CmpIPredicate::slt, key,
          arith::MulIOp::create(b, tile.source->listed.full,
                                context.i32(facts.blockKeys)));
  }
  auto map = MapElementsOp::create(b, scores.getType(), scores, tile.row, key,
                                   unasked, quads, hides);
  OpBuilder::InsertionGuard guard(b);
  auto [score, row, index] = openElements(tile, map);
  auto [head, query] = emitHeadAndQuery(tile, row);
  Value keys = tile.keys;
  if (shift) {
    index = arith::AddIOp::create(b, index, shift);
    keys = context.getKeys();
  }
  // Regions run for rows and keys beyond the end as well, whose results are
  // dropped: their reads must stay inside of what they would read.
  if (!facts.captures.empty()) {
    Value one = arith::ConstantIntOp::create(b, 1, 32);
    query = arith::MinSIOp::create(b, query,
                                   arith::SubIOp::create(b, tile.queries, one));
    index =
        arith::MinSIOp::create(b, index, arith::SubIOp::create(b, keys, one));
  }
  if (tile.origin) {
    query = arith::AddIOp::create(b, query, tile.origin);
    index = arith::AddIOp::create(b, index, tile.origin);
  }
  Value inputs[] = {score, tile.at.batch, head, query, index};
  Value &result = inputs[0];
  if (facts.hasScoreMod() && !hides)
    result = context.inlineRegion(b, op.getScoreMod(), inputs);
  if (!result)
    return {};
  if (facts.hasMaskMod() && hides == facts.knowsFullKeys()) {
    Value keep = context.inlineRegion(b, op.getMaskMod(), inputs);
    if (!keep)
      return {};
    Value excluded = arith::ConstantOp::create(
        b, b.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
    result = arith::SelectOp::create(b, keep, result, excluded);
  }
  YieldOp::create(b, result);
  return map.getResult();
}

LogicalResult attn::emitScores(const AttentionTile &tile, Value key,
                               Value &scores, bool quads) {
  const ProblemFacts &facts = tile.facts;
  ImplicitLocOpBuilder &b = tile.b;
  auto type = cast<RankedTensorType>(scores.getType());
  auto scaleBy = [&](double factor) {
    if (factor != 1)
      scores = arith::MulFOp::create(b, scores, tile.splat(type, factor));
  };
  if (tile.rowDescale)
    scores = arith::MulFOp::create(
        b, scores, BroadcastOp::create(b, type, tile.rowDescale));
  if (tile.scoreDescale && hasNaturalScores(facts))
    scores = arith::MulFOp::create(
        b, scores, tensor::SplatOp::create(b, tile.scoreDescale, type));
  if (facts.softcap != 0) {
    scaleBy(facts.scale / facts.softcap);
    scores = math::TanhOp::create(b, scores);
    scaleBy(facts.softcap);
  } else if (hasNaturalScores(facts)) {
    scaleBy(facts.scale);
  } else if (facts.scale < 0) {
    // The running maximum is that of the raw products: it needs their sign.
    scaleBy(-1);
  }

  // Where some blocks need no mask, it stands apart from what changes scores.
  bool hides = facts.knowsFullKeys();
  if (facts.hasScoreMod() || (facts.hasMaskMod() && !hides))
    scores = emitRegions(tile, key, scores, quads, /*hides=*/false);
  if (scores && hides)
    scores = emitRegions(tile, key, scores, quads, /*hides=*/true);
  if (!scores)
    return failure();
  SeenPlaces seen = {tile.keys, tile.bounds.lower, tile.bounds.upper};
  if (Value isFront = tile.source->emitIsFront(key)) {
    scores = emitSeenInFront(tile, isFront, key, scores, quads);
    seen = tile.source->emitSeen(key);
  } else if (facts.hidesPlaces()) {
    scores = emitSeen(tile, key, scores, quads);
  }
  scores = ApplyMaskOp::create(
      b, type, scores, tile.row, key, seen.limit, seen.lower, seen.upper,
      tile.rowKeys.from, tile.rowKeys.to, quads,
      tile.group == 1 ? IntegerAttr() : b.getI64IntegerAttr(tile.group));
  return success();
}
