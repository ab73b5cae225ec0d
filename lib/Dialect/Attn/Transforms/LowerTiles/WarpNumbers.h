//===- WarpNumbers.h - Arithmetic of the threads of a warp ------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_WARPNUMBERS_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_WARPNUMBERS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn::lowering {

/// Emits code in which all threads of a warp take part. Numbers are i32, none
/// of them negative.
class WarpNumbers {
public:
  static constexpr int64_t kLanes = 32;

  WarpNumbers(ImplicitLocOpBuilder &b, Value lane) : b(b), lane(lane) {}

protected:
  Value number(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32);
  }
  Value compare(arith::CmpIPredicate how, Value x, Value y) {
    return arith::CmpIOp::create(b, how, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value subtract(Value x, Value y) { return arith::SubIOp::create(b, x, y); }
  Value multiply(Value x, Value y) { return arith::MulIOp::create(b, x, y); }
  Value divideUp(Value x, Value y) {
    return arith::DivUIOp::create(b, add(x, subtract(y, number(1))), y);
  }
  Value shuffle(Value value, Value from, NVVM::ShflKind kind, int64_t clamp);
  Value broadcast(Value value, Value from) {
    return shuffle(value, from, NVVM::ShflKind::idx, kLanes - 1);
  }
  Value vote(Value condition);
  /// Returns the sum over the lanes up to this one.
  Value emitPrefix(Value own);
  /// Calls `body` where `condition` is true.
  void ifThen(Value condition, llvm::function_ref<void()> body);
  /// Stores numbers side by side from number `first` (i64) of `plan` on.
  void storeNumbers(Value plan, Value first, ArrayRef<Value> numbers);

  ImplicitLocOpBuilder &b;
  Value lane;
};

} // namespace mlir::attn::lowering

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_WARPNUMBERS_H
