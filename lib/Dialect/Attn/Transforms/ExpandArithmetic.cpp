//===- ExpandArithmetic.cpp - Ops become their arithmetic -----------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNEXPANDARITHMETICPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct AttnExpandArithmeticPass
    : attn::impl::AttnExpandArithmeticPassBase<AttnExpandArithmeticPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<ArithmeticOpInterface> ops;
    getOperation().walk([&](ArithmeticOpInterface op) { ops.push_back(op); });
    for (ArithmeticOpInterface op : ops) {
      ImplicitLocOpBuilder builder(op.getLoc(), op);
      op->replaceAllUsesWith(op.emitArithmetic(builder));
      op->erase();
    }
    numOps += ops.size();
    // Arithmetic that several ops have in common is left once. What had none of
    // them stays as it is: it may be behind other passes.
    if (ops.empty())
      return;
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(getOperation());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
  }
};
} // namespace
