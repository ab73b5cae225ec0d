//===- ExpandPipeline.cpp - Loops over key blocks, pipelined --------------===//

#include "ExpandSoftmax.h"
#include "KVLoopExpander.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/IR/Remarks.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNEXPANDPIPELINEPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

struct AttnExpandPipelinePass
    : attn::impl::AttnExpandPipelinePassBase<AttnExpandPipelinePass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>())
      if (failed(expand(kernel)))
        return signalPassFailure();
  }

  LogicalResult expand(gpu::GPUFuncOp kernel);
  void report(gpu::GPUFuncOp kernel, Location loc,
              const KVLoopSummary &summary);
};

} // namespace

void AttnExpandPipelinePass::report(gpu::GPUFuncOp kernel, Location loc,
                                    const KVLoopSummary &summary) {
  std::string phases;
  for (KVPhase phase : summary.phases)
    phases += (phases.empty() ? "" : ",") + stringifyKVPhase(phase).str();
  auto message = remark::passed(loc, remark::RemarkOpts::name("kv-loop")
                                         .category("attn.expand-pipeline")
                                         .function(kernel.getName()));
  message << remark::add("the loop over key blocks is pipelined")
          << remark::metric("stages", summary.stages)
          << remark::metric("copies-ahead", summary.copiesAhead)
          << remark::metric("groups-in-flight", summary.groupsInFlight)
          << remark::metric("phases", phases)
          << remark::metric("above-wait", summary.aboveWait);
  if (summary.steps != 0)
    message << remark::metric("steps", summary.steps);
}

LogicalResult AttnExpandPipelinePass::expand(gpu::GPUFuncOp kernel) {
  SmallVector<KVLoopOp> loops;
  kernel.walk([&](KVLoopOp loop) { loops.push_back(loop); });
  for (KVLoopOp loop : loops) {
    Location loc = loop.getLoc();
    FailureOr<KVLoopSummary> summary =
        loop.getQkAhead() ? expandRotatedKVLoop(loop)
        : hasSlices(loop) ? expandSlicedKVLoop(loop)
                          : expandKVLoop(loop);
    if (failed(summary))
      return failure();
    ++numLoops;
    numPhases += summary->phases.size();
    report(kernel, loc, *summary);
  }
  SmallVector<OnlineSoftmaxOp> softmaxes;
  kernel.walk([&](OnlineSoftmaxOp op) { softmaxes.push_back(op); });
  for (OnlineSoftmaxOp op : softmaxes)
    if (failed(expandOnlineSoftmax(op)))
      return failure();
  return success();
}
