//===- Expand.cpp - The pass attn-expand ----------------------------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Schedule/Core/Outline.h"
#include "attn/Target/TargetTable.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNEXPANDPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct AttnExpandPass : attn::impl::AttnExpandPassBase<AttnExpandPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::Expected<TargetRow> target = lookupTarget(chip, board);
    if (!target) {
      module.emitError() << llvm::toString(target.takeError());
      return signalPassFailure();
    }
    CalibrationScope calibration(*target);
    SymbolTable symbols(module);
    Outliner outliner(*target, symbols);
    SmallVector<Operation *> problems;
    module.walk([&](Operation *op) {
      if (isa<AttentionOp, CombineOp>(op))
        problems.push_back(op);
    });
    for (Operation *op : problems) {
      auto attention = dyn_cast<AttentionOp>(op);
      if (failed(attention ? outliner.outline(attention)
                           : outliner.outline(cast<CombineOp>(op))))
        return signalPassFailure();
    }
  }
};
} // namespace
