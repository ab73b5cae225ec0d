//===- CommonChecks.cpp - What schedules refuse alike ---------------------===//

#include "CommonChecks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

llvm::Error attn::makeUnsupported(llvm::StringRef schedule,
                                  const llvm::Twine &what) {
  return llvm::createStringError("schedule '" + schedule +
                                 "' does not support " + what);
}

llvm::Error attn::checkCommon(llvm::StringRef schedule,
                              const ProblemFacts &facts, int64_t dimStep,
                              bool allowsNarrow) {
  AttentionOp op = facts.op;
  auto unsupported = [&](const llvm::Twine &what) {
    return makeUnsupported(schedule, what);
  };
  if (op.getPageTable())
    return unsupported("paged keys");
  if (op.getKvSplits())
    return unsupported("split keys with partial results");
  if (op.getRopeDim())
    return unsupported("the absorbed latent form ('rope_dim')");
  auto typeName = [](Type type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return text;
  };
  if (facts.isNarrow() && !allowsNarrow)
    return unsupported("operands of type " + typeName(facts.elementType) +
                       ", expected f16 or bf16");
  if (facts.hasTransposedValues() && !facts.isNarrow())
    return unsupported("16-bit 'v' whose keys are contiguous, expected a "
                       "stride of 1 along the head dimension");
  if (!facts.outType.isF16() && !facts.outType.isBF16() &&
      !facts.outType.isF32())
    return unsupported("an output of type " + typeName(facts.outType) +
                       ", expected f16, bf16 or f32");
  for (auto [name, dim] : {std::pair("head dimension", facts.headDim),
                           std::pair("value dimension", facts.valueDim)})
    if (dim < dimStep || dim > 256 || dim % dimStep != 0)
      return unsupported(
          llvm::formatv("a {0} of {1}, expected a multiple of {2} up to 256",
                        name, dim, dimStep));
  for (auto [name, length] :
       {std::pair("queries", facts.queries), std::pair("keys", facts.keys)})
    if (!ShapedType::isDynamic(length) && length >= kLengthLimit)
      return unsupported(llvm::formatv("{0} {1}, expected fewer than {2}",
                                       length, name, kLengthLimit));
  return llvm::Error::success();
}
