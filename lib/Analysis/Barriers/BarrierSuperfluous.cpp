//===- BarrierSuperfluous.cpp - Synchronisation that nothing needs --------===//
//
// Ops are taken out, the kernel is checked without them, and they are put back
// where they were.
//
//===----------------------------------------------------------------------===//

#include "BarrierProgram.h"
#include "attn/Analysis/Barriers/BarrierCheck.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// Whether the step only orders others: without it no signal is missing.
static bool onlyOrders(Code code) {
  switch (code) {
  case Code::Wait:
  case Code::CtaBarrier:
  case Code::NamedBarrier:
  case Code::ClusterBarrier:
  case Code::WarpBarrier:
  case Code::FenceProxy:
  case Code::FenceTensor:
  case Code::Await:
    return true;
  default:
    return false;
  }
}

SmallVector<Operation *> attn::getOrderingOps(gpu::GPUFuncOp kernel) {
  Program program;
  if (compileProgram(kernel, program))
    return {};
  llvm::SetVector<Operation *> ops;
  for (const Step &step : program.steps)
    if (onlyOrders(step.code) && step.op->use_empty())
      ops.insert(step.op);
  return ops.takeVector();
}

BarrierReport attn::checkWithout(ArrayRef<Operation *> ops,
                                 const BarrierCheckOptions &options) {
  auto kernel = ops.front()->getParentOfType<gpu::GPUFuncOp>();
  // Where they go again, the last one first: others may stand behind them.
  SmallVector<std::pair<Block *, Block::iterator>> places;
  for (Operation *op : ops) {
    places.push_back({op->getBlock(), std::next(op->getIterator())});
    op->remove();
  }
  BarrierCheckOptions ofVerdict = options;
  ofVerdict.namesPhases = false;
  BarrierReport report = checkBarriers(kernel, ofVerdict);
  for (size_t index = ops.size(); index-- > 0;)
    places[index].first->getOperations().insert(places[index].second,
                                                ops[index]);
  return report;
}
