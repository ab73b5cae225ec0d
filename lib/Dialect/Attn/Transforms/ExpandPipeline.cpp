//===- ExpandPipeline.cpp - The pass AttnExpandPipeline -------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNEXPANDPIPELINEPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct AttnExpandPipelinePass : attn::impl::AttnExpandPipelinePassBase<AttnExpandPipelinePass> {
  using Base::Base;
  void runOnOperation() override {}
};
} // namespace
