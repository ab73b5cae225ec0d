//===- HarnessTensor.cpp - One tensor of a launch -------------------------===//

#include "attn/Harness/HarnessTensor.h"
#include "attn/Problem/ScaleTiles.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;

bool HarnessTensor::sharesAxis(unsigned axis) const {
  return axis < argument.shape.size() &&
         !(argument.name == "o_scales" && isInScaleTiles(argument.shape));
}

TensorView HarnessTensor::getView() const {
  return {argument.dtype, argument.shape, argument.strides, bytes};
}

std::vector<uint8_t> HarnessTensor::getElements() const {
  std::vector<uint8_t> elements;
  unsigned width = getByteWidth(argument.dtype);
  forEachElement(argument, [&](int64_t offset) {
    elements.insert(elements.end(), bytes.begin() + offset,
                    bytes.begin() + offset + width);
  });
  return elements;
}

void sim::forEachElement(const TensorArgument &tensor,
                         llvm::function_ref<void(int64_t)> visit) {
  if (llvm::is_contained(tensor.shape, 0))
    return;
  int64_t width = getByteWidth(tensor.dtype), offset = 0;
  llvm::SmallVector<int64_t, 4> index(tensor.shape.size(), 0);
  while (true) {
    visit(offset * width);
    size_t axis = index.size();
    while (axis) {
      int64_t stride = tensor.strides[axis - 1], &at = index[axis - 1];
      if (at + 1 < tensor.shape[axis - 1]) {
        ++at;
        offset += stride;
        break;
      }
      // Back to the first one; the stride of a single element may be any.
      offset -= stride * at;
      at = 0;
      --axis;
    }
    if (!axis)
      return;
  }
}
