//===- AttentionEmitter.cpp - What all schedules emit ---------------------===//

#include "AttentionEmitter.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

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
  if (facts.selected) {
    cost.registers += 8;
    cost.instructions += 10;
  }
  return cost;
}

AttentionEmitter::AttentionEmitter(KernelContext &context, int64_t blockM,
                                   int64_t group, int64_t members)
    : context(context), facts(context.facts), blockM(blockM),
      resultColumns(facts.valueDim), group(group),
      members(members == 0 ? group : members), b(context.b),
      source(KeySource::create(context)), results(ResultSink::create(context)) {
}

Value AttentionEmitter::emitOperand(Value q) {
  auto type = cast<RankedTensorType>(q.getType());
  if (facts.elementType == getOperandType())
    return q;
  q = arith::ExtFOp::create(b, type.clone(b.getF32Type()), q);
  return arith::TruncFOp::create(b, type.clone(getOperandType()), q);
}

Value AttentionEmitter::emitConverted(Value buffer) {
  auto type = cast<BufferType>(buffer.getType());
  Value q = LocalLoadOp::create(b, tileType(type.getShape(), facts.elementType),
                                buffer);
  Value converted = ReinterpretOp::create(
      b,
      BufferType::get(b.getContext(), type.getShape(), getOperandType(),
                      type.getLayout(), type.getSpace()),
      buffer);
  LocalStoreOp::create(b, emitOperand(q), converted);
  return converted;
}

std::pair<Value, Value>
AttentionEmitter::emitHeadAndQuery(ImplicitLocOpBuilder &lb, Value row) {
  if (group == 1)
    return {at.head, row};
  Value rows = arith::ConstantIntOp::create(lb, group, 32);
  Value member = arith::RemUIOp::create(lb, row, rows);
  // Rows that do not exist are those of the last head once more.
  if (members != group)
    member = arith::MinSIOp::create(
        lb, member, arith::ConstantIntOp::create(lb, members - 1, 32));
  Value head = arith::AddIOp::create(lb, at.head, member);
  return {head, arith::DivUIOp::create(lb, row, rows)};
}

bool AttentionEmitter::hasNaturalScores() const {
  return facts.softcap != 0 || facts.readsScores();
}

Value AttentionEmitter::emitExponentScale() {
  if (hasNaturalScores())
    return context.f32(llvm::numbers::log2e);
  Value scale = context.f32(std::abs(facts.scale) * llvm::numbers::log2e);
  if (!scoreDescale)
    return scale;
  return arith::MulFOp::create(b, scoreDescale, scale);
}

void AttentionEmitter::emitLengths() {
  queries = facts.varlen ? emitPackedLength(context, "cu_seqlens_q", at.batch,
                                            queryStart)
                         : context.getQueries();
  source->known = at.keys;
  source->find(at.batch);
  keys = source->length;
  keyStart = source->start;
  if (group != 1)
    packedRows = arith::MulIOp::create(b, queries, context.i32(group));
}

void AttentionEmitter::emitRun(int64_t blockN) {
  if (!at.split)
    return;
  auto min = [&](Value x, Value y) -> Value {
    return arith::MinSIOp::create(b, x, y);
  };
  auto clamp = [&](Value x) -> Value {
    return min(arith::MaxSIOp::create(b, x, bounds.begin), bounds.end);
  };
  if (facts.runKeys) {
    // The ends are multiples of keys, so that neither other sequences nor the
    // number of runs move them.
    Value length = context.i32(facts.runKeys / blockN);
    Value first = arith::MulIOp::create(b, at.split, length);
    Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, at.split,
                                         context.i32(facts.kvSplits - 1));
    Value end = bounds.end;
    Value next = clamp(arith::AddIOp::create(b, first, length));
    bounds.begin = clamp(first);
    bounds.end = arith::SelectOp::create(b, isLast, end, next);
    bounds.fullBegin = clamp(bounds.fullBegin);
    bounds.fullEnd = clamp(bounds.fullEnd);
    return;
  }
  Value blocks = arith::SubIOp::create(b, bounds.end, bounds.begin);
  Value runs = at.runs, less;
  if (runs) {
    less = arith::SubIOp::create(b, runs, context.i32(1));
  } else {
    runs = context.i32(facts.kvSplits);
    less = context.i32(facts.kvSplits - 1);
  }
  Value length =
      arith::DivUIOp::create(b, arith::AddIOp::create(b, blocks, less), runs);
  Value first = arith::AddIOp::create(
      b, bounds.begin, arith::MulIOp::create(b, at.split, length));
  Value end = bounds.end;
  bounds.begin = min(first, end);
  bounds.end = min(arith::AddIOp::create(b, bounds.begin, length), end);
  bounds.fullBegin = clamp(bounds.fullBegin);
  bounds.fullEnd = clamp(bounds.fullEnd);
}

/// An exponent of two that no score 0 comes near.
static constexpr double kAbsentMaximum = 64;

Value AttentionEmitter::emitAbsentRows(Value m) {
  // A narrow tile, since rows are numbered where elements are.
  RankedTensorType type = f32Tile({blockM, 8});
  auto map = MapElementsOp::create(
      b, type, splat(type, -std::numeric_limits<double>::infinity()), row,
      context.i32(0));
  {
    OpBuilder::InsertionGuard guard(b);
    Type i32 = b.getI32Type();
    Block *block = b.createBlock(&map.getBody(), {}, {b.getF32Type(), i32, i32},
                                 SmallVector<Location>(3, b.getLoc()));
    Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                         block->getArgument(1), getRows());
    Value value = arith::SelectOp::create(
        b, exists, block->getArgument(0),
        arith::ConstantOp::create(b, b.getF32FloatAttr(kAbsentMaximum)));
    YieldOp::create(b, ValueRange{value});
  }
  Value least =
      ReduceOp::create(b, f32Tile({blockM}), ReduceKind::Max, map.getResult());
  return arith::MaxNumFOp::create(b, m, least);
}

bool AttentionEmitter::hasWholeTiles() const {
  return !facts.varlen && !ShapedType::isDynamic(facts.queries) &&
         facts.queries * group % rowsTogether == 0;
}

RunningState AttentionEmitter::emitInitialState(bool bets) {
  Value m = splat(f32Tile({blockM}), -std::numeric_limits<double>::infinity());
  if (bets && !hasWholeTiles())
    m = emitAbsentRows(m);
  return {m, splat(getPartialSumsType(b.getContext(), blockM), 0),
          splat(f32Tile({blockM, resultColumns}), 0)};
}

Value AttentionEmitter::emitDivisor(Value sums, Value m, Value largest) {
  RankedTensorType rows = f32Tile({blockM});
  if (largest.getType() != m.getType())
    largest = ReduceOp::create(b, rows, ReduceKind::Max, largest,
                               /*partial=*/UnitAttr());
  Value exponents = arith::SubFOp::create(b, largest, m);
  // In a row without keys that is NaN, and its sum is 0, which other states and
  // logits may join: any finite exponent leaves the sum as it is. Whole maxima
  // are not below the largest exponent, others are hardly above it.
  if (hasWholeMaxima)
    exponents = arith::MinNumFOp::create(b, exponents, splat(rows, 0));
  else
    exponents = arith::MaxNumFOp::create(
        b, exponents,
        splat(rows, std::numeric_limits<float>::min_exponent - 1));
  Value p = Exp2Op::create(b, rows, exponents);
  // x (2^k + 1) less what it has more than x is x without its last k digits,
  // to nearest. A thread's one number would be half of a register as it is.
  unsigned dropped = b.getF32Type().getFPMantissaWidth() -
                     cast<FloatType>(getOperandType()).getFPMantissaWidth();
  Value scaled =
      arith::MulFOp::create(b, p, splat(rows, (1u << dropped) + 1.0));
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

Value AttentionEmitter::emitSums(Value l, Value m) {
  return SoftmaxSumsOp::create(b, l, m,
                               APFloat(getScoreLimit(getOperandType())));
}

FinalRows AttentionEmitter::emitFinalRows(Value m, Value l, Value largest) {
  Value sums = emitSums(l, m);
  Value divisor;
  if (largest)
    divisor = emitDivisor(sums, m, largest);
  return emitLogits({m, sums, Value(), divisor});
}

RunningState AttentionEmitter::emitRowSums(RunningState carried) {
  Value l = emitSums(carried.l, carried.m);
  RunningState state(carried.m, l, carried.o);
  if (carried.largest)
    state.divisor = emitDivisor(l, carried.m, carried.largest);
  return state;
}

RunningState AttentionEmitter::emitMergedState(RunningState first,
                                               RunningState second) {
  RankedTensorType rows = f32Tile({blockM});
  Value m = arith::MaximumFOp::create(b, first.m, second.m);
  // Rows without keys in both have nothing to subtract.
  Value infinity = splat(rows, -std::numeric_limits<double>::infinity());
  Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, m, infinity);
  Value shift = arith::SelectOp::create(b, none, splat(rows, 0), m);
  RunningState merged(m, {}, {});
  for (const RunningState &each : {first, second}) {
    Value factor =
        Exp2Op::create(b, rows, arith::SubFOp::create(b, each.m, shift));
    Value l = arith::MulFOp::create(b, each.l, factor);
    Value o = arith::MulFOp::create(
        b, each.o, BroadcastOp::create(b, each.o.getType(), factor));
    merged.l = merged.l ? arith::AddFOp::create(b, merged.l, l).getResult() : l;
    merged.o = merged.o ? arith::AddFOp::create(b, merged.o, o).getResult() : o;
    if (!each.divisor)
      continue;
    Value divisor = arith::MulFOp::create(b, each.divisor, factor);
    merged.divisor =
        merged.divisor
            ? arith::AddFOp::create(b, merged.divisor, divisor).getResult()
            : divisor;
  }
  return merged;
}

RunningState AttentionEmitter::emitWithSinks(RunningState state) {
  return emitState(emitLogits({state.m, state.l, Value(), state.divisor}),
                   state.o);
}

RunningState AttentionEmitter::emitState(const FinalRows &rows, Value o) {
  RunningState state(rows.m, rows.l, o);
  state.divisor = rows.divisor;
  if (rows.factor)
    state.o = arith::MulFOp::create(
        b, o, BroadcastOp::create(b, o.getType(), rows.factor));
  return state;
}

Value AttentionEmitter::emitSelected(ImplicitLocOpBuilder &lb, Value key,
                                     Value scores, bool quads) {
  auto map =
      MapElementsOp::create(lb, scores.getType(), scores, row, key, quads);
  OpBuilder::InsertionGuard guard(b);
  Type i32 = b.getI32Type();
  Block *block = b.createBlock(&map.getBody(), {}, {b.getF32Type(), i32, i32},
                               SmallVector<Location>(3, b.getLoc()));
  Value isAbsent =
      source->emitIsAbsent(source->emitLead(block->getArgument(2)));
  Value excluded = arith::ConstantOp::create(
      b, b.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
  YieldOp::create(
      b, arith::SelectOp::create(b, isAbsent, excluded, block->getArgument(0))
             .getResult());
  return map.getResult();
}

LogicalResult AttentionEmitter::emitRegions(ImplicitLocOpBuilder &lb, Value key,
                                            Value &scores, bool quads,
                                            bool hides) {
  if (!facts.hasScoreMod() && !facts.hasMaskMod())
    return success();
  AttentionOp op = facts.op;
  auto map = MapElementsOp::create(lb, scores.getType(), scores, row, key,
                                   quads, hides);
  Type i32 = lb.getI32Type();
  OpBuilder::InsertionGuard guard(lb);
  Block *block = lb.createBlock(&map.getBody(), {}, {lb.getF32Type(), i32, i32},
                                SmallVector<Location>(3, b.getLoc()));
  Value score = block->getArgument(0);
  Value index = block->getArgument(2);
  auto [head, query] = emitHeadAndQuery(lb, block->getArgument(1));
  // Regions run for rows and keys beyond the end as well, whose results are
  // dropped: their reads must stay inside of what they would read.
  if (!facts.captures.empty()) {
    Value one = arith::ConstantIntOp::create(lb, 1, 32);
    query = arith::MinSIOp::create(lb, query,
                                   arith::SubIOp::create(lb, queries, one));
    index =
        arith::MinSIOp::create(lb, index, arith::SubIOp::create(lb, keys, one));
  }
  auto inlineRegion = [&](Region &region) {
    return context.inlineRegion(
        lb, region, ValueRange{score, at.batch, head, query, index});
  };
  if (facts.hasScoreMod() && !hides)
    score = inlineRegion(op.getScoreMod());
  if (!score)
    return failure();
  if (facts.hasMaskMod() && hides == facts.knowsFullKeys()) {
    Value keep = inlineRegion(op.getMaskMod());
    if (!keep)
      return failure();
    Value excluded = arith::ConstantOp::create(
        lb, lb.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
    score = arith::SelectOp::create(lb, keep, score, excluded);
  }
  YieldOp::create(lb, ValueRange{score});
  scores = map.getResult();
  return success();
}

LogicalResult AttentionEmitter::emitScores(OpBuilder &builder, Value key,
                                           Value &scores, bool quads) {
  ImplicitLocOpBuilder lb(b.getLoc(), builder);
  auto type = cast<RankedTensorType>(scores.getType());
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(
        lb, DenseElementsAttr::get(type, lb.getF32FloatAttr(value)));
  };
  auto scaleBy = [&](double factor) {
    if (factor != 1)
      scores = arith::MulFOp::create(lb, scores, constant(factor));
  };
  if (scoreDescale && hasNaturalScores())
    scores = arith::MulFOp::create(
        lb, scores, tensor::SplatOp::create(lb, scoreDescale, type));
  if (facts.softcap != 0) {
    scaleBy(facts.scale / facts.softcap);
    scores = math::TanhOp::create(lb, scores);
    scaleBy(facts.softcap);
  } else if (hasNaturalScores()) {
    scaleBy(facts.scale);
  } else if (facts.scale < 0) {
    // The running maximum is that of the raw products: it needs their sign.
    scaleBy(-1);
  }

  // Where some blocks need no mask, it stands apart from what changes scores.
  bool hides = facts.knowsFullKeys();
  if (facts.hasScoreMod() || !hides)
    if (failed(emitRegions(lb, key, scores, quads, /*hides=*/false)))
      return failure();
  if (hides)
    if (failed(emitRegions(lb, key, scores, quads, /*hides=*/true)))
      return failure();
  if (facts.selected)
    scores = emitSelected(lb, key, scores, quads);
  scores = ApplyMaskOp::create(
      lb, type, scores, row, key, keys, bounds.lower, bounds.upper, quads,
      group == 1 ? IntegerAttr() : lb.getI64IntegerAttr(group));
  return success();
}

Value AttentionEmitter::emitReciprocal(Value l, Value one) {
  RankedTensorType rows = f32Tile({blockM});
  Value zero = splat(rows, 0);
  // NaN is some.
  Value some = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, l, zero);
  Value divisor = arith::SelectOp::create(b, some, l, splat(rows, 1));
  return arith::DivFOp::create(b, one, divisor);
}

Value AttentionEmitter::emitInverse(Value l) {
  double factor = facts.getResultFactor();
  Value unit = valueDescale;
  if (unit && factor != 1)
    unit = arith::MulFOp::create(b, unit, context.f32(factor));
  if (!unit && factor == 1)
    return SoftmaxInverseOp::create(b, l);
  return emitReciprocal(l, unit ? splatRows(unit)
                                : splat(f32Tile({blockM}), factor));
}

Value AttentionEmitter::emitRowFactor(const FinalRows &rows) {
  Value inverse = emitInverse(rows.getDivisor());
  return rows.factor
             ? arith::MulFOp::create(b, inverse, rows.factor).getResult()
             : inverse;
}

SmallVector<Value> AttentionEmitter::emitRareRescale(ImplicitLocOpBuilder &b,
                                                     Value factor,
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

Value AttentionEmitter::emitQuotient(Value o, Value inverse, Value initWeight,
                                     bool rounds) {
  auto type = cast<RankedTensorType>(o.getType());
  Value quotient =
      arith::MulFOp::create(b, o, BroadcastOp::create(b, type, inverse));
  if (initWeight)
    quotient =
        arith::AddFOp::create(b, quotient, emitInitTerm(type, initWeight));
  if (facts.outType.isF32() || !rounds)
    return quotient;
  return arith::TruncFOp::create(b, type.clone(facts.outType), quotient);
}

void AttentionEmitter::emitLSE(Value m, Value l, Value view) {
  Value natural = SoftmaxLSEOp::create(b, m, l);
  GlobalStoreOp::create(b, natural, view, row);
}

void AttentionEmitter::emitResults(RunningState state, Value oView,
                                   Value lseView, Value scratch,
                                   EpilogueKind epilogue,
                                   const ResultMap &map) {
  Value divisor = state.getDivisor();
  Value weight = emitInitWeight(divisor);
  // The logits' branch must not part loads of other results from their uses.
  if (lseView && weight)
    emitLSE(state.m, state.l, lseView);
  Value o;
  if (facts.hasPartialScales())
    o = emitScaledRows(state.o, emitInverse(divisor), weight).front();
  else
    o = emitQuotient(state.o, emitInverse(divisor), weight,
                     /*rounds=*/!facts.oScales);
  if (lseView && !weight)
    emitLSE(state.m, state.l, lseView);
  if (facts.oScales && !facts.hasPartialScales())
    return emitScaledGroups(o, epilogue);
  StoreResultOp::create(b, o, oView, row, scratch, map.map, map.coordinates,
                        epilogue);
}
