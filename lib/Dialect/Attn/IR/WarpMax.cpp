//===- WarpMax.cpp - The largest number of a warp in memory ---------------===//

#include "attn/Dialect/Attn/IR/WarpMax.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::attn;

void attn::emitWarpMax(ImplicitLocOpBuilder &b, Value number, Value lane,
                       Value address) {
  // The bits of floats that are not below zero, NaN behind infinity, are
  // ordered as integers, for which all chips have both instructions.
  Type i32 = b.getI32Type();
  Value bits = arith::BitcastOp::create(b, i32, number);
  Value all = arith::ConstantIntOp::create(b, -1, 32);
  Value largest =
      NVVM::ReduxOp::create(b, i32, bits, NVVM::ReduxKind::UMAX, all);
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane,
                            arith::ConstantIntOp::create(b, 0, 32));
  auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umax, address, largest,
                            LLVM::AtomicOrdering::monotonic,
                            /*syncscope=*/"device");
}
