//===- TileReductions.cpp - Reductions below the problem rung -------------===//

#include "Reductions.h"

using namespace mlir;
using namespace mlir::attn;

/// For each result an operand of its type, each one taken once.
static FailureOr<SmallVector<Value>> matchingOperands(Operation *op) {
  SmallVector<Value> values;
  llvm::SmallDenseSet<unsigned> taken;
  for (Type type : op->getResultTypes()) {
    OpOperand *found = nullptr;
    for (OpOperand &operand : op->getOpOperands())
      if (operand.get().getType() == type &&
          !taken.contains(operand.getOperandNumber())) {
        found = &operand;
        break;
      }
    if (!found)
      return failure();
    taken.insert(found->getOperandNumber());
    values.push_back(found->get());
  }
  return values;
}

/// Puts operands in the place of the results.
static LogicalResult forwardOperands(Operation *op, RewriterBase &rewriter) {
  if (op->getNumResults() == 0)
    return failure();
  FailureOr<SmallVector<Value>> values = matchingOperands(op);
  if (failed(values))
    return failure();
  rewriter.replaceOp(op, *values);
  return success();
}

/// Removes an op whose results nothing uses, whatever its effects.
static LogicalResult eraseUnused(Operation *op, RewriterBase &rewriter) {
  rewriter.eraseOp(op);
  return success();
}

/// Makes every block an interior one.
static LogicalResult dropPhases(Operation *op, RewriterBase &rewriter) {
  auto loop = cast<KVLoopOp>(op);
  if (loop.getBegin() == loop.getFullBegin() &&
      loop.getEnd() == loop.getFullEnd())
    return failure();
  rewriter.modifyOpInPlace(loop, [&] {
    loop.getFullBeginMutable().assign(loop.getBegin());
    loop.getFullEndMutable().assign(loop.getEnd());
  });
  return success();
}

/// Gives the loop one stage, and its rings one slot.
static LogicalResult dropStages(Operation *op, RewriterBase &rewriter) {
  auto loop = cast<KVLoopOp>(op);
  if (loop.getStages() == 1)
    return failure();
  rewriter.modifyOpInPlace(loop, [&] { loop.setStages(1); });
  for (StageOp stage : loop.getBody().getOps<StageOp>()) {
    auto ring = stage.getRing().getDefiningOp<AllocOp>();
    if (!ring)
      return failure();
    BufferType type = ring.getType();
    SmallVector<int64_t> shape(type.getShape());
    shape.front() = 1;
    rewriter.modifyOpInPlace(ring, [&] {
      ring.getResult().setType(
          BufferType::get(op->getContext(), shape, type.getElementType(),
                          type.getLayout(), type.getSpace()));
    });
  }
  return success();
}

namespace {

struct ReduceKVLoop : public OpRewritePattern<KVLoopOp> {
  ReduceKVLoop(MLIRContext *context, const Tester &tester)
      : OpRewritePattern(context), tester(tester) {}

  LogicalResult matchAndRewrite(KVLoopOp op,
                                PatternRewriter &rewriter) const override {
    return reduceIfInteresting(op, rewriter, {dropPhases, dropStages}, tester);
  }

  const Tester &tester;
};

struct EraseUnused : public RewritePattern {
  EraseUnused(MLIRContext *context, const Tester &tester)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/3, context),
        tester(tester) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!op->use_empty() || op->hasTrait<OpTrait::IsTerminator>() ||
        op->hasTrait<OpTrait::IsIsolatedFromAbove>())
      return failure();
    return reduceIfInteresting(op, rewriter, {eraseUnused}, tester);
  }

  const Tester &tester;
};

struct ForwardOperands : public RewritePattern {
  ForwardOperands(MLIRContext *context, const Tester &tester)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/2, context),
        tester(tester) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (op->getNumResults() == 0 || failed(matchingOperands(op)))
      return failure();
    return reduceIfInteresting(op, rewriter, {forwardOperands}, tester);
  }

  const Tester &tester;
};

} // namespace

void attn::populateTileReductions(RewritePatternSet &patterns,
                                  const Tester &tester) {
  patterns.add<ReduceKVLoop, EraseUnused, ForwardOperands>(
      patterns.getContext(), tester);
}
