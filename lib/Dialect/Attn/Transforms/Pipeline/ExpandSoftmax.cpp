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
// but the vote waits for. Sums of positive numbers bound each of them, and a
// NaN takes the rare path too. f16 would allow 2^14: the limit of 2^4 is low
// for accuracy (docs/Rationale/Softmax.md).
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
// under lagged the first one is the bet, and the others know the new m. Under
// optimistic, whose vote stands behind what stores all of them, the rare path
// stores them once more.
//
// With `whole` each new m' is rounded up, so that f is a power of two and p has
// the digits that it has with any other whole maximum
// (docs/Rationale/Softmax.md). The largest exponents of parts of
// rows are followed beside the policy then.
//
// With `keys` threshold looks at more than growth: a new largest power that
// decides its row becomes a power of two, which 8 bits do not round, and one
// that does not decide it leaves m. The rare path takes all rows of a warp, and
// so makes the largest power of each such row one again
// (docs/Rationale/NarrowTypes.md).
//
// With `largest` of rows a row's m stays unless its own largest exponent has
// grown, also where the warp takes the rare path for another row: so it was m
// that the largest probability was computed with
// (docs/Rationale/Softmax.md).
//
// Without o, f is the result: 1 unless the step rescales. What rescales o where
// it is, an attn.rare on f, is done in the step's own rare path if it has one.
//
//===----------------------------------------------------------------------===//

#include "ExpandSoftmax.h"
#include "SoftmaxStep.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

/// The largest probability that is corrected. 2^(m - m') is a normal number up
/// to here.
static constexpr float kMostCorrected = 0x1p100f;

namespace {

/// The step of each policy.
class PolicyStep : public SoftmaxStep {
public:
  using SoftmaxStep::SoftmaxStep;

  /// `results` and the new largest exponent, if that is one.
  SmallVector<Value, 4> withLargest(SmallVector<Value, 4> results,
                                    Value largest) {
    if (op.getRowLargest())
      results.push_back(largest);
    return results;
  }

  /// The new largest exponents of parts of rows, if the step has these.
  Value largestOfParts() {
    if (!op.getLargest() || op.getRowLargest())
      return {};
    Value own = ReduceOp::create(builder, loc, partial, maximumKind(),
                                 op.getS(), /*partial=*/true);
    return larger(op.getLargest(), maximumOf(own));
  }

  /// All of the exact step: p, m', l', o'.
  SmallVector<Value, 4> exact() { return exact(kept(grownMaximum())); }

  SmallVector<Value, 4> exact(Value maximum) {
    Value p = probabilities(maximum);
    Value change = factor(maximum);
    Value l = rescaledSums(change, partialSums(p));
    return {p, maximum, l, rescaledElsewhere(change)};
  }

  /// The same outside of a rare path. What rescales the accumulator elsewhere
  /// has a vote of its own: most factors are 1.
  SmallVector<Value, 4> exactInLine() {
    rescale = {};
    Value maximum = kept(grownMaximum());
    if (!hasSlices())
      return withLargest(exact(maximum), maximum);
    Value change = factor(maximum);
    Value l = emitSlices(0, maximum, rescaledSums(change, Value()));
    return withLargest({Value(), maximum, l, change}, maximum);
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
    return isSplat(op.getL(), isZero) && (!o || isSplat(o, isZero));
  }

  /// The exact step where nothing is there to rescale.
  SmallVector<Value, 4> first() {
    Value maximum = kept(grownMaximum());
    Value p = probabilities(maximum);
    Value l = partialSums(p);
    return withLargest({p, maximum, l, unchangedOutput()}, maximum);
  }

  /// Tells if a row's largest power, with the standing maximum, outweighs those
  /// added up so far: its square is above l^2 / keys, which is at most the sum
  /// of their squares. Rows without a maximum are decided.
  Value decides(Value maximum) {
    auto product = [&](Value a, Value b) -> Value {
      return arith::MulFOp::create(builder, loc, a, b);
    };
    Value power = Exp2Op::create(
        builder, loc, arith::SubFOp::create(builder, loc, maximum, op.getM()));
    // p is 2^offset times as large where m is at the maximum.
    APFloat unit(std::exp2(op.getOffset().convertToFloat()));
    power = product(power, constant(row, unit));
    Value keys = tensor::SplatOp::create(builder, loc, op.getKeys(), row);
    Value sums =
        ReduceOp::create(builder, loc, row, ReduceKind::Add, op.getL());
    Value square = product(product(power, power), keys);
    Value bound = product(sums, sums);
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UGT,
                                 square, bound);
  }

  /// Tells if a row's maximum has to change: it has grown too far, or is new
  /// and decides the row.
  Value hasToChange(Value maximum, Value decided) {
    Value isNew = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT,
                                        maximum, op.getRowLargest());
    Value decides = arith::AndIOp::create(builder, loc, isNew, decided);
    Value grown = hasGrown(maximum, op.getM());
    return arith::OrIOp::create(builder, loc, grown, decides);
  }

  /// m' on the rare path of rows of which a key has `decided` some.
  Value changedOrSlack(Value decided, Value maximum) {
    Value changed = kept(maximum);
    if (op.getSlack().isZero())
      return changed;
    Value higher = arith::AddFOp::create(builder, loc, changed,
                                         constant(row, op.getSlack()));
    return arith::SelectOp::create(builder, loc, decided, changed, higher);
  }

  /// m' on a rare path that rows take which have `grown` to `maximum`.
  Value changedMaximum(Value grown, Value maximum) {
    Value changed = kept(maximum);
    if (!op.getRowLargest())
      return changed;
    return arith::SelectOp::create(builder, loc, grown, changed, op.getM());
  }

  SmallVector<Value, 4> threshold() {
    Value maximum = grownMaximum();
    Value decided = op.getKeys() ? decides(maximum) : Value();
    Value grown =
        decided ? hasToChange(maximum, decided) : hasGrown(maximum, op.getM());
    ValueRange state = rare(
        grown, {op.getM(), op.getL(), unchangedOutput()},
        /*eachWarpgroup=*/false, [&]() {
          Value changed = decided ? changedOrSlack(decided, maximum)
                                  : changedMaximum(grown, maximum);
          Value change = factor(changed);
          return SmallVector<Value, 4>{changed, rescaledSums(change, Value()),
                                       rescaledElsewhere(change)};
        });
    if (hasSlices())
      return withLargest(
          {Value(), state[0], emitSlices(0, state[0], state[1]), state[2]},
          maximum);
    Value p = probabilities(state[0]);
    Value l = withSums(state[1], partialSums(p));
    return withLargest({p, state[0], l, state[2]}, maximum);
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
    Value sums = partialSums(p);
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

  /// The exponents of a slice with `maximum`.
  Value exponentsOf(SliceOp slice, Value maximum) {
    auto type = RankedTensorType::get(
        slice.getType().getShape(), tile.getElementType(), tile.getEncoding());
    Value scores =
        SliceOp::create(builder, loc, type, op.getS(), slice.getColumnAttr());
    Value scale = tensor::SplatOp::create(builder, loc, op.getScale(), type);
    Value offset = BroadcastOp::create(
        builder, loc, type, arith::NegFOp::create(builder, loc, maximum));
    return math::FmaOp::create(builder, loc, scores, scale, offset);
  }

  /// Probabilities, as the users of `slice` take them, and as they are added
  /// up.
  std::pair<Value, Value> powersOf(SliceOp slice, Value exponents) {
    Value p = Exp2Op::create(builder, loc, exponents, op.getPolynomial(),
                             /*bounded=*/false);
    Type type = slice.getType();
    if (p.getType() == type)
      return {p, p};
    return {arith::TruncFOp::create(builder, loc, type, p), p};
  }

  /// The bet on whole rows, slice by slice. Exponents take the registers of
  /// the scores, and a lost bet starts from them. Rows that have no maximum yet
  /// bet on 0, and lose. Paths that rescale the accumulator elsewhere take the
  /// vote to where they stand.
  SmallVector<Value, 4> optimisticSlices() {
    APFloat lowest =
        APFloat::getLargest(APFloat::IEEEsingle(), /*Negative=*/true);
    Value none = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLE,
                                       op.getM(), constant(row, lowest));
    Value standing = arith::SelectOp::create(
        builder, loc, none, constant(row, APFloat(0.0f)), op.getM());
    SmallVector<Value> exponents;
    Value sums, pending;
    auto add = [&] {
      Value more = partialSums(pending);
      sums = sums ? arith::AddFOp::create(builder, loc, sums, more).getResult()
                  : more;
    };
    SmallVector<std::pair<SliceOp, Operation *>> stores;
    for (SliceOp slice : slices) {
      builder.setInsertionPoint(slice);
      exponents.push_back(exponentsOf(slice, standing));
      auto [p, wide] = powersOf(slice, exponents.back());
      // Behind the next ones' exponentials nobody waits for sums.
      if (pending)
        add();
      pending = wide;
      for (Operation *user : slice->getUsers())
        stores.push_back({slice, user});
      slice.getResult().replaceAllUsesWith(p);
    }
    builder.setInsertionPoint(rescale);
    add();
    Value large = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UGE,
                                        sums, constant(partial, op.getLimit()));
    large = arith::OrIOp::create(
        builder, loc, large,
        BroadcastOp::create(builder, loc, large.getType(), none));
    SmallVector<Value, 4> defaults = {standing, withSums(op.getL(), sums),
                                      unchangedOutput()};
    ValueRange rows = rare(large, defaults, /*eachWarpgroup=*/false, [&]() {
      return corrected(exponents, stores, none, standing);
    });
    for (SliceOp slice : slices)
      slice->erase();
    return {Value(), rows[0], rows[1], rows[2]};
  }

  /// Stores the probabilities of slices whose exponents are off by what the
  /// maximum has grown; the new state.
  SmallVector<Value, 4>
  corrected(ArrayRef<Value> exponents,
            ArrayRef<std::pair<SliceOp, Operation *>> stores, Value none,
            Value standing) {
    Value most;
    for (Value each : exponents) {
      Value largest = ReduceOp::create(builder, loc, row, maximumKind(), each);
      most = most ? larger(most, largest) : largest;
    }
    Value least = arith::SelectOp::create(
        builder, loc, none,
        constant(row, APFloat::getLargest(APFloat::IEEEsingle(),
                                          /*Negative=*/true)),
        constant(row, APFloat(0.0f)));
    // As far as the maximum moves where it is rounded.
    Value maximum = arith::AddFOp::create(builder, loc, standing,
                                          kept(larger(most, least)));
    Value growth = arith::SubFOp::create(builder, loc, maximum, standing);
    // Rows without a maximum have nothing to rescale.
    Value decline = larger(growth, constant(row, APFloat(0.0f)));
    Value change = Exp2Op::create(builder, loc,
                                  arith::NegFOp::create(builder, loc, decline));
    Value output = rescaledElsewhere(change);
    Value l = rescaledSums(change, Value());
    // Stores to the same columns are not in order by themselves.
    TmemStoreWaitOp::create(builder, loc);
    for (auto [slice, each] : llvm::zip(slices, exponents)) {
      Value offset = BroadcastOp::create(builder, loc, each.getType(), growth);
      auto [p, wide] =
          powersOf(slice, arith::SubFOp::create(builder, loc, each, offset));
      l = withSums(l, partialSums(wide));
      for (auto [stored, store] : stores) {
        if (stored != slice)
          continue;
        Operation *again = builder.clone(*store);
        again->setOperand(0, p);
      }
    }
    return {maximum, l, output};
  }

  /// Whether the bet on the maximum is lost, and the largest exponent, null
  /// where that is not asked for: then threads look at their own part of a row.
  std::pair<Value, Value> laggedVote() {
    bool isWhole = static_cast<bool>(op.getRowLargest());
    Value largest = maximumOf(ReduceOp::create(
        builder, loc, isWhole ? row : partial, maximumKind(), op.getS(),
        /*partial=*/!isWhole));
    if (!isWhole)
      return {hasGrown(largest,
                       BroadcastOp::create(builder, loc, partial, op.getM())),
              Value()};
    largest = larger(op.getRowLargest(), largest);
    return {hasGrown(largest, op.getM()), largest};
  }

  /// m' where that bet is lost.
  Value laggedMaximum(Value grown, Value largest) {
    return largest ? changedMaximum(grown, atLeastLowest(largest))
                   : kept(grownMaximum());
  }

  /// The bet on the maximum, which nothing but the vote waits for.
  SmallVector<Value, 4> lagged() {
    Value p = probabilities(op.getM());
    Value sums = partialSums(p);
    Value grown, largest;
    std::tie(grown, largest) = laggedVote();
    Value l = withSums(op.getL(), sums);
    Operation *narrowing = findNarrowing(/*behind=*/false);
    SmallVector<Value, 4> results =
        rare(grown, {narrowed(p, narrowing), op.getM(), l, unchangedOutput()},
             /*eachWarpgroup=*/false, [&]() {
               SmallVector<Value, 4> step =
                   exact(laggedMaximum(grown, largest));
               step[0] = narrowed(step[0], narrowing);
               return step;
             });
    return withLargest(results, largest);
  }

  /// The same for the first of several slices: the others are computed behind
  /// the vote, with the maximum that it leaves.
  SmallVector<Value, 4> laggedSlices() {
    SliceOp first = slices.front();
    auto [p, wide] = sliceOf(first, op.getM());
    Value sums = partialSums(wide);
    Value l = withSums(op.getL(), sums);
    Value grown, largest;
    std::tie(grown, largest) = laggedVote();
    // What the vote does not need LLVM computes behind it; the cycles of whole
    // rows were counted without.
    if (!largest) {
      Value overflows = arith::CmpFOp::create(
          builder, loc, arith::CmpFPredicate::UGE, sums,
          constant(partial, APFloat::getInf(APFloat::IEEEsingle())));
      grown = arith::OrIOp::create(builder, loc, grown, overflows);
    }
    ValueRange state =
        rare(grown, {p, op.getM(), l, unchangedOutput()},
             /*eachWarpgroup=*/false, [&]() {
               Value maximum = laggedMaximum(grown, largest);
               Value change = factor(maximum);
               auto [p, wide] = sliceOf(first, maximum);
               return SmallVector<Value, 4>{
                   p, maximum, rescaledSums(change, partialSums(wide)),
                   rescaledElsewhere(change)};
             });
    first.getResult().replaceAllUsesWith(state[0]);
    return withLargest(
        {Value(), state[1], emitSlices(1, state[1], state[2]), state[3]},
        largest);
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
          Value grown = kept(arith::MaxNumFOp::create(
              builder, loc, op.getM(),
              arith::AddFOp::create(builder, loc, op.getM(), log)));
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
                                   Value maximum = kept(grownMaximum(scores));
                                   return SmallVector<Value, 4>{
                                       probabilities(scores, maximum), maximum};
                                 });
          change = factor(step[1]);
          Value l = rescaledSums(change, partialSums(step[0]));
          return SmallVector<Value, 4>{narrowed(step[0], narrowing), step[1], l,
                                       rescaledOutput(change)};
        },
        /*leavesLoop=*/true));
  }
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

/// Refuses probabilities that the 8-bit type which they are rounded to may not
/// hold: a larger one would become its largest number.
static LogicalResult checkNarrowRange(OnlineSoftmaxOp op) {
  FloatType type;
  for (Operation *user : op.getP().getUsers())
    if (isa<arith::TruncFOp, NarrowOperandOp>(user))
      type = cast<FloatType>(getElementTypeOrSelf(user->getResult(0)));
  if (!type || type.getWidth() != 8)
    return success();
  double largest =
      APFloat::getLargest(type.getFloatSemantics()).convertToDouble();
  double limit = op.getLimit().convertToDouble();
  if (op.getPolicy() == SoftmaxPolicy::Optimistic) {
    if (limit <= largest)
      return success();
    return op.emitOpError()
           << llvm::formatv("expected a limit of at most {0:F2}, the "
                            "largest ",
                            largest)
           << type << llvm::formatv(", got {0:F2}", limit);
  }
  double offset = op.getOffset().convertToDouble();
  double growth = op.getPolicy() == SoftmaxPolicy::Exact
                      ? 0
                      : op.getGrowth().convertToDouble();
  double most = std::log2(largest);
  if (offset + growth <= most)
    return success();
  return op.emitOpError() << llvm::formatv(
                                 "expected offset + growth of at most {0:F2}, "
                                 "the exponent of the largest ",
                                 most)
                          << type
                          << llvm::formatv(", got {0:F2} + {1:F2} = {2:F2}",
                                           offset, growth, offset + growth);
}

LogicalResult attn::expandOnlineSoftmax(OnlineSoftmaxOp op, bool inFlight,
                                        ProductOpInterface product) {
  if (failed(checkNarrowRange(op)))
    return failure();
  ProductWaitOpInterface wait;
  if (inFlight)
    wait = op.getO().getDefiningOp<ProductWaitOpInterface>();
  OpBuilder builder(op);
  PolicyStep step(builder, op);
  Value largest = step.largestOfParts();
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
    if (canMultiplyAgain(op, product))
      results = step.correcting(product);
    else
      results = step.canStoreAgain() ? step.optimisticSlices()
                                     : step.optimistic(wait);
    break;
  case SoftmaxPolicy::Lagged:
    if (step.isFirst())
      results = step.first();
    else
      results = step.hasSlices() ? step.laggedSlices() : step.lagged();
    break;
  }
  if (largest)
    results.push_back(largest);
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
