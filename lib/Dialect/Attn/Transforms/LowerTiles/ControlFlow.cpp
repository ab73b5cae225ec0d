//===- ControlFlow.cpp - Loops, branches and rare paths -------------------===//

#include "../RarePath.h"
#include "PartitionLowering.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

bool PartitionLowering::isLastLoop(scf::ForOp op) const {
  auto hasTiles = [](Operation *other) {
    return isa<scf::ForOp>(other) &&
           llvm::any_of(other->getResultTypes(), isRegisters);
  };
  auto isLast = [](Operation *other) {
    return other->getNextNode() == other->getBlock()->getTerminator();
  };
  if (!hasTiles(op))
    return false;
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode())
    if (next->walk([&](Operation *inner) {
              return hasTiles(inner) ? WalkResult::interrupt()
                                     : WalkResult::advance();
            })
            .wasInterrupted())
      return false;
  // Of packed sequences a branch holds all of the work.
  Operation *parent = op->getParentOp();
  if (isa<scf::IfOp>(parent) && isLast(parent))
    parent = parent->getParentOp();
  // A partition has a loop over tiles around it.
  return isPartition ? isa<scf::ForOp, scf::WhileOp>(parent)
                     : isa<gpu::GPUFuncOp>(parent);
}

template <>
LogicalResult PartitionLowering::lower(scf::ForOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> inits;
  for (Value init : op.getInitArgs()) {
    if (!isRegisters(init.getType())) {
      inits.push_back(init);
      continue;
    }
    FailureOr<TileValue> value = tile(op, init);
    if (failed(value))
      return failure();
    llvm::append_range(inits, value->values);
  }
  auto loop = scf::ForOp::create(b, op.getLowerBound(), op.getUpperBound(),
                                 op.getStep(), inits, /*bodyBuilder=*/nullptr,
                                 op.getUnsignedCmp());
  loop->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  // Without carried values the builder made a terminator already.
  if (inits.empty())
    loop.getBody()->getTerminator()->erase();

  op.getInductionVar().replaceAllUsesWith(loop.getInductionVar());
  unsigned next = 0;
  auto bind = [&](Value old, ValueRange replacements) -> LogicalResult {
    if (!isRegisters(old.getType())) {
      old.replaceAllUsesWith(replacements[next++]);
      return success();
    }
    FailureOr<SmallVector<Type>> types = expandedTypes(op, old.getType());
    FailureOr<TileLayout> layout = layoutOf(op, old.getType());
    if (failed(types) || failed(layout))
      return failure();
    SmallVector<Value> values(replacements.slice(next, types->size()));
    next += types->size();
    setTile(old, *layout, values);
    return success();
  };
  for (Value old : op.getRegionIterArgs())
    if (failed(bind(old, loop.getRegionIterArgs())))
      return failure();
  loop.getBody()->getOperations().splice(loop.getBody()->end(),
                                         op.getBody()->getOperations());
  if (failed(kernel.inBody([&] { return lowerBlock(*loop.getBody()); })))
    return failure();
  next = 0;
  for (Value old : op.getResults())
    if (failed(bind(old, loop.getResults())))
      return failure();
  kernel.dead.push_back(op);
  if (kernel.func->hasAttr(kRenewEntryAttr) && isLastLoop(op))
    kernel.renewEntry(op, isPartition);
  return success();
}

template <>
LogicalResult PartitionLowering::lower(scf::WhileOp op) {
  for (TypeRange types :
       {TypeRange(op.getOperandTypes()), TypeRange(op.getResultTypes())})
    if (llvm::any_of(types, isRegisters))
      return op.emitOpError("expected a loop that carries no tiles");
  for (Block *block : {op.getBeforeBody(), op.getAfterBody()})
    if (failed(kernel.inBody([&] { return lowerBlock(*block); })))
      return failure();
  return success();
}

template <>
LogicalResult PartitionLowering::lower(scf::IfOp op) {
  bool hasTiles = llvm::any_of(op.getResultTypes(), isRegisters);
  if (!hasTiles) {
    for (Region &region : op->getRegions())
      if (!region.empty() &&
          failed(kernel.inBody([&] { return lowerBlock(region.front()); })))
        return failure();
    return success();
  }
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Type> types;
  for (Type type : op.getResultTypes()) {
    FailureOr<SmallVector<Type>> expanded = expandedTypes(op, type);
    if (failed(expanded))
      return failure();
    llvm::append_range(types, *expanded);
  }
  auto branch = scf::IfOp::create(b, types, op.getCondition(),
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  branch->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  for (auto [from, to] : llvm::zip(op->getRegions(), branch->getRegions())) {
    to.front().getOperations().splice(to.front().end(),
                                      from.front().getOperations());
    if (failed(kernel.inBody([&] { return lowerBlock(to.front()); })))
      return failure();
  }
  unsigned next = 0;
  for (Value old : op.getResults()) {
    if (!isRegisters(old.getType())) {
      old.replaceAllUsesWith(branch.getResult(next++));
      continue;
    }
    FailureOr<TileLayout> layout = layoutOf(op, old.getType());
    FailureOr<SmallVector<Type>> expanded = expandedTypes(op, old.getType());
    if (failed(layout) || failed(expanded))
      return failure();
    SmallVector<Value> values(
        branch.getResults().slice(next, expanded->size()));
    next += expanded->size();
    setTile(old, *layout, values);
  }
  kernel.dead.push_back(op);
  return success();
}

FailureOr<Value> PartitionLowering::lowerVote(RareOp op) {
  FailureOr<TileValue> condition = tile(op, op.getCondition());
  if (failed(condition))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value any = condition->values.front();
  for (Value value : ArrayRef<Value>(condition->values).drop_front())
    any = arith::OrIOp::create(b, any, value);
  if (!op.getEachWarpgroup()) {
    Value all = arith::ConstantIntOp::create(b, -1, 32);
    return NVVM::VoteSyncOp::create(b, b.getI1Type(), all, any,
                                    NVVM::VoteSyncKind::any)
        .getResult();
  }
  if (!op.getBarrier())
    return op.emitOpError("expected a barrier from attn-insert-fences beside "
                          "'each_warpgroup'");
  Value id = arith::AddIOp::create(
      b, warpgroup(), arith::ConstantIntOp::create(b, *op.getBarrier(), 32));
  return LLVM::CallIntrinsicOp::create(
             b, b.getI1Type(),
             b.getStringAttr("llvm.nvvm.barrier.cta.red.or.count"),
             ValueRange{id, arith::ConstantIntOp::create(b, 128, 32), any})
      .getResult(0);
}

template <>
LogicalResult PartitionLowering::lower(RareOp op) {
  FailureOr<Value> taken = lowerVote(op);
  if (failed(taken))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);

  auto expand = [&](Operation *user,
                    ValueRange values) -> FailureOr<SmallVector<Value>> {
    SmallVector<Value> expanded;
    for (Value value : values) {
      if (!isRegisters(value.getType())) {
        expanded.push_back(value);
        continue;
      }
      FailureOr<TileValue> registers = tile(user, value);
      if (failed(registers))
        return failure();
      llvm::append_range(expanded, registers->values);
    }
    return expanded;
  };
  FailureOr<SmallVector<Value>> defaults = expand(op, op.getDefaults());
  if (failed(defaults))
    return failure();
  auto branch = scf::IfOp::create(b, ValueRange(*defaults).getTypes(), *taken,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  if (op.getLeaveLoop())
    branch->setAttr(kLeaveLoopAttrName, b.getUnitAttr());
  // The body moves into the branch and is lowered there; its terminator tells
  // what the branch yields.
  Block *thenBlock = branch.thenBlock();
  Operation *yield = op.getBody().front().getTerminator();
  thenBlock->getOperations().splice(thenBlock->end(),
                                    op.getBody().front().getOperations());
  auto lowerBody = [&]() -> LogicalResult {
    for (Operation &inner : llvm::make_early_inc_range(*thenBlock))
      if (&inner != yield && failed(lowerOp(&inner)))
        return failure();
    return success();
  };
  // On a path of a path nothing is to be ready in registers from the start.
  ++rareDepth;
  LogicalResult lowered = rareDepth > 1
                              ? kernel.withEntry(&thenBlock->front(), lowerBody)
                              : lowerBody();
  --rareDepth;
  if (failed(lowered))
    return failure();
  FailureOr<SmallVector<Value>> yielded = expand(yield, yield->getOperands());
  if (failed(yielded))
    return failure();
  b.setInsertionPointToEnd(thenBlock);
  scf::YieldOp::create(b, *yielded);
  kernel.dead.push_back(yield);
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, *defaults);

  unsigned next = 0;
  for (Value old : op.getResults()) {
    if (!isRegisters(old.getType())) {
      old.replaceAllUsesWith(branch.getResult(next++));
      continue;
    }
    FailureOr<TileLayout> layout = layoutOf(op, old.getType());
    FailureOr<SmallVector<Type>> types = expandedTypes(op, old.getType());
    if (failed(layout) || failed(types))
      return failure();
    SmallVector<Value> values(branch.getResults().slice(next, types->size()));
    next += types->size();
    setTile(old, *layout, values);
  }
  kernel.dead.push_back(op);
  return success();
}

template <>
LogicalResult PartitionLowering::lower(scf::YieldOp op) {
  SmallVector<Value> values;
  for (Value operand : op.getOperands()) {
    if (!isRegisters(operand.getType())) {
      values.push_back(operand);
      continue;
    }
    FailureOr<TileValue> value = tile(op, operand);
    if (failed(value))
      return failure();
    llvm::append_range(values, value->values);
  }
  OpBuilder b(op);
  op->setOperands(values);
  return success();
}

void lowering::addControlFlowLowerings(LoweringTable &table) {
  table.addKept<scf::IfOp, scf::ForOp, scf::WhileOp, scf::YieldOp, RareOp>();
}
