//===- Plan.cpp - The pass AttnPlan
//-------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNPLANPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct AttnPlanPass : attn::impl::AttnPlanPassBase<AttnPlanPass> {
  using Base::Base;
  void runOnOperation() override {}
};
} // namespace
