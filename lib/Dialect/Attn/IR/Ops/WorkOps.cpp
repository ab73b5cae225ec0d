//===- WorkOps.cpp - Which work a CTA does --------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

/// The rules of all ops that deal runs.
template <typename Op>
static LogicalResult verifyDeal(Op op) {
  constexpr int64_t most = DealRunOp::kMostSequences;
  if (int64_t(op.getSequences()) > most)
    return op.emitOpError("expected at most ")
           << most << " sequences, got " << op.getSequences();
  // Each sequence has a run of its own, and what is left is dealt.
  if (op.getTotal() <= op.getSequences())
    return op.emitOpError("expected more runs than sequences, ")
           << op.getSequences() << ", got " << op.getTotal();
  return success();
}

LogicalResult DealRunOp::verify() { return verifyDeal(*this); }

LogicalResult PlanWorkOp::verify() { return verifyDeal(*this); }

LogicalResult PlanPiecesOp::verify() {
  if (int64_t(getSequences()) > kMostSequences)
    return emitOpError("expected at most ")
           << kMostSequences << " sequences, got " << getSequences();
  return success();
}
