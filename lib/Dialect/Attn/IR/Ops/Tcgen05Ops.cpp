//===- Tcgen05Ops.cpp - Matrix instructions of one thread -----------------===//

#include "../Completion.h"
#include "../ElementTypes.h"
#include "attn/Dialect/Attn/IR/TensorProducts.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;

int64_t Tcgen05MmaOp::getContraction() {
  return getDepth().value_or(getA().getType().getShape()[1] - getStart());
}

LogicalResult Tcgen05MmaOp::verify() {
  BufferType a = getA().getType(), b = getB().getType(), d = getD().getType();
  for (auto [name, operand] :
       {std::pair("a", a), std::pair("b", b), std::pair("d", d)})
    if (operand.getRank() != 2)
      return emitOpError("expected '")
             << name << "' of rank 2, got rank " << operand.getRank();
  if (!(*this)->getParentOfType<ElectOp>())
    return emitOpError("expected an attn.elect around it, whose thread starts "
                       "the product");
  if (b.isTmem())
    return emitOpError("expected 'b' in shared memory, got ") << b;
  for (BufferType buffer : {d, a})
    if ((buffer == d && !d.isTmem()) ||
        (buffer.isTmem() && isAuto(buffer.getLayout())))
      return emitOpError("expected a buffer in tensor memory with its layout, "
                         "got ")
             << buffer;
  bool isHalved = cast<TmemLayoutAttr>(d.getLayout()).getHalves();
  bool hasFewRows = getPair() && d.getShape()[0] < kTmemLanes;
  if (isHalved != hasFewRows)
    return emitOpError("expected an accumulator ")
           << (hasFewRows ? "in halves for 64 rows in each CTA of a pair"
                          : "without halves but for 64 rows in each CTA of a "
                            "pair")
           << ", got " << d;
  if (isHalved && a.isTmem())
    return emitOpError("expected 'a' in shared memory for 64 rows in each CTA "
                       "of a pair, got ")
           << a;
  int64_t start = getStart();
  if (start < 0 || start % getDepthStep() != 0)
    return emitOpError("expected 'first' to be a multiple of ")
           << getDepthStep() << " from 0 on, got " << start;
  if (start != 0 && !getDepth())
    return emitOpError("expected a depth beside 'first', got none");
  int64_t contraction = getContraction();
  int64_t most = std::min(a.getShape()[1], b.getShape()[0]) - start;
  if (getDepth() && (contraction < 1 || contraction > most))
    return emitOpError("expected a depth from 1 to the contraction extents ")
           << a.getShape()[1] << " and " << b.getShape()[0] << ", got "
           << contraction << " from " << start << " on";
  if (!getDepth() && a.getShape()[1] != b.getShape()[0])
    return emitOpError("expected the contraction extents of 'a' and 'b' to "
                       "agree, got ")
           << a.getShape()[1] << " and " << b.getShape()[0];
  int64_t columns = b.getShape()[1] * (getPair() ? 2 : 1);
  if (a.getShape()[0] != d.getShape()[0] || columns != d.getShape()[1])
    return emitOpError("expected an accumulator of ")
           << a.getShape()[0] << " x " << columns << ", got " << d.getShape()[0]
           << " x " << d.getShape()[1];
  Type typeA = a.getElementType(), typeB = b.getElementType();
  bool isWide = typeA == typeB && (typeA.isF16() || typeA.isBF16());
  bool isNarrow = isFloat8(typeA) && isFloat8(typeB);
  if ((!isWide && !isNarrow) || !d.getElementType().isF32())
    return emitOpError("expected operands of f16, of bf16, or of 8-bit floats, "
                       "and an accumulator of f32, got ")
           << typeA << ", " << typeB << " and " << d.getElementType();
  auto shape = chooseTensorInstruction(*this);
  if (!shape)
    return emitOpError() << llvm::toString(shape.takeError());
  return success();
}

Value Tcgen05MmaOp::getAccumulator() {
  return matchPattern(getAccumulate(), m_Zero()) ? Value() : getD();
}

Value Tcgen05MmaOp::getProduct() { return getD(); }

ProductCompletion Tcgen05MmaOp::getCompletion() {
  return ProductCompletion::Barrier;
}

int64_t Tcgen05MmaOp::getDepthStep() {
  return isFloat8(getA().getType().getElementType()) ? 32 : 16;
}

void Tcgen05MmaOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getAMutable());
  effects.emplace_back(MemoryEffects::Read::get(), &getBMutable());
  if (getAccumulator())
    effects.emplace_back(MemoryEffects::Read::get(), &getDMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getDMutable());
  effects.emplace_back(MemoryEffects::Write::get(), TensorAccesses::get());
}

const AsyncEngine &Tcgen05CommitOp::getCommittedEngine() {
  return kTensorProducts;
}

std::pair<Value, Value> Tcgen05CommitOp::getCommitBarrier() {
  return {getBarriers(), getIndex()};
}

int64_t Tcgen05CommitOp::countCommitCTAs() { return getCtas().value_or(1); }

SignalMask Tcgen05CommitOp::getCommitTargets() {
  return SignalMask::get(getCtas(), false, getRankBits());
}

LogicalResult Tcgen05CommitOp::verify() {
  if ((*this)->getParentOfType<ElectOp>())
    return failure(
        failed(verifyClusterCTAs(*this, getCtas())) ||
        failed(verifyRankBits(*this, getCtas(), false, getRankBits())) ||
        failed(verifyBarrierCGA(*this, getCommitBarrier().first,
                                getCommitTargets())));
  return emitOpError(
      "expected to stand in an attn.elect, since a commit is for "
      "what its thread has started");
}
