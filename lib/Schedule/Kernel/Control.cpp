//===- Control.cpp - Loops and branches that carry by themselves ----------===//

#include "attn/Schedule/Kernel/Control.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

Var::Var(Control &control, Value init)
    : control(&control), index(control.values.size()) {
  control.values.push_back(init);
}

Var &Var::operator=(Value value) {
  assert(index < control->values.size() && "expected a variable that lives");
  control->values[index] = value;
  return *this;
}

Value Var::get() const {
  assert(index < control->values.size() && "expected a variable that lives");
  return control->values[index];
}

Vars::Vars(Control &control, ValueRange inits) {
  for (Value init : inits)
    all.emplace_back(control, init);
}

SmallVector<Value> Vars::get() const {
  return llvm::map_to_vector(all, [](const Var &var) { return var.get(); });
}

Vars &Vars::operator=(ValueRange values) {
  for (auto [var, value] : llvm::zip_equal(all, values))
    var = value;
  return *this;
}

SmallVector<Value> Control::getValues(ArrayRef<unsigned> variables) const {
  return llvm::map_to_vector(variables,
                             [&](unsigned index) { return values[index]; });
}

void Control::setValues(ArrayRef<unsigned> variables, ValueRange to) {
  for (auto [index, value] : llvm::zip_equal(variables, to))
    values[index] = value;
}

void Control::runScope(Body body) {
  size_t living = values.size();
  body();
  values.resize(living);
}

//===----------------------------------------------------------------------===//
// Trials
//===----------------------------------------------------------------------===//

SmallVector<unsigned> Control::findAssigned(Type indexType, IndexBody body) {
  std::vector<Value> before = values;
  OpBuilder::InsertionGuard guard(b);
  // In place, so that what asks for its parents finds them.
  auto place = scf::ExecuteRegionOp::create(b, TypeRange());
  trial = b.createBlock(&place.getRegion());
  Value index = indexType ? trial->addArgument(indexType, b.getLoc()) : Value();
  runScope([&] { body(index); });
  trial = nullptr;
  SmallVector<unsigned> assigned;
  for (unsigned i = 0; i < before.size(); ++i)
    if (values[i] != before[i])
      assigned.push_back(i);
  values = std::move(before);
  place.erase();
  return assigned;
}

//===----------------------------------------------------------------------===//
// Loops and branches
//===----------------------------------------------------------------------===//

void Control::makeLoop(Type indexType, IndexBody body,
                       function_ref<Operation *(ValueRange, Fill)> create,
                       function_ref<void(ValueRange)> yield) {
  if (!whole)
    return;
  // What a loop in a trial assigns counts for the trial, nothing else does.
  if (trial) {
    Value index = trial->addArgument(indexType, b.getLoc());
    return runScope([&] { body(index); });
  }
  SmallVector<unsigned> carried = findAssigned(indexType, body);
  if (!whole)
    return;
  Operation *op =
      create(getValues(carried), [&](OpBuilder &builder, Location, Value index,
                                     ValueRange arguments) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(builder.getInsertionBlock());
        setValues(carried, arguments);
        runScope([&] { body(index); });
        yield(getValues(carried));
      });
  setValues(carried, op->getResults());
}

void Control::forRange(Value begin, Value end, IndexBody body,
                       function_ref<void(Operation *)> complete) {
  forRange(begin, end, /*step=*/Value(), body, complete);
}

void Control::forRange(Value begin, Value end, Value step, IndexBody body,
                       function_ref<void(Operation *)> complete) {
  makeLoop(
      begin.getType(), body,
      [&](ValueRange inits, Fill fill) -> Operation * {
        if (!step)
          step = arith::ConstantIntOp::create(b, begin.getType(), 1);
        auto loop = scf::ForOp::create(b, begin, end, step, inits, fill);
        if (complete)
          complete(loop);
        return loop;
      },
      [&](ValueRange values) { scf::YieldOp::create(b, values); });
}

void Control::loop(Type indexType, IndexBody body,
                   function_ref<Operation *(ValueRange, Fill)> create) {
  makeLoop(indexType, body, create,
           [&](ValueRange values) { YieldOp::create(b, values); });
}

void Control::ifThen(Value condition, Body body) {
  ifElse(condition, body, [] {});
}

void Control::ifElse(Value condition, Body body, Body otherwise) {
  if (!whole)
    return;
  if (trial) {
    runScope(body);
    return runScope(otherwise);
  }
  SmallVector<unsigned> carried = findAssigned(/*indexType=*/{}, [&](Value) {
    runScope(body);
    runScope(otherwise);
  });
  if (!whole)
    return;
  SmallVector<Value> before = getValues(carried);
  auto branch = scf::IfOp::create(b, ValueRange(before).getTypes(), condition,
                                  /*withElseRegion=*/true);
  auto fill = [&](Block *block, Body part) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(block);
    setValues(carried, before);
    runScope(part);
    if (!before.empty())
      scf::YieldOp::create(b, getValues(carried));
  };
  fill(branch.thenBlock(), body);
  fill(branch.elseBlock(), otherwise);
  if (before.empty() && branch.elseBlock()->without_terminator().empty())
    branch.getElseRegion().getBlocks().clear();
  setValues(carried, branch.getResults());
}

void Control::rarely(Value condition, Body body) {
  if (!whole)
    return;
  if (trial)
    return runScope(body);
  SmallVector<unsigned> carried =
      findAssigned(/*indexType=*/{}, [&](Value) { body(); });
  if (!whole)
    return;
  SmallVector<Value> before = getValues(carried);
  auto path = RareOp::create(b, ValueRange(before).getTypes(), condition,
                             before, /*each_warpgroup=*/false,
                             /*barrier=*/IntegerAttr(), /*leave_loop=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&path.getBody());
    runScope(body);
    YieldOp::create(b, getValues(carried));
  }
  setValues(carried, path.getResults());
}

void Control::fillRegion(Region &region, Body body) {
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&region);
  auto end = YieldOp::create(b, ValueRange());
  b.setInsertionPoint(end);
  runScope(body);
}

void Control::elect(Body body) {
  fillRegion(ElectOp::create(b).getBody(), body);
}

void Control::inLeader(Body body, int64_t bits) {
  IntegerAttr attr = bits == 0 ? IntegerAttr() : b.getI64IntegerAttr(bits);
  fillRegion(ClusterLeaderOp::create(b, attr).getBody(), body);
}

void Control::partitions(ArrayRef<Partition> list) {
  SmallVector<StringRef> names;
  SmallVector<int64_t> warps, grids, registers;
  for (const Partition &each : list) {
    names.push_back(each.name);
    warps.push_back(each.warps);
    llvm::append_range(grids, each.grid);
    registers.push_back(each.registers);
  }
  auto op = WarpSpecializeOp::create(
      b, b.getStrArrayAttr(names), b.getDenseI64ArrayAttr(warps),
      b.getDenseI64ArrayAttr(grids), b.getDenseI64ArrayAttr(registers),
      /*partitionsCount=*/list.size());
  for (auto [region, each] : llvm::zip_equal(op.getPartitions(), list))
    fillRegion(region, each.body);
}
