//===- TensorView.cpp - Elements of a tensor by their indices -------------===//

#include "attn/Harness/Reference.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;

double TensorView::get(ArrayRef<int64_t> index) const {
  int64_t offset = 0;
  for (auto [i, stride] : llvm::zip_equal(index, strides))
    offset += i * stride;
  return decodeElement(dtype, data.data() + offset * getByteWidth(dtype));
}
