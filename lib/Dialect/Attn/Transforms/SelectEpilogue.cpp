//===- SelectEpilogue.cpp - The pass AttnSelectEpilogue -------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNSELECTEPILOGUEPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct AttnSelectEpiloguePass : attn::impl::AttnSelectEpiloguePassBase<AttnSelectEpiloguePass> {
  using Base::Base;
  void runOnOperation() override {}
};
} // namespace
