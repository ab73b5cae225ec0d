//===- BarrierOps.cpp - mbarriers and fences ------------------------------===//

#include "../Completion.h"
#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

/// PTX ISA, mbarrier: "the valid range" of counts and of pending bytes.
static constexpr int64_t kLargestCount = (1 << 20) - 1;

LogicalResult MBarrierInitOp::verify() {
  int64_t count = getCount();
  if (count < 1 || count > kLargestCount)
    return emitOpError("expected a count from 1 to ")
           << kLargestCount << ", got " << count;
  return success();
}

/// Checks a signal to several CTAs of a cluster, or to a leader.
static LogicalResult verifySignal(Operation *op, Value barriers,
                                  std::optional<int64_t> ctas, bool leader,
                                  std::optional<int64_t> bits) {
  if (ctas && leader)
    return op->emitOpError("expected 'ctas' or 'leader', got both");
  if (failed(verifyClusterCTAs(op, ctas)) ||
      failed(verifyRankBits(op, ctas, leader, bits)))
    return failure();
  return verifyBarrierCGA(op, barriers, SignalMask::get(ctas, leader, bits));
}

LogicalResult MBarrierExpectTxOp::verify() {
  int64_t bytes = getBytes();
  if (bytes < 0 || bytes > kLargestCount)
    return emitOpError("expected from 0 to ")
           << kLargestCount << " bytes, got " << bytes;
  return verifySignal(*this, getBarriers(), getCtas(), getLeader(),
                      getRankBits());
}

int MBarrierArriveOp::getMinimumSM() {
  return getCtas() || getLeader() ? 90 : 80;
}

const AsyncEngine &CpAsyncArriveOp::getCommittedEngine() { return kCopyGroups; }

std::pair<Value, Value> CpAsyncArriveOp::getCommitBarrier() {
  return {getBarriers(), getIndex()};
}

int64_t CpAsyncArriveOp::countCommitArrivals() { return 32; }

int MBarrierWaitOp::getMinimumSM() { return getCluster() ? 90 : 80; }

LogicalResult MBarrierArriveOp::verify() {
  return verifySignal(*this, getBarriers(), getCtas(), getLeader(),
                      getRankBits());
}

LogicalResult NamedBarrierOp::verify() {
  int64_t threads = getThreads();
  if (threads < 32 || threads % 32 != 0)
    return emitOpError("expected a positive multiple of 32 threads, got ")
           << threads;
  if (getEachWarpgroup() && threads != 128)
    return emitOpError("expected the 128 threads of a warpgroup with "
                       "'each_warpgroup', got ")
           << threads;
  return success();
}

/// Barrier 0 is the CTA's.
static LogicalResult verifyTurn(Operation *op, int64_t id) {
  if (id < 1 || id > 15)
    return op->emitOpError("expected a named barrier from 1 to 15, got ") << id;
  return success();
}

LogicalResult TurnStartOp::verify() { return verifyTurn(*this, getId()); }

LogicalResult TurnTakeOp::verify() { return verifyTurn(*this, getId()); }

LogicalResult TurnPassOp::verify() { return verifyTurn(*this, getId()); }

LogicalResult MBarrierAllocOp::verify() {
  std::optional<int64_t> offset = getOffset();
  if (offset && (*offset < 0 || *offset > kMostSharedBytes))
    return emitOpError("expected an offset from 0 to ")
           << kMostSharedBytes << ", got " << *offset;
  return verifyCGA(*this, getCgaAttr(), 1);
}

void MBarrierAllocOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getName().value_or("barriers"));
}
