//===- OracleNumbers.h - How many kernels oracles draw ----------*- C++ -*-===//

#ifndef ATTN_UNITTESTS_ANALYSIS_BARRIERS_ORACLENUMBERS_H
#define ATTN_UNITTESTS_ANALYSIS_BARRIERS_ORACLENUMBERS_H

#include "llvm/ADT/StringExtras.h"
#include <cstdlib>

namespace mlir::attn::oracle {

/// Returns the number that the environment variable `name` has, or `otherwise`.
inline unsigned getNumber(const char *name, unsigned otherwise) {
  const char *text = std::getenv(name);
  unsigned number = 0;
  return text && llvm::to_integer(text, number) ? number : otherwise;
}

} // namespace mlir::attn::oracle

#endif // ATTN_UNITTESTS_ANALYSIS_BARRIERS_ORACLENUMBERS_H
