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
  return cost;
}

AttentionEmitter::AttentionEmitter(KernelContext &context, int64_t blockM)
    : context(context), facts(context.facts), blockM(blockM), b(context.b) {}

bool AttentionEmitter::hasNaturalScores() const {
  return facts.softcap != 0 || needsIndices();
}

Value AttentionEmitter::emitDescale(StringRef name, Value head) {
  Value offset = arith::MulIOp::create(b, context.widen(at.batch),
                                       context.getStride(name, 0));
  Value inner =
      arith::MulIOp::create(b, context.widen(head), context.getStride(name, 1));
  return context.loadElement(name, arith::AddIOp::create(b, offset, inner));
}

void AttentionEmitter::emitScoreDescale() {
  if (facts.qDescale)
    scoreDescale = arith::MulFOp::create(b, emitDescale("q_descale", at.head),
                                         emitDescale("k_descale", at.kvHead));
}

void AttentionEmitter::emitValueDescale() {
  if (facts.vDescale)
    valueDescale = emitDescale("v_descale", at.kvHead);
}

Value AttentionEmitter::emitExponentScale() {
  if (hasNaturalScores())
    return context.f32(llvm::numbers::log2e);
  Value scale = context.f32(std::abs(facts.scale) * llvm::numbers::log2e);
  if (!scoreDescale)
    return scale;
  return arith::MulFOp::create(b, scoreDescale, scale);
}

Value AttentionEmitter::emitKVHead(Value head) {
  if (facts.heads == facts.kvHeads && !ShapedType::isDynamic(facts.heads))
    return head;
  if (facts.kvHeads == 1)
    return context.i32(0);
  bool isDynamic = ShapedType::isDynamic(facts.heads) ||
                   ShapedType::isDynamic(facts.kvHeads);
  Value group = isDynamic ? arith::DivUIOp::create(b, context.getHeads(),
                                                   context.getKVHeads())
                                .getResult()
                          : context.i32(facts.heads / facts.kvHeads);
  return arith::DivUIOp::create(b, head, group);
}

void AttentionEmitter::emitLengths() {
  if (!facts.varlen) {
    queries = context.getQueries();
    keys = context.getKeys();
    return;
  }
  Value index = context.widen(at.batch);
  Value next = arith::AddIOp::create(b, index, context.i64(1));
  auto length = [&](StringRef name, Value &start) -> Value {
    Value first = context.loadElement(name, index);
    Value last = context.loadElement(name, next);
    start = context.widen(first);
    return arith::SubIOp::create(b, last, first);
  };
  queries = length("cu_seqlens_q", queryStart);
  keys = length("cu_seqlens_k", keyStart);
}

void AttentionEmitter::emitRun() {
  if (!at.split)
    return;
  auto min = [&](Value x, Value y) -> Value {
    return arith::MinSIOp::create(b, x, y);
  };
  auto clamp = [&](Value x) -> Value {
    return min(arith::MaxSIOp::create(b, x, bounds.begin), bounds.end);
  };
  Value blocks = arith::SubIOp::create(b, bounds.end, bounds.begin);
  Value length = arith::DivUIOp::create(
      b, arith::AddIOp::create(b, blocks, context.i32(facts.kvSplits - 1)),
      context.i32(facts.kvSplits));
  Value first = arith::AddIOp::create(
      b, bounds.begin, arith::MulIOp::create(b, at.split, length));
  Value end = bounds.end;
  bounds.begin = min(first, end);
  bounds.end = min(arith::AddIOp::create(b, bounds.begin, length), end);
  bounds.fullBegin = clamp(bounds.fullBegin);
  bounds.fullEnd = clamp(bounds.fullEnd);
}

Value AttentionEmitter::emitView(StringRef name, Value head, Value start,
                                 Value rows) {
  // Offsets may exceed 2^31 elements: 64 bits here, 32 inside of a tile.
  auto mul = [&](Value x, Value y) -> Value {
    return arith::MulIOp::create(b, x, y);
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  const TensorFacts &tensor = context.getTensor(name);
  // Partial results have their run in front.
  unsigned lead = facts.kvSplits && tensor.written ? 1 : 0;
  Value rowStride = context.getStride(name, lead + 2);
  Value offset = mul(context.widen(head), context.getStride(name, lead + 1));
  offset = add(offset, start ? mul(start, rowStride)
                             : mul(context.widen(at.batch),
                                   context.getStride(name, lead)));
  if (lead && at.split)
    offset =
        add(offset, mul(context.widen(at.split), context.getStride(name, 0)));
  SmallVector<int64_t> shape = {ShapedType::kDynamic};
  IntegerAttr alignment;
  if (tensor.shape.size() == lead + 4) {
    shape.push_back(tensor.shape.back());
    alignment = b.getI64IntegerAttr(tensor.getRowAlignment());
  }
  return GlobalViewOp::create(
      b, GlobalType::get(b.getContext(), shape, tensor.elementType),
      context.getPointer(name), offset, rows, rowStride, alignment);
}

bool AttentionEmitter::needsIndices() const {
  return facts.hasScoreMod() || facts.hasMaskMod();
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
                                         block->getArgument(1), queries);
    Value value = arith::SelectOp::create(
        b, exists, block->getArgument(0),
        arith::ConstantOp::create(b, b.getF32FloatAttr(kAbsentMaximum)));
    YieldOp::create(b, ValueRange{value});
  }
  Value least =
      ReduceOp::create(b, f32Tile({blockM}), ReduceKind::Max, map.getResult());
  return arith::MaxNumFOp::create(b, m, least);
}

RunningState AttentionEmitter::emitInitialState(bool bets) {
  Value m = splat(f32Tile({blockM}), -std::numeric_limits<double>::infinity());
  bool whole = !facts.varlen && !ShapedType::isDynamic(facts.queries) &&
               facts.queries % blockM == 0;
  if (bets && !whole)
    m = emitAbsentRows(m);
  return {m, splat(getPartialSumsType(b.getContext(), blockM), 0),
          splat(f32Tile({blockM, facts.valueDim}), 0)};
}

RunningState AttentionEmitter::emitFinalState(RunningState carried) {
  RankedTensorType rows = f32Tile({blockM});
  RunningState state = carried;
  state.l = ReduceOp::create(b, rows, ReduceKind::Add, carried.l,
                             /*partial=*/UnitAttr());
  return facts.sinks ? emitSinks(state) : state;
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
  } else if (needsIndices()) {
    scaleBy(facts.scale);
  } else if (facts.scale < 0) {
    // The running maximum is that of the raw products: it needs their sign.
    scaleBy(-1);
  }

  if (needsIndices()) {
    AttentionOp op = facts.op;
    auto map = MapElementsOp::create(lb, type, scores, row, key, quads);
    Type i32 = lb.getI32Type();
    OpBuilder::InsertionGuard guard(lb);
    Block *block =
        lb.createBlock(&map.getBody(), {}, {lb.getF32Type(), i32, i32},
                       SmallVector<Location>(3, b.getLoc()));
    Value score = block->getArgument(0);
    Value query = block->getArgument(1), index = block->getArgument(2);
    // Regions run for rows and keys beyond the end as well, whose results are
    // dropped: their reads must stay inside of what they would read.
    if (!facts.captures.empty()) {
      Value one = arith::ConstantIntOp::create(lb, 1, 32);
      query = arith::MinSIOp::create(lb, query,
                                     arith::SubIOp::create(lb, queries, one));
      index = arith::MinSIOp::create(lb, index,
                                     arith::SubIOp::create(lb, keys, one));
    }
    auto inlineRegion = [&](Region &region) {
      return context.inlineRegion(
          lb, region, ValueRange{score, at.batch, at.head, query, index});
    };
    if (facts.hasScoreMod())
      score = inlineRegion(op.getScoreMod());
    if (!score)
      return failure();
    if (facts.hasMaskMod()) {
      Value keep = inlineRegion(op.getMaskMod());
      if (!keep)
        return failure();
      Value excluded = arith::ConstantOp::create(
          lb, lb.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
      score = arith::SelectOp::create(lb, keep, score, excluded);
    }
    YieldOp::create(lb, ValueRange{score});
    scores = map.getResult();
  }
  scores = ApplyMaskOp::create(lb, type, scores, row, key, keys, bounds.lower,
                               bounds.upper, quads);
  return success();
}

/// One more logit for each row, which has no value.
RunningState AttentionEmitter::emitSinks(RunningState state) {
  // All in exponents of two.
  Value sink = context.loadElement("sinks", context.widen(at.head));
  // They count in run 0 only.
  if (at.split) {
    Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, at.split,
                                          context.i32(0));
    sink = arith::SelectOp::create(
        b, isFirst, sink,
        context.f32(-std::numeric_limits<double>::infinity()));
  }
  sink = splatRows(
      arith::MulFOp::create(b, sink, context.f32(llvm::numbers::log2e))
          .getResult());
  RankedTensorType rows = f32Tile({blockM});
  Value m = arith::MaximumFOp::create(b, state.m, sink);
  // A row without keys and with a sink of -inf has nothing to subtract.
  Value infinity = splat(rows, -std::numeric_limits<double>::infinity());
  Value empty =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, m, infinity);
  Value shift = arith::SelectOp::create(b, empty, splat(rows, 0), m);
  auto power = [&](Value x) -> Value {
    return Exp2Op::create(b, rows, arith::SubFOp::create(b, x, shift));
  };
  Value factor = power(state.m);
  // A sink of +inf takes all: it is 1, and inf - inf is not 0.
  Value takesAll = arith::CmpFOp::create(
      b, arith::CmpFPredicate::OEQ, sink,
      splat(rows, std::numeric_limits<double>::infinity()));
  Value share =
      arith::SelectOp::create(b, takesAll, splat(rows, 1), power(sink));
  Value l = arith::AddFOp::create(b, arith::MulFOp::create(b, state.l, factor),
                                  share);
  Value spread = BroadcastOp::create(b, state.o.getType(), factor);
  Value o = arith::MulFOp::create(b, state.o, spread);
  return {m, l, o};
}

void AttentionEmitter::emitResults(RunningState state, Value oView,
                                   Value lseView, Value scratch,
                                   EpilogueKind epilogue,
                                   const ResultMap &map) {
  RankedTensorType rows = f32Tile({blockM});
  Value zero = splat(rows, 0);
  Value some =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, state.l, zero);
  Value divisor = arith::SelectOp::create(b, some, state.l, splat(rows, 1));
  Value one = valueDescale ? splatRows(valueDescale) : splat(rows, 1);
  Value inverse = arith::DivFOp::create(b, one, divisor);
  Value o = arith::MulFOp::create(
      b, state.o, BroadcastOp::create(b, state.o.getType(), inverse));
  if (!facts.outType.isF32())
    o = arith::TruncFOp::create(
        b, tileType({blockM, facts.valueDim}, facts.outType), o);
  if (lseView) {
    // log2 0 = -inf, so a row without keys gets -inf.
    Value log =
        arith::AddFOp::create(b, state.m, math::Log2Op::create(b, state.l));
    Value natural =
        arith::MulFOp::create(b, log, splat(rows, llvm::numbers::ln2));
    GlobalStoreOp::create(b, natural, lseView, row);
  }
  StoreResultOp::create(b, o, oView, row, scratch, map.map, map.coordinates,
                        epilogue);
}
