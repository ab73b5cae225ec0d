//===- Elements.cpp - Scalar regions of elements and rows -----------------===//

#include "FindKey.h"
#include "Masks.h"
#include "PartitionLowering.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

/// Clones operations of a scalar region, but for those that `mapping` has
/// already. Failure after a diagnostic.
static LogicalResult inlineOperations(PartitionLowering &lowering,
                                      ImplicitLocOpBuilder &b,
                                      ArrayRef<Operation *> operations,
                                      IRMapping &mapping) {
  for (Operation *inner : operations) {
    if (inner->getNumResults() == 1 && mapping.contains(inner->getResult(0)))
      continue;
    // Scalars take the same approximate instructions as tiles.
    if (inner->getNumOperands() == 1 && inner->getNumResults() == 1)
      if (Value value = lowerApproximate(
              b, inner, mapping.lookupOrDefault(inner->getOperand(0)))) {
        mapping.map(inner->getResult(0), value);
        continue;
      }
    if (inner->getNumOperands() == 1)
      if (Value value = convertByte(
              b, *inner, mapping.lookupOrDefault(inner->getOperand(0)),
              lowering.kernel.someTargetLacks(Capability::Fp8))) {
        mapping.map(inner->getResult(0), value);
        continue;
      }
    Operation *copy = b.clone(*inner, mapping);
    if (auto find = dyn_cast<FindKeyOp>(copy)) {
      mapping.map(inner->getResult(0), emitFoundKey(find));
      copy->erase();
      continue;
    }
    for (Region &region : copy->getRegions())
      for (Block &block : region)
        if (failed(lowering.lowerBlock(block)))
          return failure();
  }
  return success();
}

/// Clones the operations of a scalar region and returns what it yields. Failure
/// after a diagnostic.
static FailureOr<SmallVector<Value>> inlineScalars(PartitionLowering &lowering,
                                                   ImplicitLocOpBuilder &b,
                                                   Block &body,
                                                   IRMapping &mapping) {
  SmallVector<Operation *> operations;
  for (Operation &inner : body.without_terminator())
    operations.push_back(&inner);
  if (failed(inlineOperations(lowering, b, operations, mapping)))
    return failure();
  return llvm::map_to_vector(
      body.getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
}

//===----------------------------------------------------------------------===//
// Loads that do not wait for elements
//===----------------------------------------------------------------------===//

/// Finds the operations of a scalar region that ask for no element, if there
/// are loads among them.
static SmallVector<Operation *> findEarlyLoads(Block &body) {
  SmallVector<Operation *> early;
  llvm::DenseSet<Value> late = {body.getArgument(0)};
  bool hasLoad = false;
  for (Operation &inner : body.without_terminator()) {
    auto load = dyn_cast<LLVM::LoadOp>(inner);
    bool isEarly =
        inner.getNumRegions() == 0 && inner.getNumResults() == 1 &&
        (isMemoryEffectFree(&inner) || (load && !load.getVolatile_())) &&
        llvm::none_of(inner.getOperands(),
                      [&](Value operand) { return late.contains(operand); });
    if (!isEarly) {
      late.insert_range(inner.getResults());
      continue;
    }
    early.push_back(&inner);
    hasLoad |= static_cast<bool>(load);
  }
  if (!hasLoad)
    early.clear();
  return early;
}

/// Returns the operation of the block of `op` behind which `values` are there
/// and nothing branches; null for the block's beginning.
static Operation *findEarliest(Operation *op, ArrayRef<Value> values) {
  Operation *at = op->getPrevNode();
  while (at && at->getNumRegions() == 0 &&
         llvm::none_of(
             values, [&](Value value) { return value.getDefiningOp() == at; }))
    at = at->getPrevNode();
  return at;
}

/// Loads what elements are changed by as soon as the block can, so that nobody
/// waits for it. More than `kMost` elements of a thread have no registers for
/// that.
static LogicalResult emitEarlyLoads(
    PartitionLowering &lowering, MapElementsOp op,
    function_ref<void(ImplicitLocOpBuilder &, unsigned, IRMapping &)> mapPlace,
    MutableArrayRef<IRMapping> mappings) {
  constexpr size_t kMost = 64;
  if (!op->hasAttr(kEarlyLoadsAttr) || op.getUnless() ||
      mappings.size() > kMost)
    return success();
  SmallVector<Operation *> early = findEarlyLoads(op.getBody().front());
  if (early.empty())
    return success();
  SmallVector<Value> needed = {op.getRow(), op.getColumn()};
  for (Operation *inner : early)
    llvm::append_range(needed, inner->getOperands());
  ImplicitLocOpBuilder b(op.getLoc(), op);
  if (Operation *behind = findEarliest(op, needed))
    b.setInsertionPointAfter(behind);
  else
    b.setInsertionPointToStart(op->getBlock());
  for (auto [index, mapping] : llvm::enumerate(mappings)) {
    mapPlace(b, index, mapping);
    if (failed(inlineOperations(lowering, b, early, mapping)))
      return failure();
  }
  return success();
}

template <>
LogicalResult PartitionLowering::lower(MapElementsOp op) {
  FailureOr<TileValue> source = tile(op, op.getSource());
  if (failed(source))
    return failure();
  const TileLayout &layout = source->layout;
  FailureOr<ColumnKeys> keys = getColumnKeys(op, layout, op.getQuads());
  if (failed(keys))
    return failure();
  Value threadRow = threadCoordinate(layout, 0);
  Value threadColumn = layout.rank() == 1
                           ? Value()
                           : threadCoordinate(layout, 1, keys->threadStep);
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> scalars = unpack(b, *source);
  SmallVector<int64_t> rows = registerCoordinates(layout, 0);
  Block &body = op.getBody().front();
  auto mapPlace = [&](ImplicitLocOpBuilder &at, unsigned index,
                      IRMapping &mapping) {
    auto add = [&](Value base, Value thread, int64_t distance) -> Value {
      if (thread)
        base = arith::AddIOp::create(at, base, thread);
      return arith::AddIOp::create(
          at, base, arith::ConstantIntOp::create(at, distance, 32));
    };
    mapping.map(body.getArgument(1), add(op.getRow(), threadRow, rows[index]));
    mapping.map(body.getArgument(2),
                add(op.getColumn(), threadColumn, keys->registers[index]));
  };
  SmallVector<IRMapping> mappings(scalars.size());
  if (failed(emitEarlyLoads(*this, op, mapPlace, mappings)))
    return failure();
  SmallVector<Type> types(scalars.size(), source->elementType);
  scf::IfOp branch;
  if (op.getUnless()) {
    branch = scf::IfOp::create(b, types, op.getUnless(), /*addThenBlock=*/true,
                               /*addElseBlock=*/true);
    b.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(b, scalars);
    b.setInsertionPointToEnd(branch.elseBlock());
  }
  SmallVector<Value> results;
  for (auto [index, scalar] : llvm::enumerate(scalars)) {
    IRMapping &mapping = mappings[index];
    if (!mapping.contains(body.getArgument(1)))
      mapPlace(b, index, mapping);
    mapping.map(body.getArgument(0), scalar);
    FailureOr<SmallVector<Value>> yielded =
        inlineScalars(*this, b, body, mapping);
    if (failed(yielded))
      return failure();
    results.push_back(yielded->front());
  }
  if (branch) {
    scf::YieldOp::create(b, results);
    b.setInsertionPointAfter(branch);
    results = llvm::to_vector_of<Value>(branch.getResults());
  }
  setTile(op.getResult(), layout, pack(b, results, source->elementType));
  return success();
}

template <>
LogicalResult PartitionLowering::lower(RowKeysOp op) {
  FailureOr<TileLayout> layout = layoutOf(op, op.getFrom().getType());
  if (failed(layout))
    return failure();
  Value threadRow = threadCoordinate(*layout, 0);
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<int64_t> rows = registerCoordinates(*layout, 0);
  SmallVector<Type> types(2 * rows.size(), b.getI32Type());
  types.push_back(b.getI1Type());
  auto branch = scf::IfOp::create(b, types, op.getSame(), /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  b.setInsertionPointToEnd(branch.thenBlock());
  SmallVector<Value> known(rows.size(), op.getBegin());
  known.append(rows.size(), op.getEnd());
  Value yes = arith::ConstantIntOp::create(b, 1, 1);
  known.push_back(yes);
  scf::YieldOp::create(b, known);

  b.setInsertionPointToEnd(branch.elseBlock());
  Value rowBase = arith::AddIOp::create(b, op.getRow(), threadRow);
  Value exact = arith::ConstantIntOp::create(b, 1, 1);
  SmallVector<Value> from, to;
  for (int64_t row : rows) {
    IRMapping mapping;
    mapping.map(op.getBody().getArgument(0),
                arith::AddIOp::create(
                    b, rowBase, arith::ConstantIntOp::create(b, row, 32)));
    FailureOr<SmallVector<Value>> yielded =
        inlineScalars(*this, b, op.getBody().front(), mapping);
    if (failed(yielded))
      return failure();
    ArrayRef<Value> range = *yielded;
    from.push_back(range[0]);
    to.push_back(range[1]);
    for (auto [full, bound] :
         {std::pair(range[2], range[0]), std::pair(range[1], range[3])})
      exact = arith::AndIOp::create(
          b, exact,
          arith::CmpIOp::create(b, arith::CmpIPredicate::sle, full, bound));
  }
  Value all = arith::ConstantIntOp::create(b, -1, 32);
  exact = NVVM::VoteSyncOp::create(b, b.getI1Type(), all, exact,
                                   NVVM::VoteSyncKind::all);
  SmallVector<Value> found = from;
  llvm::append_range(found, to);
  found.push_back(exact);
  scf::YieldOp::create(b, found);

  ValueRange results = branch.getResults();
  setTile(op.getFrom(), *layout,
          llvm::to_vector(results.take_front(rows.size())));
  setTile(op.getTo(), *layout,
          llvm::to_vector(results.drop_back().take_back(rows.size())));
  op.getExact().replaceAllUsesWith(results.back());
  return success();
}

void lowering::addElementLowerings(LoweringTable &table) {
  table.addReplaced<MapElementsOp, RowKeysOp>();
}
