//===- FuseRowMaxima.cpp - Maxima of rows from the loads that bring them --===//
//
// A thread has the whole row that it loads, and so its maximum.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/RowMaxima.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Target/TargetTable.h"
#include "mlir/IR/Remarks.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNFUSEROWMAXIMAPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct AttnFuseRowMaximaPass
    : attn::impl::AttnFuseRowMaximaPassBase<AttnFuseRowMaximaPass> {
  using Base::Base;
  void runOnOperation() override;
  void fuse(gpu::GPUFuncOp kernel);
};
} // namespace

void AttnFuseRowMaximaPass::fuse(gpu::GPUFuncOp kernel) {
  SmallVector<ReduceOp> reductions;
  kernel.walk([&](ReduceOp reduce) {
    // Rows alone: what one thread has of a row is not more.
    if (reduce.getKind() != ReduceKind::Add && !reduce.getPartial())
      reductions.push_back(reduce);
  });
  unsigned fused = 0;
  for (ReduceOp reduce : reductions)
    if (fuseRowMaximum(reduce))
      ++fused;
  numFused += fused;
  if (reductions.empty())
    return;
  remark::passed(kernel.getLoc(), remark::RemarkOpts::name("row-maxima")
                                      .category("attn.fuse-row-maxima")
                                      .function(kernel.getName()))
      << remark::add("loads bring {0} of {1} maxima of rows", fused,
                     reductions.size())
      << remark::metric("fused", fused)
      << remark::metric("kept", reductions.size() - fused);
}

void AttnFuseRowMaximaPass::runOnOperation() {
  ArrayAttr targets = getOperation().getTargetsAttr();
  bool canFuse =
      targets && llvm::all_of(targets, [](Attribute attribute) {
        auto target = dyn_cast<TargetAttr>(attribute);
        return target && target.getRow().has(Capability::Tcgen05LdRed);
      });
  if (!canFuse)
    return;
  for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>())
    fuse(kernel);
}
