//===- InsertFences.cpp - Barriers for shared memory ----------------------===//
//
// Asks the analysis for the first hazard, puts a barrier where it says, and
// starts over until there is none. Since a barrier goes to the latest place
// that closes its hazard, it closes as many of the following ones as it can. At
// the end each barrier is taken out once to see whether later ones made it
// superfluous, so that none can be removed from the result.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/SharedHazards.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/IR/Remarks.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNINSERTFENCESPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

/// A barrier and why it is there.
struct Fence {
  gpu::BarrierOp barrier;
  SharedHazard hazard;
};

struct AttnInsertFencesPass
    : attn::impl::AttnInsertFencesPassBase<AttnInsertFencesPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>())
      if (failed(insert(kernel)))
        return signalPassFailure();
  }

  LogicalResult insert(gpu::GPUFuncOp kernel);
  LogicalResult removeSuperfluous(gpu::GPUFuncOp kernel,
                                  SharedAccessCache &cache,
                                  SmallVectorImpl<Fence> &fences);
  void report(gpu::GPUFuncOp kernel, ArrayRef<Fence> fences);
};

} // namespace

static StringRef describe(const SharedAccess &access) {
  return access.isWrite ? "write" : "read";
}

static LogicalResult emitNotAwaited(const SharedHazard &hazard) {
  auto diag = hazard.second.op->emitError()
              << describe(hazard.second) << " of buffer '"
              << getBufferName(hazard.second.alloc)
              << "', whose copy is not awaited";
  diag.attachNote(hazard.first.op->getLoc())
      << "the copy starts here; an attn.cp_async.wait has to cover its group";
  return diag;
}

LogicalResult
AttnInsertFencesPass::removeSuperfluous(gpu::GPUFuncOp kernel,
                                        SharedAccessCache &cache,
                                        SmallVectorImpl<Fence> &fences) {
  SmallVector<Fence> kept;
  for (Fence &fence : fences) {
    Operation *next = fence.barrier->getNextNode();
    fence.barrier->remove();
    auto hazard = findSharedHazard(kernel, cache);
    if (failed(hazard) || *hazard) {
      next->getBlock()->getOperations().insert(next->getIterator(),
                                               fence.barrier);
      kept.push_back(fence);
    } else {
      fence.barrier->destroy();
    }
    if (failed(hazard))
      return failure();
  }
  fences = std::move(kept);
  return success();
}

void AttnInsertFencesPass::report(gpu::GPUFuncOp kernel,
                                  ArrayRef<Fence> fences) {
  auto options = remark::RemarkOpts::name("barriers")
                     .category("attn.insert-fences")
                     .function(kernel.getName());
  remark::passed(kernel.getLoc(), options)
      << remark::add("barriers inserted")
      << remark::metric("count", fences.size());
  for (const Fence &fence : fences)
    remark::passed(fence.hazard.insertBefore->getLoc(),
                   remark::RemarkOpts::name("barrier")
                       .category("attn.insert-fences")
                       .function(kernel.getName()))
        << remark::add("a barrier separates a {0} of '{1}' from a {2} of '{3}'",
                       describe(fence.hazard.first).str(),
                       getBufferName(fence.hazard.first.alloc).str(),
                       describe(fence.hazard.second).str(),
                       getBufferName(fence.hazard.second.alloc).str())
        << remark::metric("first",
                          fence.hazard.first.op->getName().getStringRef().str())
        << remark::metric(
               "second",
               fence.hazard.second.op->getName().getStringRef().str());
}

/// Once shared memory is laid out, no pass may have added to it.
static LogicalResult checkClosed(gpu::GPUFuncOp kernel) {
  if (!kernel->hasAttr(AttnDialect::kSharedBytesAttr))
    return success();
  WalkResult walked = kernel.walk([](AllocOp alloc) {
    if (alloc.getOffset())
      return WalkResult::advance();
    alloc.emitOpError("expected an offset: shared memory is laid out, and no "
                      "pass creates buffers any more");
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult AttnInsertFencesPass::insert(gpu::GPUFuncOp kernel) {
  if (failed(checkClosed(kernel)))
    return failure();
  SharedAccessCache cache;
  SmallVector<Fence> fences;
  while (true) {
    auto hazard = findSharedHazard(kernel, cache);
    if (failed(hazard))
      return failure();
    if (!*hazard)
      break;
    if ((*hazard)->kind == SharedHazard::Kind::NotAwaited)
      return emitNotAwaited(**hazard);
    Operation *place = (*hazard)->insertBefore;
    OpBuilder builder(place);
    auto barrier = gpu::BarrierOp::create(builder, place->getLoc());
    fences.push_back({barrier, **hazard});
  }
  if (failed(removeSuperfluous(kernel, cache, fences)))
    return failure();
  numBarriers += fences.size();
  report(kernel, fences);
  return success();
}
