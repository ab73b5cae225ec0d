//===- RecordedFactors.h - Factors that records always have -----*- C++ -*-===//

#ifndef ATTN_PROBLEM_RECORDEDFACTORS_H
#define ATTN_PROBLEM_RECORDEDFACTORS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::attn {

/// True if launch records have this factor, by its name in Options.def: of
/// factors that came later a 0, which says that there is none, is left out, so
/// that readers that know none take the records of problems without.
inline bool recordsFactor(llvm::StringRef name, double value) {
  return value != 0 || name == "softcap";
}

} // namespace mlir::attn

#endif // ATTN_PROBLEM_RECORDEDFACTORS_H
