//===- ExpandArithmetic.cpp - Ops become their arithmetic -----------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

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
  }
};
} // namespace
