//===- DTypeNames.cpp - Names of element types ----------------------------===//

#include "DTypeNames.h"

using namespace mlir::attn;
using llvm::StringRef;

StringRef mlir::attn::stringifyDType(DType dtype) {
  return getName(dtypeNames, dtype);
}

std::optional<DType> mlir::attn::symbolizeDType(StringRef name) {
  return findByName<DType>(dtypeNames, name);
}
