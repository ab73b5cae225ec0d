//===- KVPhases.cpp - The phases of a loop over key blocks ----------------===//

#include "KVPhases.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;

bool attn::isSameBound(Value a, Value b) {
  if (a == b)
    return true;
  APInt constantA, constantB;
  return matchPattern(a, m_ConstantInt(&constantA)) &&
         matchPattern(b, m_ConstantInt(&constantB)) && constantA == constantB;
}

/// True for policies that take the standing maximum for a block's own.
static bool isBet(SoftmaxPolicy policy) {
  return policy == SoftmaxPolicy::Optimistic || policy == SoftmaxPolicy::Lagged;
}

SmallVector<KVPhaseRange, 3> attn::makePhaseRanges(OpBuilder &builder,
                                                   KVLoopOp loop, Value trips) {
  Location loc = loop.getLoc();
  bool hasMask = false, hasLower = false, bets = false;
  loop.getBody().walk([&](Operation *op) {
    if (auto mask = dyn_cast<ApplyMaskOp>(op)) {
      hasMask = true;
      hasLower |= mask.getLower() || mask.getFrom();
    }
    if (auto map = dyn_cast<MapElementsOp>(op); map && map.getHides())
      hasMask = hasLower = true;
    if (auto softmax = dyn_cast<OnlineSoftmaxOp>(op))
      bets |= isBet(softmax.getPolicy());
  });
  auto iterationOf = [&](Value block) -> Value {
    return arith::SubIOp::create(builder, loc, loop.getEnd(), block);
  };
  SmallVector<KVPhaseRange, 3> phases;
  Value begin = arith::ConstantIntOp::create(builder, loc, 0, 32);
  // Without a mask too, blocks behind `full_end` do not bet.
  if ((hasMask || bets) && !isSameBound(loop.getFullEnd(), loop.getEnd())) {
    phases.push_back({KVPhase::Right, begin, iterationOf(loop.getFullEnd())});
    begin = phases.back().end;
  }
  bool left = hasLower && !isSameBound(loop.getFullBegin(), loop.getBegin());
  if (!isSameBound(loop.getFullBegin(), loop.getFullEnd()) || !left) {
    phases.push_back({KVPhase::Interior, begin,
                      left ? iterationOf(loop.getFullBegin()) : trips});
    begin = phases.back().end;
  }
  if (left)
    phases.push_back({KVPhase::Left, begin, trips});
  return phases;
}

Operation *attn::cloneForPhase(OpBuilder &builder, Operation *op, KVPhase phase,
                               IRMapping &mapping) {
  if (auto mask = dyn_cast<ApplyMaskOp>(op)) {
    bool dropped =
        phase == KVPhase::Interior ||
        (phase == KVPhase::Left && !mask.getLower() && !mask.getFrom());
    if (dropped) {
      mapping.map(mask.getResult(), mapping.lookupOrDefault(mask.getSource()));
      return nullptr;
    }
    auto clone = cast<ApplyMaskOp>(builder.clone(*op, mapping));
    if (phase == KVPhase::Left) {
      clone.getLimitMutable().clear();
      clone.getUpperMutable().clear();
      clone.getToMutable().clear();
    }
    return clone;
  }
  if (auto map = dyn_cast<MapElementsOp>(op);
      map && map.getHides() && phase == KVPhase::Interior) {
    mapping.map(map.getResult(), mapping.lookupOrDefault(map.getSource()));
    return nullptr;
  }
  Operation *copy = builder.clone(*op, mapping);
  // Masked blocks do not bet, since theirs are the rows that have no maximum
  // yet; but they rescale only where the maximum has grown a lot.
  if (auto softmax = dyn_cast<OnlineSoftmaxOp>(copy);
      softmax && phase != KVPhase::Interior && isBet(softmax.getPolicy()))
    softmax.setPolicy(SoftmaxPolicy::Threshold);
  return copy;
}
