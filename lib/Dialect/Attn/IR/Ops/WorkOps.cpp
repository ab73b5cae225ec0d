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

LogicalResult FindKeyOp::verify() {
  bool isMemory = !isa<MemRefType>(getKeys().getType()) &&
                  !isa<MemRefType>(getQueries().getType());
  if (isMemory != static_cast<bool>(getOrdered()))
    return emitOpError("expected 'if' beside pointers, and only there");
  for (auto [name, numbers, indices] :
       {std::tuple("keys", getKeys(), getKeyIndices()),
        std::tuple("queries", getQueries(), getQueryIndices())}) {
    auto memref = dyn_cast<MemRefType>(numbers.getType());
    size_t expected = memref ? memref.getRank() - 1 : 0;
    if (memref && memref.getRank() == 0)
      return emitOpError("expected a place for each of the ")
             << name << ", got " << memref;
    if (indices.size() != expected)
      return emitOpError("expected ") << expected << " indices of the " << name
                                      << ", got " << indices.size();
    if (memref && memref.getElementType() != getElement())
      return emitOpError("expected numbers of type ")
             << getElement() << ", got " << memref;
  }
  return success();
}

LogicalResult PlanPiecesOp::verify() {
  if (int64_t(getSequences()) > kMostSequences)
    return emitOpError("expected at most ")
           << kMostSequences << " sequences, got " << getSequences();
  return success();
}
