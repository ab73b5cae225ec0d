//===- AllocateShared.cpp - The pass AttnAllocateShared -------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNALLOCATESHAREDPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct AttnAllocateSharedPass : attn::impl::AttnAllocateSharedPassBase<AttnAllocateSharedPass> {
  using Base::Base;
  void runOnOperation() override {}
};
} // namespace
