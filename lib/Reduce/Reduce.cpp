//===- Reduce.cpp - Registration, and the guard of reductions -------------===//

#include "attn/Reduce/Reduce.h"
#include "Reductions.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Reducer/ReductionPatternInterface.h"

using namespace mlir;
using namespace mlir::attn;

/// The counterpart of `op` in a copy of `root`: the same place in the walk.
static Operation *findCopy(Operation *root, Operation *copy, Operation *op) {
  SmallVector<unsigned> path;
  for (; op != root; op = op->getParentOp()) {
    Block *block = op->getBlock();
    path.push_back(std::distance(block->begin(), op->getIterator()));
    path.push_back(
        std::distance(block->getParent()->begin(), block->getIterator()));
    path.push_back(block->getParent()->getRegionNumber());
  }
  for (; !path.empty(); path.resize(path.size() - 3)) {
    ArrayRef<unsigned> step = ArrayRef(path).take_back(3);
    Region &region = copy->getRegion(step[2]);
    copy = &*std::next(std::next(region.begin(), step[1])->begin(), step[0]);
  }
  return copy;
}

LogicalResult attn::reduceIfInteresting(Operation *op,
                                        PatternRewriter &rewriter,
                                        ArrayRef<Reduction> reductions,
                                        const Tester &tester) {
  Operation *root = op;
  while (root->getParentOp())
    root = root->getParentOp();
  if (!isa<ModuleOp>(root))
    return failure();
  for (const Reduction &reduction : reductions) {
    OwningOpRef<ModuleOp> copy = cast<ModuleOp>(root->clone());
    // Invalid candidates are no news for the user.
    ScopedDiagnosticHandler silence(op->getContext(),
                                    [](Diagnostic &) { return success(); });
    IRRewriter copyRewriter(op->getContext());
    if (failed(reduction(findCopy(root, *copy, op), copyRewriter)) ||
        failed(mlir::verify(*copy)) ||
        tester.isInteresting(*copy).first != Tester::Interestingness::True)
      continue;
    return reduction(op, rewriter);
  }
  return failure();
}

namespace {
struct AttnReductions : public DialectReductionPatternInterface {
  explicit AttnReductions(Dialect *dialect)
      : DialectReductionPatternInterface(dialect) {}

  /// All reductions need the tester.
  void populateReductionPatterns(RewritePatternSet &patterns) const override {}

  void populateReductionPatternsWithTester(RewritePatternSet &patterns,
                                           Tester &tester) const override {
    populateProblemReductions(patterns, tester);
    populateTileReductions(patterns, tester);
  }
};
} // namespace

void attn::registerReductions(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, AttnDialect *dialect) {
    dialect->addInterfaces<AttnReductions>();
  });
}
