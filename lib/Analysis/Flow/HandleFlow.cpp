//===- HandleFlow.cpp - Where cursors, tokens and accumulators go ---------===//

#include "attn/Analysis/Flow/HandleFlow.h"
#include "attn/Analysis/Flow/RegionPaths.h"

using namespace mlir;
using namespace mlir::attn;

bool attn::isHandle(Type type) {
  return isa<CursorType, TokenType, InFlightType>(type);
}

HandleFlow attn::collectHandleFlow(Operation *root) {
  HandleFlow flow;
  root->walk([&](RegionBranchOpInterface op) {
    forEachPassedOn(op, [&](OpOperand &from, ArrayRef<Value> targets) {
      for (Value to : targets)
        if (isHandle(to.getType()))
          flow[&from].push_back(to);
    });
  });
  return flow;
}

SmallVector<UseGroup> attn::groupUses(Value value, Block *block) {
  llvm::SmallDenseMap<Operation *, UseGroup> groups;
  for (OpOperand &use : value.getUses()) {
    Operation *op = block->findAncestorOpInBlock(*use.getOwner());
    if (!op)
      continue;
    UseGroup &group = groups[op];
    group.op = op;
    (use.getOwner() == op ? group.direct : group.nested).push_back(&use);
  }
  SmallVector<UseGroup> order;
  for (auto &[op, group] : groups) {
    llvm::sort(group.direct, [](OpOperand *a, OpOperand *b) {
      return a->getOperandNumber() < b->getOperandNumber();
    });
    order.push_back(std::move(group));
  }
  llvm::sort(order, [](const UseGroup &a, const UseGroup &b) {
    return a.op->isBeforeInBlock(b.op);
  });
  return order;
}
