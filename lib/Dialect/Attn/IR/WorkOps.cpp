//===- WorkOps.cpp - Which work a CTA does --------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

LogicalResult DealRunOp::verify() {
  if (int64_t(getSequences()) > kMostSequences)
    return emitOpError("expected at most ")
           << kMostSequences << " sequences, got " << getSequences();
  // Each sequence has a run of its own, and what is left is dealt.
  if (getTotal() <= getSequences())
    return emitOpError("expected more runs than sequences, ")
           << getSequences() << ", got " << getTotal();
  return success();
}
