//===- NarrowKeys.cpp - 8-bit keys beside 16-bit queries ------------------===//

#include "NarrowKeys.h"
#include "CommonChecks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

llvm::Error attn::checkNarrowKeys(llvm::StringRef schedule,
                                  const ProblemFacts &facts, int64_t step) {
  if (!facts.hasNarrowKeys())
    return llvm::Error::success();
  for (auto [name, dim] : {std::pair("head dimension", facts.headDim),
                           std::pair("value dimension", facts.valueDim)})
    if (dim % step != 0)
      return makeUnsupported(
          schedule, llvm::formatv("a {0} of {1} of 8-bit keys, expected a "
                                  "multiple of {2}",
                                  name, dim, step));
  // Groups of columns have rings of their own.
  if (facts.kScales && facts.scaleGroup % step != 0)
    return makeUnsupported(
        schedule, llvm::formatv("scales of {0} columns, expected a multiple of "
                                "{1}",
                                facts.scaleGroup, step));
  return llvm::Error::success();
}

llvm::Error attn::checkWholeRowScales(llvm::StringRef schedule,
                                      const ProblemFacts &facts) {
  if (!facts.kScales ||
      (facts.scaleGroup == facts.headDim && facts.scaleGroup == facts.valueDim))
    return llvm::Error::success();
  return makeUnsupported(
      schedule, llvm::formatv("scales of {0} columns of keys of {1} and values "
                              "of {2}, expected one of each row",
                              facts.scaleGroup, facts.headDim, facts.valueDim));
}
