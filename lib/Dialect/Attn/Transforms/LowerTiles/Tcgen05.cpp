//===- Tcgen05.cpp - Matrix instructions of one thread --------------------===//

#include "PartitionLowering.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

template <>
LogicalResult PartitionLowering::lower(Tcgen05CommitOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value pointer = barrierPointer(b, op.getBarriers(), op.getIndex());
  // The intrinsic says that it touches the barrier alone, so that LLVM may move
  // the products that it is for behind it.
  LLVM::InlineAsmOp::create(
      b, TypeRange(),
      ValueRange{LLVM::PtrToIntOp::create(b, b.getI32Type(), pointer)},
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 "
      "[$0];",
      "r,~{memory}", /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
      ArrayAttr());
  return success();
}

void lowering::addTcgen05Lowerings(LoweringTable &table) {
  table.addReplaced<Tcgen05CommitOp>();
}
