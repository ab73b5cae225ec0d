//===- LowerTiles.cpp - The pass AttnLowerTiles -------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNLOWERTILESPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct AttnLowerTilesPass : attn::impl::AttnLowerTilesPassBase<AttnLowerTilesPass> {
  using Base::Base;
  void runOnOperation() override {}
};
} // namespace
