//===- RegionEvaluator.cpp - Run a score_mod or mask_mod region -----------===//

#include "attn/Analysis/Flow/RegionEvaluator.h"
#include "RegionArithmetic.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::attn;

namespace mlir::attn {

/// Builds a RegionEvaluator from a region.
class RegionTranslator {
public:
  explicit RegionTranslator(Region &region) : region(region) {}

  llvm::Error run();
  RegionEvaluator evaluator;

private:
  llvm::Error translate(Operation *op);
  llvm::Error translateLoad(memref::LoadOp load);
  llvm::Expected<unsigned> getNumber(Value value);
  unsigned addCapture(Value value);

  Region &region;
  llvm::DenseMap<Value, unsigned> numbers;
};

} // namespace mlir::attn

/// A constant of a type that numbers can hold.
static std::optional<RegionNumber> getConstant(Value value) {
  Attribute attr;
  if (!matchPattern(value, m_Constant(&attr)))
    return std::nullopt;
  RegionNumber number;
  if (auto real = dyn_cast<FloatAttr>(attr))
    number.real = real.getValueAsDouble();
  else if (auto integer = dyn_cast<IntegerAttr>(attr);
           integer && integer.getValue().getBitWidth() <= 64)
    number.integer = integer.getValue().getSExtValue();
  else
    return std::nullopt;
  return number;
}

llvm::Error RegionTranslator::run() {
  Block &block = region.front();
  for (Value argument : block.getArguments())
    numbers[argument] = evaluator.numValues++;
  evaluator.numArguments = evaluator.numValues;
  for (Operation &op : llvm::drop_end(block))
    if (llvm::Error error = translate(&op))
      return error;
  llvm::Expected<unsigned> yielded =
      getNumber(block.getTerminator()->getOperand(0));
  if (!yielded)
    return yielded.takeError();
  evaluator.yielded = *yielded;
  evaluator.loads.resize(evaluator.captures.size());
  evaluator.isBound.assign(evaluator.captures.size(), false);
  return llvm::Error::success();
}

unsigned RegionTranslator::addCapture(Value value) {
  auto known = llvm::find(evaluator.captures, value);
  if (known != evaluator.captures.end())
    return known - evaluator.captures.begin();
  evaluator.captures.push_back(value);
  evaluator.captureNumbers.push_back(0);
  return evaluator.captures.size() - 1;
}

llvm::Expected<unsigned> RegionTranslator::getNumber(Value value) {
  auto known = numbers.find(value);
  if (known != numbers.end())
    return known->second;
  if (!isNumberType(value.getType()))
    return makeTypeError(value.getType());
  unsigned number = evaluator.numValues++;
  numbers[value] = number;
  if (std::optional<RegionNumber> constant = getConstant(value))
    evaluator.constants.push_back({number, *constant});
  else
    evaluator.captureNumbers[addCapture(value)] = number;
  return number;
}

llvm::Error RegionTranslator::translateLoad(memref::LoadOp load) {
  if (!isNumberType(load.getType()))
    return makeTypeError(load.getType());
  RegionEvaluator::Step step;
  for (Value index : load.getIndices()) {
    llvm::Expected<unsigned> number = getNumber(index);
    if (!number)
      return number.takeError();
    step.operands.push_back(*number);
  }
  step.capture = addCapture(load.getMemRef());
  step.isInteger = !isa<FloatType>(load.getType());
  step.result = numbers[load.getResult()] = evaluator.numValues++;
  evaluator.steps.push_back(std::move(step));
  return llvm::Error::success();
}

llvm::Error RegionTranslator::translate(Operation *op) {
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return translateLoad(load);
  // Constants become numbers where they are used.
  if (op->hasTrait<OpTrait::ConstantLike>())
    return llvm::Error::success();
  RegionEvaluator::Step step;
  step.compute = getArithmetic(op);
  if (!step.compute)
    return llvm::createStringError(
        "expected arith, math or memref.load operations that the reference "
        "can evaluate, got '" +
        op->getName().getStringRef() + "'");
  for (Type type : op->getOperandTypes())
    if (!isNumberType(type))
      return makeTypeError(type);
  if (!isNumberType(op->getResult(0).getType()))
    return makeTypeError(op->getResult(0).getType());
  for (Value operand : op->getOperands()) {
    llvm::Expected<unsigned> number = getNumber(operand);
    if (!number)
      return number.takeError();
    step.operands.push_back(*number);
  }
  step.result = numbers[op->getResult(0)] = evaluator.numValues++;
  evaluator.steps.push_back(std::move(step));
  return llvm::Error::success();
}

llvm::Expected<RegionEvaluator> RegionEvaluator::get(Region &region) {
  RegionTranslator translator(region);
  if (llvm::Error error = translator.run())
    return std::move(error);
  return std::move(translator.evaluator);
}

void RegionEvaluator::bindMemRef(unsigned capture, RegionLoad load) {
  loads[capture] = std::move(load);
  isBound[capture] = true;
}

void RegionEvaluator::bindScalar(unsigned capture, RegionNumber value) {
  constants.push_back({captureNumbers[capture], value});
  isBound[capture] = true;
}

llvm::Expected<RegionNumber>
RegionEvaluator::evaluate(ArrayRef<RegionNumber> arguments) const {
  if (arguments.size() != numArguments)
    return llvm::createStringError("expected " + Twine(numArguments) +
                                   " arguments of a region, got " +
                                   Twine(arguments.size()));
  if (!llvm::all_of(isBound, [](bool bound) { return bound; }))
    return llvm::createStringError(
        "expected all captured values of a region to be bound");
  SmallVector<RegionNumber, 32> values(numValues);
  llvm::copy(arguments, values.begin());
  for (auto [number, constant] : constants)
    values[number] = constant;
  for (const Step &step : steps) {
    if (step.compute) {
      RegionNumber operands[3];
      for (auto [index, operand] : llvm::enumerate(step.operands))
        operands[index] = values[operand];
      if (!step.compute(operands, values[step.result]))
        return llvm::createStringError("division by zero in a region");
      continue;
    }
    SmallVector<int64_t, 4> index;
    for (unsigned operand : step.operands)
      index.push_back(values[operand].integer);
    llvm::Expected<double> element = loads[step.capture](index);
    if (!element)
      return element.takeError();
    if (step.isInteger)
      values[step.result].integer = static_cast<int64_t>(*element);
    else
      values[step.result].real = *element;
  }
  return values[yielded];
}
