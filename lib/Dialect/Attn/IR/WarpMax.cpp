//===- WarpMax.cpp - The largest number of a warp in memory ---------------===//

#include "attn/Dialect/Attn/IR/WarpMax.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::attn;

void attn::emitWarpMax(ImplicitLocOpBuilder &b, Value number, Value lane,
                       function_ref<void(Value)> join) {
  // All chips have the instruction of integers.
  Type i32 = b.getI32Type();
  Value bits = arith::BitcastOp::create(b, i32, number);
  Value all = arith::ConstantIntOp::create(b, -1, 32);
  Value largest =
      NVVM::ReduxOp::create(b, i32, bits, NVVM::ReduxKind::UMAX, all);
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane,
                                        arith::ConstantIntOp::create(b, 0, 32));
  auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  join(largest);
}
