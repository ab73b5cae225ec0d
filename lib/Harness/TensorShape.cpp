//===- TensorShape.cpp - shapes of tensors, and their elements ------------===//
#include "TensorShape.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::StringRef;

std::string sim::printShape(ArrayRef<int64_t> extents) {
  std::string text = "[";
  for (auto [index, extent] : llvm::enumerate(extents))
    text += (index ? ", " : "") + std::to_string(extent);
  return text + "]";
}

Error sim::checkShape(StringRef name, ArrayRef<int64_t> shape,
                      ArrayRef<int64_t> expected) {
  if (shape == expected)
    return Error::success();
  return createStringError("reference: \"" + name + "\": expected shape " +
                           printShape(expected) + ", got " + printShape(shape));
}

int64_t sim::getStrideUnit(llvm::StringRef name, unsigned width) {
  constexpr int64_t alignment = 16;
  return llvm::is_contained({"q", "k", "v", "o", "partial_o"}, name)
             ? alignment / width
             : 1;
}
