//===- CheckChannels.cpp - Channels are used right ------------------------===//

#include "attn/Analysis/Channels/ChannelCheck.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/IR/Remarks.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNCHECKCHANNELSPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

struct AttnCheckChannelsPass
    : attn::impl::AttnCheckChannelsPassBase<AttnCheckChannelsPass> {
  using Base::Base;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>())
      if (failed(check(kernel)))
        return signalPassFailure();
  }

  LogicalResult check(gpu::GPUFuncOp kernel);
  void report(gpu::GPUFuncOp kernel, const ChannelReport &found,
              size_t channels);
};

} // namespace

/// Before attn-expand-pipeline nobody knows what comes behind what.
static LogicalResult checkOrdered(gpu::GPUFuncOp kernel) {
  WalkResult walk = kernel.walk([](Operation *op) -> WalkResult {
    auto user = dyn_cast<ChannelUserOpInterface>(op);
    bool isLater = user && user.getChannelUse() == ChannelUse::Later;
    if (!isLater && !isa<KVLoopOp, TileLoopOp>(op))
      return WalkResult::advance();
    return op->emitOpError("does not say yet in which order it acquires and "
                           "releases; attn-expand-pipeline does");
  });
  return failure(walk.wasInterrupted());
}

LogicalResult AttnCheckChannelsPass::check(gpu::GPUFuncOp kernel) {
  bool hasChannels = false;
  kernel.walk([&](ChannelCreateOp) { hasChannels = true; });
  if (!hasChannels)
    return success();
  ChannelAnalysis analysis(kernel);
  if (failed(checkOrdered(kernel)) || failed(analysis.run()))
    return failure();
  ChannelReport found = checkChannels(analysis);
  if (!found.witness) {
    report(kernel, found, analysis.getChannels().size());
    return success();
  }
  ++numWrong;
  InFlightDiagnostic diag = found.witness->what.op->emitError()
                            << stringifyChannelFault(found.witness->fault)
                            << ": " << found.witness->what.text;
  for (const ChannelNote &note : found.witness->notes)
    diag.attachNote(note.op->getLoc()) << note.text;
  return diag;
}

void AttnCheckChannelsPass::report(gpu::GPUFuncOp kernel,
                                   const ChannelReport &found,
                                   size_t channels) {
  auto category =
      remark::RemarkOpts::name(found.unsupported ? "not-checked" : "checked")
          .category("attn.check-channels")
          .function(kernel.getName());
  if (found.unsupported) {
    ++numUnsupported;
    remark::missed(found.unsupported->op->getLoc(), category)
        << remark::add("the use of channels is not checked to its end")
        << remark::reason("{0}", found.unsupported->text);
    return;
  }
  ++numChecked;
  remark::passed(kernel.getLoc(), category)
      << remark::add("slots are touched while they are held, roles acquire as "
                     "many, and nobody waits for what comes after")
      << remark::metric("channels", channels)
      << remark::metric("accesses", found.accesses)
      << remark::metric("equal-counts", found.balances)
      << remark::metric("taken-not-negative", found.takenSigns)
      << remark::metric("tiles-left-out", found.leftOut)
      << remark::metric("runs", found.runs)
      << remark::metric("steps", found.steps);
}
