//===- FirstBlock.cpp - A first block of its own sizes --------------------===//
//
// The first block of a rotated loop (RotatedLoopExpander.cpp) with as many keys
// as each warpgroup needs. What depends on QK is cloned with fewer columns,
// once for each run of warpgroups with equal sizes, under a branch that all
// threads of a warpgroup take the same way. Probabilities leave the branch with
// the columns of the block, zeros behind their own. PV goes over the first ones
// only, under a branch too, beside QK of the second block; where there is no
// second one it goes over all. Slots, turns and releases are those of any
// block.
//
//===----------------------------------------------------------------------===//

#include "RotatedLoopExpander.h"

using namespace mlir;
using namespace mlir::attn;

/// The tile or accumulator type with `columns` columns.
static Type withColumns(Type type, int64_t columns) {
  if (auto inFlight = dyn_cast<InFlightType>(type))
    return InFlightType::get(type.getContext(),
                             {inFlight.getShape()[0], columns},
                             inFlight.getElementType());
  auto tile = cast<RankedTensorType>(type);
  return RankedTensorType::get({tile.getShape()[0], columns},
                               tile.getElementType(), tile.getEncoding());
}

/// True for ops that give each column of a tile on its own. Columns in the
/// order of quads are keys of the whole block.
static bool isColumnwise(Operation *op) {
  if (auto mask = dyn_cast<ApplyMaskOp>(op); mask && mask.getQuads())
    return false;
  if (auto map = dyn_cast<MapElementsOp>(op); map && map.getQuads())
    return false;
  if (auto narrow = dyn_cast<NarrowOperandOp>(op);
      narrow && narrow.getOrder() == KeyOrder::Quads)
    return false;
  return OpTrait::hasElementwiseMappableTraits(op) ||
         isa<ProductWaitOpInterface, ApplyMaskOp, MapElementsOp,
             NarrowOperandOp>(op);
}

/// True for a tile of equal elements, which has any width.
static bool isUniform(Value value) {
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    return isa<SplatElementsAttr>(constant.getValue());
  return value.getDefiningOp<tensor::SplatOp>() != nullptr;
}

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

LogicalResult RotatedExpander::followScores() {
  dependents.insert(qk);
  narrowed.insert(qk.getProduct());
  for (Operation &op : body.without_terminator()) {
    if (&op != qkWait && !llvm::is_contained(partB, &op))
      continue;
    auto followsFrom = [&](const DenseSet<Operation *> &ops) {
      return llvm::any_of(op.getOperands(), [&](Value operand) {
        return ops.contains(operand.getDefiningOp());
      });
    };
    if (!followsFrom(dependents))
      continue;
    dependents.insert(&op);
    if (&op == softmax) {
      behindSoftmax.insert(&op);
      narrowed.insert(softmax.getP());
      continue;
    }
    if (followsFrom(behindSoftmax))
      behindSoftmax.insert(&op);
    if (llvm::none_of(op.getOperands(), [&](Value operand) {
          return narrowed.contains(operand);
        }))
      continue;
    bool isNarrowable =
        isColumnwise(&op) && llvm::all_of(op.getOperands(), [&](Value operand) {
          return !isa<RankedTensorType>(operand.getType()) ||
                 narrowed.contains(operand) || isUniform(operand);
        });
    if (!isNarrowable)
      return op.emitOpError("with first expected ops between the two products "
                            "that take columns one by one");
    narrowed.insert(op.result_begin(), op.result_end());
  }
  return success();
}

LogicalResult RotatedExpander::checkOutputs() {
  auto add = [&](Value value) {
    if (dependents.contains(value.getDefiningOp()))
      outputs.insert(value);
  };
  for (auto [index, value] :
       llvm::enumerate(body.getTerminator()->getOperands()))
    if (index != accumulator)
      add(value);
  for (Value value : inputsC)
    add(value);
  for (Value value : outputs)
    if (!behindSoftmax.contains(value.getDefiningOp()) ||
        (narrowed.contains(value) && value != pv.getA()))
      return value.getDefiningOp()->emitOpError(
          "with first expected state and probabilities alone to leave the "
          "block");
  if (!pv.getAccumulator())
    return pv->emitOpError("with first expected PV to add to an accumulator");
  return success();
}

LogicalResult RotatedExpander::analyzeFirst() {
  ArrayRef<int64_t> sizes = *loop.getFirst();
  for (ProductOpInterface product : {qk, pv})
    if (!product.hasLimits())
      return product->emitOpError(
          "with first expected a product that can leave columns and depth out");
  int64_t groups = qk.getWarpgroups(), step = pv.getDepthStep();
  if (sizes.size() != 1 && static_cast<int64_t>(sizes.size()) != groups)
    return loop.emitOpError("expected one number in first or one for each of ")
           << groups << " warpgroups, got " << sizes.size();
  for (auto [index, keys] : llvm::enumerate(sizes)) {
    if (keys % step != 0)
      return loop.emitOpError("expected multiples of ")
             << step << " in first, as PV takes keys, got " << keys;
    if (runs.empty() || runs.back().keys != keys)
      runs.push_back({0, keys});
    runs.back().end = index + 1;
  }
  if (failed(followScores()) || failed(checkOutputs()))
    return failure();
  for (Operation *op : llvm::reverse(partB)) {
    if (dependents.contains(op))
      continue;
    bool isNeeded = llvm::any_of(op->getUsers(), [&](Operation *user) {
      Operation *own = body.findAncestorOpInBlock(*user);
      return dependents.contains(own) || needed.contains(own);
    });
    if (isNeeded)
      needed.insert(op);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

SmallVector<Value> RotatedExpander::emitByRun(
    TypeRange types, function_ref<SmallVector<Value>(int64_t keys)> emit) {
  if (runs.size() == 1)
    return emit(runs.front().keys);
  Value index = WarpgroupIndexOp::create(builder, loc);
  auto emitFrom = [&](auto &self, unsigned first) -> SmallVector<Value> {
    if (first + 1 == runs.size())
      return emit(runs[first].keys);
    Value isOwn = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                        index, constant(runs[first].end));
    auto branch =
        scf::IfOp::create(builder, loc, types, isOwn, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(builder, loc, emit(runs[first].keys));
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, loc, self(self, first + 1));
    return llvm::to_vector(ValueRange(branch.getResults()));
  };
  return emitFrom(emitFrom, 0);
}

void RotatedExpander::cloneNarrowed(Operation *op, int64_t keys,
                                    IRMapping &mapping) {
  Operation *clone = cloneForPhase(builder, op, KVPhase::Right, mapping);
  for (auto [from, to] : llvm::zip(op->getResults(), clone->getResults()))
    if (narrowed.contains(from))
      to.setType(withColumns(from.getType(), keys));
  if (op == qk)
    cast<ProductOpInterface>(clone).limitColumns(keys);
  if (!isColumnwise(op) || !narrowed.contains(op->getResult(0)))
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(clone);
  for (OpOperand &operand : clone->getOpOperands()) {
    Value value = operand.get();
    if (!isa<RankedTensorType>(value.getType()) || !isUniform(value))
      continue;
    auto type = cast<RankedTensorType>(withColumns(value.getType(), keys));
    Operation *uniform = builder.clone(*value.getDefiningOp());
    if (auto constant = dyn_cast<arith::ConstantOp>(uniform))
      constant.setValueAttr(
          cast<SplatElementsAttr>(constant.getValue()).resizeSplat(type));
    uniform->getResult(0).setType(type);
    operand.set(uniform->getResult(0));
  }
}

SmallVector<Value> RotatedExpander::emitFirstScores(int64_t keys,
                                                    IRMapping mapping) {
  bool isWhole = keys == static_cast<int64_t>(loop.getBlock());
  if (keys == 0) {
    // No keys: the state stays, and PV reads no probabilities.
    cloneAll(releasesA, mapping);
    mapping.map(softmax.getNewM(), mapping.lookupOrDefault(softmax.getM()));
    mapping.map(softmax.getNewL(), mapping.lookupOrDefault(softmax.getL()));
    mapping.map(softmax.getNewO(), mapping.lookupOrDefault(softmax.getO()));
    auto type = cast<RankedTensorType>(softmax.getP().getType());
    mapping.map(softmax.getP(),
                arith::ConstantOp::create(
                    builder, loc,
                    DenseElementsAttr::get(type, builder.getF32FloatAttr(0))));
  } else {
    cloneNarrowed(qk, keys, mapping);
    cloneNarrowed(qkWait, keys, mapping);
    Operation *wait = mapping.lookup(qkWait->getResult(0)).getDefiningOp();
    cast<ProductWaitOpInterface>(wait).setPendingGroups(0);
    cloneAll(releasesA, mapping);
  }
  for (Operation *op : partB) {
    if (keys != 0 && dependents.contains(op))
      cloneNarrowed(op, keys, mapping);
    else if (keys == 0 && behindSoftmax.contains(op) && op != softmax)
      builder.clone(*op, mapping);
  }
  SmallVector<Value> values;
  for (Value output : outputs) {
    Value value = mapping.lookup(output);
    if (narrowed.contains(output) && keys != 0 && !isWhole)
      value = ExtendColumnsOp::create(builder, loc, output.getType(), value);
    values.push_back(value);
  }
  return values;
}

SmallVector<Value> RotatedExpander::emitFirstBlock() {
  IRMapping mapping;
  mapping.map(loop.getKey(), keyOf(constant(0)));
  mapping.map(loop.getIterArgs(), loop.getInits());
  if (runs.empty()) {
    startQK(mapping);
    waitForQK(/*pending=*/0, mapping);
    emitSoftmaxPart(KVPhase::Right, mapping);
  } else {
    for (Operation *op : partA)
      if (op != qk)
        builder.clone(*op, mapping);
    for (Operation *op : partB)
      if (needed.contains(op))
        builder.clone(*op, mapping);
    SmallVector<Value> values =
        emitByRun(ValueRange(outputs.getArrayRef()).getTypes(),
                  [&](int64_t keys) { return emitFirstScores(keys, mapping); });
    mapping.map(outputs.getArrayRef(), values);
    for (Operation *op : partB)
      if (!needed.contains(op) && !dependents.contains(op))
        builder.clone(*op, mapping);
  }
  SmallVector<Value> carried = collectCarried(mapping);
  llvm::append_range(carried, lookupAll(inputsC, mapping));
  return carried;
}

SmallVector<Value> RotatedExpander::emitSecondBlock(KVPhase phase,
                                                    ValueRange carried) {
  Value second = constant(1);
  Value exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt,
                                       trips, second);
  auto branch = scf::IfOp::create(builder, loc, carried.getTypes(), exists,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc,
                       emitIteration(phase, second, carried, /*isFirst=*/true));
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, carried);
  return llvm::to_vector(ValueRange(branch.getResults()));
}

void RotatedExpander::startProduct(IRMapping &mapping, bool isFirst) {
  if (!isFirst || runs.empty())
    return cloneAll(partC, mapping);
  for (Operation *op : partC)
    if (op != pv)
      builder.clone(*op, mapping);
  // A warpgroup without keys multiplies zeros: ptxas serialises products where
  // one way has none (C7514), and the waits count each warpgroup's groups.
  int64_t least = pv.getDepthStep();
  auto emit = [&](int64_t keys) -> SmallVector<Value> {
    IRMapping own = mapping;
    auto product = cast<ProductOpInterface>(builder.clone(*pv, own));
    if (keys != static_cast<int64_t>(loop.getBlock()))
      product.limitDepth(std::max(keys, least));
    return {product.getProduct()};
  };
  mapping.map(pv.getProduct(), emitByRun(pv->getResultTypes(), emit).front());
}
