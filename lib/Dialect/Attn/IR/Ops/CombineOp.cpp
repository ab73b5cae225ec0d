//===- CombineOp.cpp - Verifier and interfaces of attn.combine ------------===//

#include "../ElementTypes.h"
#include "../ProblemChecks.h"
#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

MutableOperandRange CombineOp::getDpsInitsMutable() {
  MutableOperandRange others = getOthersMutable();
  unsigned first = getPartialScales() ? 1 : 0;
  return others.slice(first, others.size() - first);
}

ParseResult attn::parseScalesAndOutputs(
    OpAsmParser &parser,
    SmallVectorImpl<OpAsmParser::UnresolvedOperand> &others,
    SmallVectorImpl<Type> &types, Type partials) {
  bool isScaled =
      isa<ShapedType>(partials) && CombineOp::hasPartialScales(partials);
  SMLoc loc = parser.getCurrentLocation();
  bool hasScales = succeeded(parser.parseOptionalKeyword("scales"));
  if (isScaled != hasScales)
    return parser.emitError(loc, "expected 'scales' exactly beside partial "
                                 "results of type f16, got ")
           << (hasScales ? "them" : "none") << " beside " << partials;
  if (hasScales &&
      (parser.parseLParen() || parser.parseOperand(others.emplace_back()) ||
       parser.parseColonType(types.emplace_back()) || parser.parseRParen()))
    return failure();
  return failure(parser.parseKeyword("outs") || parser.parseLParen() ||
                 parser.parseOperandList(others) ||
                 parser.parseColonTypeList(types) || parser.parseRParen());
}

void attn::printScalesAndOutputs(OpAsmPrinter &printer, Operation *,
                                 OperandRange others, TypeRange types,
                                 Type partials) {
  if (CombineOp::hasPartialScales(partials)) {
    printer << "scales(" << others.front() << " : " << types.front() << ") ";
    others = others.drop_front();
    types = types.drop_front();
  }
  printer << "outs(" << others << " : " << types << ")";
}

Value CombineOp::getLse() {
  size_t count =
      getOutputs().size() - (getOutGroupAttr() ? 1 : 0) - (getAmax() ? 1 : 0);
  return count == 2 ? getOutputs()[1] : Value();
}

void CombineOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  addDestinationStyleEffects(*this, effects);
}

/// True if partial results are rows that are not divided, with their maxima and
/// sums.
static bool hasRowStates(CombineOp op) {
  auto type = dyn_cast<ShapedType>(op.getPartialLse().getType());
  return type && type.hasRank() && type.getRank() == 5;
}

/// Checks the operands beside partial maxima and sums of rows.
static LogicalResult checkRowStates(CombineOp op) {
  // combine_c15
  if (!hasRowStates(op))
    return success();
  NamedValue partialLse{"partial_lse", op.getPartialLse()};
  NamedValue lse{"lse", op.getLse()};
  if (!lse.value)
    return op.emitOpError("expected 'lse' beside maxima and sums of rows in "
                          "'partial_lse', got none");
  for (auto [operand, dim] : {std::pair(partialLse, 4), std::pair(lse, 3)})
    if (operand.getExtent(dim) != 2)
      return op.emitOpError("expected two numbers in '")
             << operand.name << "' for each row, got "
             << describeExtent(operand.getExtent(dim));
  for (NamedValue operand :
       {NamedValue{"partial_o", op.getPartialO()}, NamedValue{"o", op.getO()}})
    if (Type type = elementTypeOf(operand.value); !type.isF32())
      return op.emitOpError("expected '")
             << operand.name
             << "' of type f32 beside maxima and sums of rows, got " << type;
  if (op.getAmax())
    return op.emitOpError("expected no 'amax' beside maxima and sums of rows");
  return success();
}

/// Checks how many outputs there are.
static LogicalResult checkOutputCount(CombineOp op) {
  // combine_c10
  size_t least = 1 + (op.getOutGroupAttr() ? 1 : 0) + (op.getAmax() ? 1 : 0);
  size_t count = op.getOutputs().size();
  if (count == least || count == least + 1)
    return success();
  return op.emitOpError("expected o")
         << (op.getOutGroupAttr() ? " and o_scales" : "")
         << (op.getAmax() ? " and the number of amax" : "")
         << " as outputs, and lse "
         << (least == 1 ? "behind it" : "between them")
         << " where it is wanted, got " << count;
}

LogicalResult CombineOp::verify() {
  // combine_c12
  bool hasHalves = CombineOp::hasPartialScales(getPartialO().getType());
  if (hasHalves && getOthers().empty())
    return emitOpError("expected 'scales' beside 'partial_o' of type f16");
  if (failed(checkOutputCount(*this)))
    return failure();
  NamedValue partialO{"partial_o", getPartialO()};
  NamedValue partialLse{"partial_lse", getPartialLse()};
  NamedValue o{"o", getO()}, lse{"lse", getLse()};
  NamedValue scales{"o_scales", getOScales()}, amax{"amax", getAmaxOutput()};
  NamedValue partialScales{"partial_scales", getPartialScales()};
  int64_t scalesRank = getScalesRank(scales);
  // combine_c1, combine_c2
  SmallVector<OperandRule> rules = {
      {partialO, 5, /*unitStride=*/true},
      {partialLse, hasRowStates(*this) ? 5 : 4, /*unitStride=*/false},
      {partialScales, 5, /*unitStride=*/false},
      {o, 4, /*unitStride=*/true},
      {lse, hasRowStates(*this) ? 4 : 3, /*unitStride=*/false},
      {scales, scalesRank, /*unitStride=*/scalesRank == 2},
      {amax, 1, /*unitStride=*/true}};
  if (failed(checkOperands(*this, rules)) || failed(checkRowStates(*this)))
    return failure();
  // combine_c3
  if (Type type = elementTypeOf(partialO.value);
      !type.isF32() && !type.isBF16() && !type.isF16())
    return emitOpError("expected 'partial_o' of type f32, bf16 or f16, got ")
           << type;
  for (NamedValue operand : {partialLse, partialScales, lse})
    if (operand.value && !elementTypeOf(operand.value).isF32())
      return emitOpError("expected '") << operand.name << "' of type f32, got "
                                       << elementTypeOf(operand.value);
  // combine_c4
  Type outType = elementTypeOf(o.value);
  bool isPaired = isPairOfFloat4(outType);
  if (!isOutputType(outType) && !isFloat8(outType) && !isPaired)
    return emitOpError("expected 'o' of type f16, bf16, f32, f8E4M3FN, f8E5M2 "
                       "or, for pairs of f4E2M1FN, i8, got ")
           << outType;
  if (scales.value && !isPaired && failed(checkScaleType(*this, scales)))
    return failure();
  // combine_c9
  bool isScaled = getOutScaleAttr() || scales.value;
  if ((isFloat8(outType) || isPaired) != isScaled)
    return emitOpError("expected 'out_scale' or 'out_group' exactly with an "
                       "output of 8 bits, got ")
           << (isScaled ? "one" : "none") << " and an output of type "
           << outType;
  if (getOutScaleAttr() && scales.value && !isPaired)
    return emitOpError("expected 'out_scale' or 'out_group', got both");
  if (failed(checkFactor(*this, "out_scale", FactorSign::Positive)))
    return failure();
  // combine_c5
  if (failed(checkStaticExtent(*this, partialO, 4, "a value dimension")))
    return failure();
  if (partialO.getExtent(0) == 0)
    return emitOpError("expected at least one partial result, got none");
  // combine_c6
  Extent splits(*this, "partial results");
  if (failed(splits.unify(partialO, 0)) ||
      failed(splits.unify(partialLse, 0)) ||
      failed(splits.unify(partialScales, 0)))
    return failure();
  const char *meanings[] = {"batch", "query heads", "queries"};
  for (unsigned dim = 0; dim < 3; ++dim) {
    Extent extent(*this, meanings[dim]);
    if (failed(extent.unify(partialO, dim + 1)) ||
        failed(extent.unify(partialLse, dim + 1)) ||
        failed(extent.unify(partialScales, dim + 1)) ||
        failed(extent.unify(o, dim)) || failed(extent.unify(lse, dim)) ||
        (scalesRank == 4 && failed(extent.unify(scales, dim))))
      return failure();
  }
  Extent valueDim(*this, "value dimension");
  if (failed(valueDim.unify(partialO, 4)) ||
      (!isPaired && failed(valueDim.unify(o, 3))))
    return failure();
  // combine_c12
  if (partialScales.value &&
      failed(checkUnitGroups(*this, partialO, partialScales)))
    return failure();
  // combine_c11
  if (isPaired && failed(checkFloat4(*this, partialO.getExtent(4),
                                     getOutGroup().value_or(0), o, scales)))
    return failure();
  if (!isPaired && scales.value &&
      failed(checkOutputGroups(*this, o, scales, *getOutGroup())))
    return failure();
  // combine_c14
  if (amax.value && failed(checkAmaxType(*this, amax)))
    return failure();
  // combine_c8
  if (failed(verifyKernelName([&] { return emitOpError(); }, getKernel())))
    return failure();
  // combine_c7
  return checkResults(*this, {o, lse, scales, amax});
}
