//===- Expand.cpp - The pass AttnExpand -------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNEXPANDPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct AttnExpandPass : attn::impl::AttnExpandPassBase<AttnExpandPass> {
  using Base::Base;
  void runOnOperation() override {}
};
} // namespace
