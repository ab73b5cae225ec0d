//===- EmitSize.cpp - Sizes in host and kernel code -----------------------===//

#include "EmitSize.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::attn;

static Value emitStep(ImplicitLocOpBuilder &b, SizeExpr::Op op, Value left,
                      Value right) {
  switch (op) {
  case SizeExpr::Op::Add:
    return arith::AddIOp::create(b, left, right);
  case SizeExpr::Op::Sub:
    return arith::SubIOp::create(b, left, right);
  case SizeExpr::Op::Mul:
    return arith::MulIOp::create(b, left, right);
  case SizeExpr::Op::FloorDiv:
    return arith::FloorDivSIOp::create(b, left, right);
  case SizeExpr::Op::CeilDiv: {
    if (left.getType().isIndex())
      return arith::CeilDivSIOp::create(b, left, right);
    // Kernels are not given that operation; extents are not negative.
    Value one =
        arith::ConstantOp::create(b, b.getIntegerAttr(left.getType(), 1));
    return arith::DivUIOp::create(
        b, arith::AddIOp::create(b, left, arith::SubIOp::create(b, right, one)),
        right);
  }
  case SizeExpr::Op::Mod:
    // The sign is the divisor's.
    return arith::SubIOp::create(
        b, left,
        arith::MulIOp::create(b, arith::FloorDivSIOp::create(b, left, right),
                              right));
  case SizeExpr::Op::Min:
    return arith::MinSIOp::create(b, left, right);
  case SizeExpr::Op::Max:
    return arith::MaxSIOp::create(b, left, right);
  case SizeExpr::Op::Constant:
  case SizeExpr::Op::Symbol:
  case SizeExpr::Op::Neg:
    break;
  }
  llvm_unreachable("a step with two operands");
}

Value attn::emitSize(ImplicitLocOpBuilder &b, Type type,
                     const SizeExpr &expression,
                     llvm::function_ref<Value(const SizeSymbol &)> getSymbol) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
  };
  SmallVector<Value> stack;
  for (SizeExpr::Step step : expression.getSteps()) {
    if (step.op == SizeExpr::Op::Constant) {
      stack.push_back(constant(step.value));
    } else if (step.op == SizeExpr::Op::Symbol) {
      stack.push_back(getSymbol(expression.getSymbols()[step.value]));
    } else {
      Value right = stack.pop_back_val();
      bool isNeg = step.op == SizeExpr::Op::Neg;
      Value left = isNeg ? constant(0) : stack.pop_back_val();
      stack.push_back(
          emitStep(b, isNeg ? SizeExpr::Op::Sub : step.op, left, right));
    }
  }
  return stack.back();
}
