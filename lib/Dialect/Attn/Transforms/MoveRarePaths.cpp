//===- MoveRarePaths.cpp - Rare paths out of the loops they end -----------===//

#include "RarePath.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNMOVERAREPATHSPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
/// A loop that ends with a rare path, and what follows that in the body.
class Loop {
public:
  Loop(scf::ForOp loop, scf::IfOp path)
      : loop(loop), path(path), builder(loop.getLoc(), loop) {}

  /// True if only arithmetic and what can be left out follow the path.
  bool endsWithPath();
  /// Replaces the loop; the number of values that the path reads.
  unsigned rewrite();

private:
  /// The values of the body that the path, or what follows it, reads.
  SmallVector<Value> collectInputs();
  /// What follows the path on its `results`; the values of the next iteration.
  /// Branches are taken only where `condition` is true too, if there is one.
  SmallVector<Value> cloneTail(IRMapping &mapping, ValueRange results,
                               Value condition = Value());
  scf::WhileOp emitInner(ValueRange carried, ArrayRef<Value> inputs);
  /// Whether a trip of the loop has this counter.
  Value emitIsBelowEnd(Value counter);
  /// The path, where an iteration left the inner loop for it.
  ValueRange emitPath(scf::WhileOp inner, ArrayRef<Value> inputs);

  unsigned numCarried() { return loop.getNumRegionIterArgs(); }

  scf::ForOp loop;
  scf::IfOp path;
  ImplicitLocOpBuilder builder;
};
} // namespace

/// True for a branch without results, which can be kept from being taken.
static bool isOptional(Operation *op) {
  auto branch = dyn_cast<scf::IfOp>(op);
  return branch && branch->getNumResults() == 0 && !branch.elseBlock();
}

bool Loop::endsWithPath() {
  for (Operation *op = path->getNextNode(); op; op = op->getNextNode()) {
    bool isPure = op->getNumRegions() == 0 && isMemoryEffectFree(op);
    // Warps may meet once more.
    if (!op->hasTrait<OpTrait::IsTerminator>() && !isPure &&
        !isa<NVVM::SyncWarpOp>(op) && !isOptional(op))
      return false;
  }
  return true;
}

SmallVector<Value> Loop::collectInputs() {
  llvm::SetVector<Value> inputs;
  auto collect = [&](Operation *op) {
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      Block *block = operand.getParentBlock();
      bool isOfBody =
          block == loop.getBody() && (!def || def->isBeforeInBlock(path));
      if (isOfBody)
        inputs.insert(operand);
    }
  };
  path.getThenRegion().walk(collect);
  for (Operation *op = path->getNextNode(); op; op = op->getNextNode())
    op->walk(collect);
  return inputs.takeVector();
}

SmallVector<Value> Loop::cloneTail(IRMapping &mapping, ValueRange results,
                                   Value condition) {
  mapping.map(path.getResults(), results);
  for (Operation *op = path->getNextNode(); op; op = op->getNextNode()) {
    if (op->hasTrait<OpTrait::IsTerminator>())
      break;
    Operation *clone = builder.clone(*op, mapping);
    if (condition && isOptional(op)) {
      auto branch = cast<scf::IfOp>(clone);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(branch);
      branch.getConditionMutable().assign(
          arith::AndIOp::create(builder, branch.getCondition(), condition));
    }
  }
  SmallVector<Value> next;
  for (Value value : loop.getYieldedValues())
    next.push_back(mapping.lookupOrDefault(value));
  return next;
}

scf::WhileOp Loop::emitInner(ValueRange carried, ArrayRef<Value> inputs) {
  Type i1 = builder.getI1Type();
  SmallVector<Type> results(carried.getTypes());
  results.append({i1, i1});
  llvm::append_range(results, ValueRange(inputs).getTypes());
  auto inner = scf::WhileOp::create(builder, results, carried);
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Location> locations(carried.size(), loop.getLoc());
  Block *before = builder.createBlock(&inner.getBefore(), {},
                                      carried.getTypes(), locations);
  IRMapping mapping;
  mapping.map(loop.getBody()->getArguments(), before->getArguments());
  for (Operation &op :
       llvm::make_range(loop.getBody()->begin(), Block::iterator(path)))
    builder.clone(op, mapping);
  SmallVector<Value> defaults;
  for (Value value : path.elseYield().getOperands())
    defaults.push_back(mapping.lookupOrDefault(value));
  SmallVector<Value> values;
  for (Value input : inputs)
    values.push_back(mapping.lookup(input));
  Value taken = mapping.lookupOrDefault(path.getCondition());
  Value isCommon = arith::XOrIOp::create(
      builder, taken, arith::ConstantIntOp::create(builder, 1, 1));
  SmallVector<Value> next = cloneTail(mapping, defaults, isCommon);
  Value index =
      arith::AddIOp::create(builder, before->getArgument(0), loop.getStep());
  Value more = emitIsBelowEnd(index);
  next.insert(next.begin(), index);
  next.append({more, taken});
  llvm::append_range(next, values);
  scf::ConditionOp::create(
      builder, arith::AndIOp::create(builder, more, isCommon), next);
  locations.resize(results.size(), loop.getLoc());
  Block *after = builder.createBlock(&inner.getAfter(), {}, results, locations);
  scf::YieldOp::create(builder,
                       after->getArguments().take_front(carried.size()));
  return inner;
}

Value Loop::emitIsBelowEnd(Value counter) {
  auto less = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult
                                    : arith::CmpIPredicate::slt;
  return arith::CmpIOp::create(builder, less, counter, loop.getUpperBound());
}

ValueRange Loop::emitPath(scf::WhileOp inner, ArrayRef<Value> inputs) {
  ValueRange results = inner.getResults();
  ValueRange carried = results.slice(1, numCarried());
  Value taken = results[numCarried() + 2];
  auto branch = scf::IfOp::create(builder, carried.getTypes(), taken,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  IRMapping mapping;
  mapping.map(ValueRange(inputs), results.take_back(inputs.size()));
  for (Operation &op : path.thenBlock()->without_terminator())
    builder.clone(op, mapping);
  SmallVector<Value> yielded;
  for (Value value : path.thenYield().getOperands())
    yielded.push_back(mapping.lookupOrDefault(value));
  scf::YieldOp::create(builder, cloneTail(mapping, yielded));
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, carried);
  return branch.getResults();
}

unsigned Loop::rewrite() {
  SmallVector<Value> inputs = collectInputs();
  Value some = emitIsBelowEnd(loop.getLowerBound());
  auto guarded = scf::IfOp::create(builder, loop.getResultTypes(), some,
                                   /*addThenBlock=*/true,
                                   /*addElseBlock=*/true);
  builder.setInsertionPointToStart(guarded.elseBlock());
  scf::YieldOp::create(builder, loop.getInitArgs());

  builder.setInsertionPointToStart(guarded.thenBlock());
  SmallVector<Value> inits = {loop.getLowerBound()};
  llvm::append_range(inits, loop.getInitArgs());
  SmallVector<Type> types(ValueRange(inits).getTypes());
  SmallVector<Location> locations(types.size(), loop.getLoc());
  auto outer = scf::WhileOp::create(builder, types, inits);
  scf::YieldOp::create(builder, outer.getResults().drop_front());

  Block *before = builder.createBlock(&outer.getBefore(), {}, types, locations);
  scf::WhileOp inner = emitInner(before->getArguments(), inputs);
  SmallVector<Value> next = {inner.getResult(0)};
  llvm::append_range(next, emitPath(inner, inputs));
  scf::ConditionOp::create(builder, inner.getResult(numCarried() + 1), next);
  Block *after = builder.createBlock(&outer.getAfter(), {}, types, locations);
  scf::YieldOp::create(builder, after->getArguments());

  loop.replaceAllUsesWith(guarded.getResults());
  loop.erase();
  return inputs.size();
}

namespace {
struct AttnMoveRarePathsPass
    : attn::impl::AttnMoveRarePathsPassBase<AttnMoveRarePathsPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
      SmallVector<scf::IfOp> paths;
      kernel.walk([&](scf::IfOp op) {
        if (op->hasAttr(kLeaveLoopAttrName))
          paths.push_back(op);
      });
      for (scf::IfOp path : paths)
        move(path);
    }
  }

  void move(scf::IfOp path) {
    auto options =
        remark::RemarkOpts::name("rare-path").category("attn.move-rare-paths");
    Location loc = path.getLoc();
    auto loop = dyn_cast<scf::ForOp>(path->getParentOp());
    if (!loop || !Loop(loop, path).endsWithPath()) {
      ++numKept;
      remark::missed(loc, options) << remark::reason(
          "the path stays where it is: more than arithmetic follows it");
      return;
    }
    ++numMoved;
    unsigned inputs = Loop(loop, path).rewrite();
    remark::passed(loc, options)
        << remark::add("the loop is left where the path is taken")
        << remark::metric("inputs", inputs);
  }
};
} // namespace
