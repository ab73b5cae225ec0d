//===- InferLayouts.cpp - The pass AttnInferLayouts -------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNINFERLAYOUTSPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct AttnInferLayoutsPass : attn::impl::AttnInferLayoutsPassBase<AttnInferLayoutsPass> {
  using Base::Base;
  void runOnOperation() override {}
};
} // namespace
