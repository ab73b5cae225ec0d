//===- SoftmaxStep.h - The pieces of an online softmax's step ---*- C++ -*-===//
//
// Private to the expansion of attn.online_softmax: what the policies have in
// common.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_SOFTMAXSTEP_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_SOFTMAXSTEP_H

#include "SoftmaxUses.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::attn {

/// True for the product that a wait returns.
inline bool isAwaited(Value tile) {
  return static_cast<bool>(tile.getDefiningOp<ProductWaitOpInterface>());
}

/// Emits the pieces of one step.
class SoftmaxStep {
public:
  SoftmaxStep(OpBuilder &builder, OnlineSoftmaxOp op)
      : builder(builder), loc(op.getLoc()), op(op), tile(typeOf(op.getS())),
        row(typeOf(op.getM())), partial(typeOf(op.getL())), o(op.getO()),
        rescale(findRescale(op)), slices(findSlices(op)) {}

  /// m' of the exact step, but for infinite ones.
  Value grownMaximum() { return grownMaximum(op.getS()); }

  Value grownMaximum(Value scores) {
    Value scaled =
        maximumOf(ReduceOp::create(builder, loc, row, maximumKind(), scores));
    return atLeastLowest(
        larger(op.getRowLargest() ? op.getRowLargest() : op.getM(), scaled));
  }

  Value atLeastLowest(Value maximum) {
    if (op.getFinite())
      return maximum;
    APFloat lowest =
        APFloat::getLargest(APFloat::IEEEsingle(), /*Negative=*/true);
    return larger(maximum, constant(row, lowest));
  }

  /// A maximum as it is kept: whole where the step asks for that, NaN in place
  /// of +inf where m passes NaN on.
  Value kept(Value maximum) {
    if (op.getWhole())
      maximum = math::CeilOp::create(builder, loc, maximum);
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
    RankedTensorType type =
        tile.clone(ArrayRef<int64_t>{tile.getShape()[0], columns});
    Value scores = op.getS();
    if (type != tile)
      scores = SliceOp::create(builder, loc, type, scores, first);
    return probabilities(scores, maximum);
  }

  Value probabilities(Value scores, Value maximum) {
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
                          polynomial != 0 && bounded);
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

  /// `l` with partial sums of this block.
  Value withSums(Value l, Value sums) {
    return arith::AddFOp::create(builder, loc, l, sums);
  }

  bool hasSlices() const { return !slices.empty(); }

  /// True if the vote can be taken behind what stores the slices, which a lost
  /// bet does once more.
  bool canStoreAgain() const {
    return hasSlices() && rescale && isBehindStores(rescale, slices);
  }

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
        l = withSums(l, partialSums(pending));
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
    SmallVector<Value> worklist = {rescale.getCondition()};
    rescale->erase();
    while (!worklist.empty()) {
      Operation *def = worklist.pop_back_val().getDefiningOp();
      if (!def || def == op || !isOpTriviallyDead(def))
        continue;
      llvm::append_range(worklist, def->getOperands());
      def->erase();
    }
  }

  /// The last result of a step that rescales nothing.
  Value unchangedOutput() { return o ? o : constant(row, APFloat(1.0f)); }

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

protected:
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
};

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_SOFTMAXSTEP_H
