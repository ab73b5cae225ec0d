//===- MaterializeScratch.cpp - The pass AttnMaterializeScratch -------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNMATERIALIZESCRATCHPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct AttnMaterializeScratchPass : attn::impl::AttnMaterializeScratchPassBase<AttnMaterializeScratchPass> {
  using Base::Base;
  void runOnOperation() override {}
};
} // namespace
