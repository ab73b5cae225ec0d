//===- ExpandSoftmax.cpp - The online softmax as arithmetic ---------------===//
//
// With x = scale (which holds log2 e and is positive), one step of the exact
// policy becomes
//
//   m' = max(m, rowmax(s) * x - offset), at least the lowest finite number
//   p  = exp2(fma(s, x, -m'))
//   f  = exp2(m - m')
//   l' = fma(l, f, partial row sums of p)
//   o' = o * f
//
// The bound on m' stands for its test against -inf: a row without any key has
// s = -inf, and -inf plus a finite number is -inf, so that p = 0 as the op's
// formula wants, for the price of one instruction a row. m' is rounded once and
// carried: a maximum that stays gives f = 1 exactly, so that rounding does not
// pile up over thousands of blocks.
//
// The policy threshold computes rowmax(s) too, but changes m, and with it l and
// o, on a rare path only: when the maximum of some row of the warp has grown by
// more than `growth` powers of two since m was set. The policy optimistic does
// not even compute it: p is computed with the standing m, and a partial sum
// that does not stay below `limit` sends the warp to the exact step. The policy
// lagged computes p in the same way, but votes on the maximum, which nothing
// but the vote waits for. Sums of
// positive numbers bound each of them, and a NaN takes the rare path too. f16
// would allow 2^14: the limit of 2^4 is low for accuracy
// (docs/Rationale/Softmax.md).
//
// With `rescore` of attn.kv_loop a lost bet is corrected instead of computed
// anew, so that scores and probabilities have the same registers.
//
// Powers by a polynomial make a number of NaN where that costs less. So m' of
// rows with NaN or +inf among their scores is NaN, and with it all their other
// powers.
//
// Where l and o are the zeros that a loop starts from, exact and threshold have
// nothing to rescale: no factor, no vote.
//
// Where all uses of p are slices of its columns, each slice is computed where
// it stands, so that whoever waits for the first one need not wait for all;
// under lagged the first one is the bet, and the others know the new m. Masked
// scores may have chunks of columns that warps leave out (MaskedChunks.h).
//
// Without o, f is the result: 1 unless the step rescales. What rescales o where
// it is, an attn.rare on f, is done in the step's own rare path if it has one.
//
//===----------------------------------------------------------------------===//

#include "ExpandSoftmax.h"
#include "MaskedChunks.h"
#include "SoftmaxUses.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;

/// The largest probability that is corrected. 2^(m - m') is a normal number up
/// to here.
static constexpr float kMostCorrected = 0x1p100f;

/// True for the product that a wait returns.
static bool isAwaited(Value tile) {
  return static_cast<bool>(tile.getDefiningOp<ProductWaitOpInterface>());
}

namespace {

/// Emits the pieces of one step.
class SoftmaxStep {
public:
  SoftmaxStep(OpBuilder &builder, OnlineSoftmaxOp op)
      : builder(builder), loc(op.getLoc()), op(op), tile(typeOf(op.getS())),
        row(typeOf(op.getM())), partial(typeOf(op.getL())), o(op.getO()),
        rescale(findRescale(op)), slices(findSlices(op)),
        chunks(MaskedChunks::create(builder, op)) {}

  /// m' of the exact step, but for infinite ones.
  Value grownMaximum() { return grownMaximum(op.getS()); }

  Value grownMaximum(Value scores) {
    Value scaled =
        maximumOf(ReduceOp::create(builder, loc, row, maximumKind(), scores));
    Value maximum = larger(op.getM(), scaled);
    if (op.getFinite())
      return maximum;
    APFloat lowest =
        APFloat::getLargest(APFloat::IEEEsingle(), /*Negative=*/true);
    return larger(maximum, constant(row, lowest));
  }

  /// A maximum as it is kept: NaN in place of +inf where m passes NaN on.
  Value kept(Value maximum) {
    if (!passesNaN())
      return maximum;
    // inf * 0 is NaN.
    return math::FmaOp::create(builder, loc, maximum,
                               constant(row, APFloat(0.0f)), maximum);
  }

  /// True if m is to be NaN where a score is.
  bool passesNaN() {
    return op.getPolynomial() != 0 &&
           op.getPolicy() != SoftmaxPolicy::Optimistic;
  }

  ReduceKind maximumKind() {
    return passesNaN() ? ReduceKind::Maximum : ReduceKind::Max;
  }

  Value larger(Value a, Value b) {
    if (passesNaN())
      return arith::MaximumFOp::create(builder, loc, a, b);
    return arith::MaxNumFOp::create(builder, loc, a, b);
  }

  /// m of the largest scores.
  Value maximumOf(Value largest) {
    RankedTensorType type = typeOf(largest);
    Value scale = tensor::SplatOp::create(builder, loc, op.getScale(), type);
    if (op.getOffset().isZero())
      return arith::MulFOp::create(builder, loc, largest, scale);
    return math::FmaOp::create(builder, loc, largest, scale,
                               constant(type, -op.getOffset()));
  }

  Value probabilities(Value maximum) {
    return probabilities(0, tile.getShape()[1], maximum);
  }

  /// Of `columns` columns from `first` on.
  Value probabilities(int64_t first, int64_t columns, Value maximum) {
    if (chunks)
      return chunks->emitColumns(
          first, columns, [&](Value scores, int64_t column) {
            return probabilities(scores, maximum, column);
          });
    RankedTensorType type =
        tile.clone(ArrayRef<int64_t>{tile.getShape()[0], columns});
    Value scores = op.getS();
    if (type != tile)
      scores = SliceOp::create(builder, loc, type, scores, first);
    return probabilities(scores, maximum);
  }

  /// Of scores that are those from `column` on of what is computed together.
  Value probabilities(Value scores, Value maximum, int64_t column = 0) {
    RankedTensorType type = typeOf(scores);
    Value tileScale =
        tensor::SplatOp::create(builder, loc, op.getScale(), type);
    Value offset = arith::NegFOp::create(builder, loc, maximum);
    Value tileOffset = BroadcastOp::create(builder, loc, type, offset);
    Value exponent =
        math::FmaOp::create(builder, loc, scores, tileScale, tileOffset);
    // Where the standing maximum is used, what reaches 2^128 or is NaN is
    // computed anew: by lagged for its maximum, by optimistic for sums that
    // have to show it.
    bool bounded = op.getPolicy() != SoftmaxPolicy::Optimistic;
    uint64_t polynomial = op.getPolynomial();
    return Exp2Op::create(builder, loc, exponent, polynomial,
                          polynomial != 0 && bounded, op.getHalves(), column);
  }

  /// The factor from the standing maximum to another.
  Value factor(Value maximum) {
    return Exp2Op::create(
        builder, loc, arith::SubFOp::create(builder, loc, op.getM(), maximum));
  }

  Value partialSums(Value p) {
    return ReduceOp::create(builder, loc, partial, ReduceKind::Add, p,
                            /*partial=*/true);
  }

  /// The same where they join l; null if others add them up.
  Value joiningSums(Value p) {
    return op.getSumsElsewhere() ? Value() : partialSums(p);
  }

  /// `l` with partial sums of this block.
  Value withSums(Value l, Value sums) {
    return op.getSumsElsewhere()
               ? l
               : arith::AddFOp::create(builder, loc, l, sums).getResult();
  }

  bool hasSlices() const { return !slices.empty(); }

  /// The probabilities of one slice, as its users take them, and their sums.
  std::pair<Value, Value> sliceOf(SliceOp slice, Value maximum) {
    auto type = cast<RankedTensorType>(slice.getType());
    Value p = probabilities(slice.getColumn(), type.getShape()[1], maximum);
    if (type == p.getType())
      return {p, p};
    return {arith::TruncFOp::create(builder, loc, type, p), p};
  }

  /// Computes the slices but the first `done` where they stand; l with their
  /// sums, which nobody in the block waits for, at the end.
  Value emitSlices(unsigned done, Value maximum, Value l) {
    // The sums of a slice stand in front of the next one, behind what its own
    // probabilities are for.
    Value pending;
    auto add = [&] {
      if (pending)
        l = withSums(l, joiningSums(pending));
    };
    for (SliceOp slice : ArrayRef(slices).drop_front(done)) {
      builder.setInsertionPoint(slice);
      add();
      auto [p, wide] = sliceOf(slice, maximum);
      slice.getResult().replaceAllUsesWith(p);
      pending = wide;
    }
    builder.setInsertionPoint(op->getBlock()->getTerminator());
    for (Operation *user : op.getNewL().getUsers())
      if (Operation *inBlock = op->getBlock()->findAncestorOpInBlock(*user);
          inBlock && inBlock->isBeforeInBlock(&*builder.getInsertionPoint()))
        builder.setInsertionPoint(inBlock);
    add();
    for (SliceOp slice : slices)
      slice->erase();
    return l;
  }

  Value rescaledSums(Value factor, Value sums) {
    if (op.getSumsElsewhere())
      return op.getL();
    Value spread = BroadcastOp::create(builder, loc, partial, factor);
    if (!sums)
      return arith::MulFOp::create(builder, loc, op.getL(), spread);
    return math::FmaOp::create(builder, loc, op.getL(), spread, sums);
  }

  Value rescaledOutput(Value factor) {
    if (!o)
      return factor;
    Value spread = BroadcastOp::create(builder, loc, typeOf(o), factor);
    return arith::MulFOp::create(builder, loc, o, spread);
  }

  /// What rescales the accumulator elsewhere, on the step's own rare path.
  Value rescaledElsewhere(Value factor) {
    if (!rescale)
      return rescaledOutput(factor);
    IRMapping mapping;
    mapping.map(op.getFactor(), factor);
    for (Operation &nested : rescale.getBody().front().without_terminator())
      builder.clone(nested, mapping);
    return factor;
  }

  /// Erases what the step's own rare path does, or what a step that rescales
  /// nothing does not need.
  void eraseRescale() {
    if (!rescale)
      return;
    Operation *compare = rescale.getCondition().getDefiningOp();
    rescale->erase();
    compare->erase();
  }

  /// The last result of a step that rescales nothing.
  Value unchangedOutput() { return o ? o : constant(row, APFloat(1.0f)); }

  /// All of the exact step: p, m', l', o'.
  SmallVector<Value, 4> exact() {
    Value maximum = kept(grownMaximum());
    Value p = probabilities(maximum);
    Value change = factor(maximum);
    Value l = rescaledSums(change, joiningSums(p));
    return {p, maximum, l, rescaledElsewhere(change)};
  }

  /// The same outside of a rare path. What rescales the accumulator elsewhere
  /// has a vote of its own: most factors are 1.
  SmallVector<Value, 4> exactInLine() {
    rescale = {};
    if (!hasSlices())
      return exact();
    Value maximum = kept(grownMaximum()), change = factor(maximum);
    Value l = emitSlices(0, maximum, rescaledSums(change, Value()));
    return {Value(), maximum, l, change};
  }

  /// True before the first block: no sum, no output yet. Sums that are added up
  /// elsewhere do not tell: no maximum does.
  bool isFirst() {
    auto isSplat = [](Value value, function_ref<bool(const APFloat &)> test) {
      DenseFPElementsAttr constant;
      return matchPattern(value, m_Constant(&constant)) && constant.isSplat() &&
             test(constant.getSplatValue<APFloat>());
    };
    auto isZero = [](const APFloat &value) { return value.isPosZero(); };
    auto isNone = [](const APFloat &value) {
      return value.isInfinity() && value.isNegative();
    };
    bool hasNone = op.getSumsElsewhere() ? isSplat(op.getM(), isNone)
                                         : isSplat(op.getL(), isZero);
    return hasNone && (!o || isSplat(o, isZero));
  }

  /// The exact step where nothing is there to rescale.
  SmallVector<Value, 4> first() {
    Value maximum = kept(grownMaximum());
    Value p = probabilities(maximum);
    Value l = op.getSumsElsewhere() ? op.getL() : partialSums(p);
    return {p, maximum, l, unchangedOutput()};
  }

  SmallVector<Value, 4> threshold() {
    Value maximum = grownMaximum();
    ValueRange state = rare(
        hasGrown(maximum, op.getM()), {op.getM(), op.getL(), unchangedOutput()},
        /*eachWarpgroup=*/false, [&]() {
          Value grown = kept(maximum), change = factor(grown);
          return SmallVector<Value, 4>{grown, rescaledSums(change, Value()),
                                       rescaledElsewhere(change)};
        });
    if (hasSlices())
      return {Value(), state[0], emitSlices(0, state[0], state[1]), state[2]};
    Value p = probabilities(state[0]);
    Value l = withSums(state[1], joiningSums(p));
    return {p, state[0], l, state[2]};
  }

  /// The same where the accumulator is awaited: it is touched behind the
  /// exponentials, which run under the product that makes it. Each thread looks
  /// at its own part of a row, so that what the threads exchange is needed on
  /// the rare path only. With mma.sync that took ptxas 13.0 16 bytes of spills.
  SmallVector<Value, 4> thresholdAwaited() {
    Value largest = ReduceOp::create(builder, loc, partial, maximumKind(),
                                     op.getS(), /*partial=*/true);
    Value grown =
        hasGrown(maximumOf(largest),
                 BroadcastOp::create(builder, loc, partial, op.getM()));
    Value maximum = rare(grown, {op.getM()}, /*eachWarpgroup=*/false, [&]() {
                      return SmallVector<Value, 4>{kept(grownMaximum(largest))};
                    }).front();
    Value p = probabilities(maximum);
    Value sums = joiningSums(p);
    ValueRange sumsAndOutput =
        rare(grown, {op.getL(), o}, /*eachWarpgroup=*/false, [&]() {
          Value change = factor(maximum);
          return SmallVector<Value, 4>{rescaledSums(change, Value()),
                                       rescaledOutput(change)};
        });
    Value l = withSums(sumsAndOutput[0], sums);
    return {p, maximum, l, sumsAndOutput[1]};
  }

  /// With `wait`, the accumulator stays in flight unless the rare path waits.
  SmallVector<Value, 4> optimistic(ProductWaitOpInterface wait) {
    Value p = probabilities(op.getM());
    Value sums = partialSums(p);
    Value large = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UGE,
                                        sums, constant(partial, op.getLimit()));
    Value l = withSums(op.getL(), sums);
    Operation *narrowing = findNarrowing(wait);
    Value output = wait ? wait.getAwaited()[0] : unchangedOutput();
    ValueRange results = rare(
        large, {narrowed(p, narrowing), op.getM(), l, output}, wait, [&]() {
          if (wait)
            o = builder.clone(*wait)->getResult(0);
          SmallVector<Value, 4> step = exact();
          step[0] = narrowed(step[0], narrowing);
          if (wait)
            step[3] = wait.resume(builder, loc, step[3]);
          return step;
        });
    return SmallVector<Value, 4>(results);
  }

  /// The bet on the maximum, which nothing but the vote waits for.
  SmallVector<Value, 4> lagged() {
    Value p = probabilities(op.getM());
    Value sums = joiningSums(p);
    Value largest = ReduceOp::create(builder, loc, partial, maximumKind(),
                                     op.getS(), /*partial=*/true);
    Value grown =
        hasGrown(maximumOf(largest),
                 BroadcastOp::create(builder, loc, partial, op.getM()));
    Value l = withSums(op.getL(), sums);
    Operation *narrowing = findNarrowing(/*behind=*/false);
    return SmallVector<Value, 4>(
        rare(grown, {narrowed(p, narrowing), op.getM(), l, unchangedOutput()},
             /*eachWarpgroup=*/false, [&]() {
               SmallVector<Value, 4> step = exact();
               step[0] = narrowed(step[0], narrowing);
               return step;
             }));
  }

  /// The same for the first of several slices: the others are computed behind
  /// the vote, with the maximum that it leaves.
  SmallVector<Value, 4> laggedSlices() {
    SliceOp first = slices.front();
    auto [p, wide] = sliceOf(first, op.getM());
    Value l = withSums(op.getL(), joiningSums(wide));
    Value largest = ReduceOp::create(builder, loc, partial, maximumKind(),
                                     op.getS(), /*partial=*/true);
    Value grown =
        hasGrown(maximumOf(largest),
                 BroadcastOp::create(builder, loc, partial, op.getM()));
    ValueRange state =
        rare(grown, {p, op.getM(), l, unchangedOutput()},
             /*eachWarpgroup=*/false, [&]() {
               Value maximum = kept(grownMaximum()), change = factor(maximum);
               auto [p, wide] = sliceOf(first, maximum);
               return SmallVector<Value, 4>{
                   p, maximum, rescaledSums(change, joiningSums(wide)),
                   rescaledElsewhere(change)};
             });
    first.getResult().replaceAllUsesWith(state[0]);
    return {Value(), state[1], emitSlices(1, state[1], state[2]), state[3]};
  }

  /// The bet where scores do not outlive the probabilities. If it is lost, m'
  /// follows from the largest probability, and what was computed with m is
  /// corrected by 2^(m - m'); from 2^128 on it is infinite, so that scores are
  /// needed again.
  SmallVector<Value, 4> correcting(ProductOpInterface product) {
    Value p = probabilities(op.getM());
    Value sums = partialSums(p);
    Value large = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UGE,
                                        sums, constant(partial, op.getLimit()));
    Value l = withSums(op.getL(), sums);
    Operation *narrowing = findNarrowing(/*behind=*/false);
    return SmallVector<Value, 4>(rare(
        large, {narrowed(p, narrowing), op.getM(), l, o},
        /*eachWarpgroup=*/false,
        [&]() {
          Value most = ReduceOp::create(builder, loc, row, ReduceKind::Max, p);
          Value log = math::Log2Op::create(builder, loc, most);
          Value grown = arith::MaxNumFOp::create(
              builder, loc, op.getM(),
              arith::AddFOp::create(builder, loc, op.getM(), log));
          Value change = factor(grown);
          Value corrected = arith::MulFOp::create(
              builder, loc, p, BroadcastOp::create(builder, loc, tile, change));
          Value huge = arith::CmpFOp::create(
              builder, loc, arith::CmpFPredicate::UGE, most,
              constant(row, APFloat(kMostCorrected)));
          ValueRange step = rare(huge, {corrected, grown},
                                 /*eachWarpgroup=*/false, [&]() {
                                   Value scores =
                                       product.repeatInWarp(builder, loc, tile);
                                   Value maximum = grownMaximum(scores);
                                   return SmallVector<Value, 4>{
                                       probabilities(scores, maximum), maximum};
                                 });
          change = factor(step[1]);
          Value l = rescaledSums(change, joiningSums(step[0]));
          return SmallVector<Value, 4>{narrowed(step[0], narrowing), step[1], l,
                                       rescaledOutput(change)};
        },
        /*leavesLoop=*/true));
  }

  /// The op that all uses of p are, if it makes p narrower; null if there is
  /// none. Scores and probabilities are both live at the vote of `optimistic`,
  /// where narrow ones take half of the registers, or a quarter. 16-bit ones
  /// not where the accumulator is in flight up to the vote and awaited there:
  /// the product that makes it still reads the last block's probabilities,
  /// whose registers the narrow ones are to take. 8-bit ones can have other
  /// registers.
  Operation *findNarrowing(bool behind) {
    bool awaited = !behind && o && isAwaited(o);
    Operation *narrowing = nullptr;
    for (Operation *user : op.getP().getUsers()) {
      if (!isa<arith::TruncFOp, NarrowOperandOp>(user) ||
          (awaited && !isa<NarrowOperandOp>(user)) ||
          (narrowing &&
           (narrowing->getName() != user->getName() ||
            narrowing->getAttrDictionary() != user->getAttrDictionary() ||
            narrowing->getResultTypes() != user->getResultTypes())))
        return nullptr;
      narrowing = user;
    }
    return narrowing;
  }

private:
  Value narrowed(Value p, Operation *narrowing) {
    if (!narrowing)
      return p;
    IRMapping mapping;
    mapping.map(narrowing->getOperand(0), p);
    return builder.clone(*narrowing, mapping)->getResult(0);
  }

  /// Unordered: a first maximum has grown from -inf, and -inf from -inf.
  Value hasGrown(Value maximum, Value standing) {
    Value growth = arith::SubFOp::create(builder, loc, maximum, standing);
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UGT,
                                 growth,
                                 constant(typeOf(growth), op.getGrowth()));
  }

  static RankedTensorType typeOf(Value value) {
    return cast<RankedTensorType>(value.getType());
  }

  Value constant(RankedTensorType type, APFloat value) {
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(type, value));
  }

  ValueRange rare(Value condition, ValueRange defaults, bool eachWarpgroup,
                  function_ref<SmallVector<Value, 4>()> emit,
                  bool leavesLoop = false) {
    auto path =
        RareOp::create(builder, loc, defaults.getTypes(), condition, defaults,
                       eachWarpgroup, /*barrier=*/IntegerAttr(), leavesLoop);
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&path.getBody());
    SmallVector<Value, 4> results = emit();
    YieldOp::create(builder, loc, results);
    return path.getResults();
  }

  OpBuilder &builder;
  Location loc;
  OnlineSoftmaxOp op;
  RankedTensorType tile, row, partial;
  /// The accumulator to rescale; null if it is elsewhere.
  Value o;
  /// The path that rescales it there; null if there is none.
  RareOp rescale;
  /// The slices that are computed one by one; none if p is computed as a whole.
  SmallVector<SliceOp> slices;
  /// The columns of masked scores that warps may leave out.
  std::optional<MaskedChunks> chunks;
};

} // namespace

/// True if `op` can be expanded with scores that do not outlive p: they are a
/// product that a warp can compute anew.
static bool canMultiplyAgain(OnlineSoftmaxOp op, ProductOpInterface product) {
  auto wait = op.getS().getDefiningOp<ProductWaitOpInterface>();
  return product && wait && wait.getAwaited()[0] == product.getProduct() &&
         op.getPolicy() == SoftmaxPolicy::Optimistic &&
         product.canRepeatInWarp();
}

LogicalResult attn::expandOnlineSoftmax(OnlineSoftmaxOp op, bool inFlight,
                                        ProductOpInterface product) {
  ProductWaitOpInterface wait;
  if (inFlight)
    wait = op.getO().getDefiningOp<ProductWaitOpInterface>();
  OpBuilder builder(op);
  SoftmaxStep step(builder, op);
  SmallVector<Value, 4> results;
  switch (op.getPolicy()) {
  case SoftmaxPolicy::Exact:
    results = step.isFirst() ? step.first() : step.exactInLine();
    break;
  case SoftmaxPolicy::Threshold:
    if (step.isFirst())
      results = step.first();
    else if (op.getO() && isAwaited(op.getO()))
      results = step.thresholdAwaited();
    else
      results = step.threshold();
    break;
  case SoftmaxPolicy::Optimistic:
    results = canMultiplyAgain(op, product) ? step.correcting(product)
                                            : step.optimistic(wait);
    break;
  case SoftmaxPolicy::Lagged:
    if (step.isFirst())
      results = step.first();
    else
      results = step.hasSlices() ? step.laggedSlices() : step.lagged();
    break;
  }
  step.eraseRescale();
  bool narrow = results[0] && results[0].getType() != op.getP().getType();
  for (Operation *user : llvm::make_early_inc_range(op.getP().getUsers()))
    if (narrow) {
      user->replaceAllUsesWith(ValueRange{results[0]});
      user->erase();
    }
  // A narrowing whose slices are computed one by one has no use left.
  if (!results[0])
    for (Operation *user : llvm::make_early_inc_range(op.getP().getUsers()))
      user->erase();
  for (auto [result, value] : llvm::zip(op.getResults(), results))
    if (!result.use_empty())
      result.replaceAllUsesWith(value);
  op.erase();
  if (wait)
    wait->erase();
  return success();
}
