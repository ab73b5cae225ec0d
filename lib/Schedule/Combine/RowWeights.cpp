//===- RowWeights.cpp - What a run of keys weighs in a row ----------------===//

#include "RowWeights.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

static Value makeF32(ImplicitLocOpBuilder &b, double value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

static Value call(ImplicitLocOpBuilder &b, llvm::StringRef intrinsic,
                  Value operand) {
  return LLVM::CallIntrinsicOp::create(
             b, b.getF32Type(), b.getStringAttr(intrinsic), ValueRange{operand})
      .getResults();
}

/// Returns `lse` where that is finite or NaN; the largest finite number for
/// +inf.
static Value makeFinite(ImplicitLocOpBuilder &b, Value lse) {
  return arith::MinimumFOp::create(
      b, lse, makeF32(b, std::numeric_limits<float>::max()));
}

Value attn::makeShift(ImplicitLocOpBuilder &b, Value most) {
  // A row without any key has nothing to subtract.
  Value isEmpty = arith::CmpFOp::create(
      b, arith::CmpFPredicate::OEQ, most,
      makeF32(b, -std::numeric_limits<double>::infinity()));
  return arith::SelectOp::create(b, isEmpty, makeF32(b, 0),
                                 makeFinite(b, most));
}

Value attn::makeWeight(ImplicitLocOpBuilder &b, Value lse, Value shift) {
  Value difference = arith::SubFOp::create(b, makeFinite(b, lse), shift);
  return call(
      b, "llvm.nvvm.ex2.approx.ftz.f32",
      arith::MulFOp::create(b, difference, makeF32(b, llvm::numbers::log2e)));
}

Value attn::hasRun(ImplicitLocOpBuilder &b, Value lse) {
  return arith::CmpFOp::create(
      b, arith::CmpFPredicate::UNE, lse,
      makeF32(b, -std::numeric_limits<double>::infinity()));
}

Value attn::makeLog2(ImplicitLocOpBuilder &b, Value value) {
  return call(b, "llvm.nvvm.lg2.approx.ftz.f", value);
}
