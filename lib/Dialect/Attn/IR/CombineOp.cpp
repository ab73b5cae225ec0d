//===- CombineOp.cpp - Verifier and interfaces of attn.combine ------------===//

#include "ElementTypes.h"
#include "ProblemChecks.h"
#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

MutableOperandRange CombineOp::getDpsInitsMutable() {
  // o is the operand after the two partial results; lse follows it.
  return MutableOperandRange(getOperation(), /*start=*/2,
                             /*length=*/getLse() ? 2 : 1);
}

void CombineOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  addDestinationStyleEffects(*this, effects);
}

LogicalResult CombineOp::verify() {
  NamedValue partialO{"partial_o", getPartialO()};
  NamedValue partialLse{"partial_lse", getPartialLse()};
  NamedValue o{"o", getO()}, lse{"lse", getLse()};
  // combine_c1, combine_c2
  SmallVector<OperandRule> rules = {{partialO, 5, /*unitStride=*/true},
                                    {partialLse, 4, /*unitStride=*/false},
                                    {o, 4, /*unitStride=*/true},
                                    {lse, 3, /*unitStride=*/false}};
  if (failed(checkOperands(*this, rules)))
    return failure();
  // combine_c3
  for (NamedValue operand : {partialO, partialLse, lse})
    if (operand.value && !elementTypeOf(operand.value).isF32())
      return emitOpError("expected '") << operand.name << "' of type f32, got "
                                       << elementTypeOf(operand.value);
  // combine_c4
  Type outType = elementTypeOf(o.value);
  if (!isOutputType(outType) && !isFloat8(outType))
    return emitOpError("expected 'o' of type f16, bf16, f32, f8E4M3FN or "
                       "f8E5M2, got ")
           << outType;
  // combine_c9
  if (isFloat8(outType) != static_cast<bool>(getOutScaleAttr()))
    return emitOpError("expected 'out_scale' exactly with an output of 8 bits, "
                       "got ")
           << (getOutScaleAttr() ? "one" : "none") << " and an output of type "
           << outType;
  if (failed(checkFactor(*this, "out_scale", FactorSign::Positive)))
    return failure();
  // combine_c5
  if (failed(checkStaticExtent(*this, partialO, 4, "a value dimension")))
    return failure();
  if (partialO.getExtent(0) == 0)
    return emitOpError("expected at least one partial result, got none");
  // combine_c6
  Extent splits(*this, "partial results");
  if (failed(splits.unify(partialO, 0)) || failed(splits.unify(partialLse, 0)))
    return failure();
  const char *meanings[] = {"batch", "query heads", "queries"};
  for (unsigned dim = 0; dim < 3; ++dim) {
    Extent extent(*this, meanings[dim]);
    if (failed(extent.unify(partialO, dim + 1)) ||
        failed(extent.unify(partialLse, dim + 1)) ||
        failed(extent.unify(o, dim)) || failed(extent.unify(lse, dim)))
      return failure();
  }
  Extent valueDim(*this, "value dimension");
  if (failed(valueDim.unify(partialO, 4)) || failed(valueDim.unify(o, 3)))
    return failure();
  // combine_c8
  if (failed(verifyKernelName([&] { return emitOpError(); }, getKernel())))
    return failure();
  // combine_c7
  return checkResults(*this, {o, lse});
}
