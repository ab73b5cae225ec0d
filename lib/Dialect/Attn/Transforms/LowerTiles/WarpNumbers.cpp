//===- WarpNumbers.cpp - Arithmetic of the threads of a warp --------------===//

#include "WarpNumbers.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::attn::lowering;

Value WarpNumbers::shuffle(Value value, Value from, NVVM::ShflKind kind,
                           int64_t clamp) {
  return NVVM::ShflOp::create(b, b.getI32Type(), number(-1), value, from,
                              number(clamp), kind,
                              /*return_value_and_is_valid=*/UnitAttr());
}

Value WarpNumbers::vote(Value condition) {
  return NVVM::VoteSyncOp::create(b, b.getI32Type(), number(-1), condition,
                                  NVVM::VoteSyncKind::ballot);
}

Value WarpNumbers::emitPrefix(Value own) {
  for (int64_t distance = 1; distance < kLanes; distance *= 2) {
    Value before =
        shuffle(own, number(distance), NVVM::ShflKind::up, /*clamp=*/0);
    Value counts = compare(arith::CmpIPredicate::uge, lane, number(distance));
    own = add(own, select(counts, before, number(0)));
  }
  return own;
}

void WarpNumbers::ifThen(Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

void WarpNumbers::storeNumbers(Value plan, Value first,
                               ArrayRef<Value> numbers) {
  Value address = LLVM::GEPOp::create(b, plan.getType(), b.getI32Type(), plan,
                                      ValueRange{first});
  int32_t place = 0;
  for (Value each : numbers) {
    LLVM::GEPArg at(place++);
    Value target = LLVM::GEPOp::create(b, address.getType(), b.getI32Type(),
                                       address, ArrayRef(at));
    LLVM::StoreOp::create(b, each, target, 4);
  }
}
