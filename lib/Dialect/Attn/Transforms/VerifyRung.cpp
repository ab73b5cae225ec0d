//===- VerifyRung.cpp - The pass attn-verify-rung -------------------------===//

#include "attn/Dialect/Attn/IR/Rung.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNVERIFYRUNGPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct AttnVerifyRungPass
    : attn::impl::AttnVerifyRungPassBase<AttnVerifyRungPass> {
  using Base::Base;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(check()))
      signalPassFailure();
  }

  LogicalResult check() {
    ModuleOp module = getOperation();
    std::optional<Rung> limit = symbolizeRung(last);
    if (!limit)
      return module.emitError("expected the name of a rung, got '")
             << last << "'";
    // A module without kernels or problems is nobody's concern here.
    WalkResult walk = module.walk([](Operation *op) {
      return isa<AttentionOp, CombineOp, gpu::GPUModuleOp>(op)
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (!walk.wasInterrupted())
      return success();
    FailureOr<Rung> found = findRung(module);
    if (failed(found))
      return failure();
    if (*found <= *limit)
      return success();
    return module.emitError("expected rung '")
           << last << "' or one before it, got '" << stringifyRung(*found)
           << "'; attn-compile goes on from there";
  }
};
} // namespace
