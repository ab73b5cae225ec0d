//===- TestTensor.h - tensors of tests --------------------------*- C++ -*-===//
#ifndef ATTN_UNITTESTS_HARNESS_TESTTENSOR_H
#define ATTN_UNITTESTS_HARNESS_TESTTENSOR_H

#include "attn/Harness/Reference.h"
#include "attn/Launch/LaunchBinding.h"
#include <random>

namespace mlir::attn::sim {

/// A tensor that owns its bytes.
struct Tensor {
  TensorView view;
  std::vector<uint8_t> bytes;

  Tensor(DType dtype, llvm::ArrayRef<int64_t> shape,
         llvm::ArrayRef<int64_t> strides = {}) {
    view.dtype = dtype;
    view.shape.assign(shape.begin(), shape.end());
    if (strides.empty())
      view.strides = getContiguousStrides(shape);
    else
      view.strides.assign(strides.begin(), strides.end());
    bytes.resize(
        cantFail(getExtentBytes(view.shape, view.strides, view.dtype)));
    view.data = bytes;
  }
  Tensor(const Tensor &) = delete;

  void set(llvm::ArrayRef<int64_t> index, double value) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i)
      offset += index[i] * view.strides[i];
    encodeElement(view.dtype, value, &bytes[offset * getByteWidth(view.dtype)]);
  }

  /// Random elements; every byte of the storage is written.
  void randomise(std::mt19937 &random) {
    std::normal_distribution<double> normal;
    unsigned width = getByteWidth(view.dtype);
    for (size_t at = 0; at < bytes.size(); at += width)
      encodeElement(view.dtype, normal(random), &bytes[at]);
  }
};

} // namespace mlir::attn::sim

#endif // ATTN_UNITTESTS_HARNESS_TESTTENSOR_H
