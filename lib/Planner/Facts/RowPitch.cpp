//===- RowPitch.cpp - Rows of a tensor as one dimension -------------------===//

#include "attn/Planner/Facts/RowPitch.h"
#include <numeric>

using namespace mlir;
using namespace mlir::attn;

int64_t attn::getRowPitch(const TensorFacts &tensor) {
  int64_t pitch = 0;
  for (auto [extent, stride] :
       llvm::drop_end(llvm::zip_equal(tensor.shape, tensor.strides))) {
    if (extent == 1)
      continue;
    if (ShapedType::isDynamic(stride) || stride <= 0)
      return 0;
    pitch = std::gcd(pitch, stride);
  }
  return pitch == 0 ? tensor.shape.back() : pitch;
}

RowSteps attn::getRowSteps(const TensorFacts &pool) {
  int64_t pitch = getRowPitch(pool);
  auto step = [&](unsigned dim) {
    return pool.shape[dim] == 1 ? 1 : pool.strides[dim] / pitch;
  };
  return {step(0), step(1), step(2)};
}
