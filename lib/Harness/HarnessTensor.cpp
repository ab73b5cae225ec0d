//===- HarnessTensor.cpp - One tensor of a launch -------------------------===//

#include "attn/Harness/HarnessTensor.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;

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
      offset += tensor.strides[axis - 1];
      if (++index[axis - 1] < tensor.shape[axis - 1])
        break;
      offset -= tensor.strides[axis - 1] * index[axis - 1];
      index[--axis] = 0;
    }
    if (!axis)
      return;
  }
}
