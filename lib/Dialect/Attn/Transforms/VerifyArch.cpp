//===- VerifyArch.cpp - The pass attn-verify-arch -------------------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNVERIFYARCHPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct AttnVerifyArchPass
    : attn::impl::AttnVerifyArchPassBase<AttnVerifyArchPass> {
  using Base::Base;
  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(verifyArch(getOperation())))
      signalPassFailure();
  }
};
} // namespace
