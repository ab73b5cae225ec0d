//===- TensorShape.h - shapes that tensors must have ------------*- C++ -*-===//
#ifndef ATTN_LIB_HARNESS_TENSORSHAPE_H
#define ATTN_LIB_HARNESS_TENSORSHAPE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace mlir::attn::sim {

/// "[2, 8, 300]".
std::string printShape(llvm::ArrayRef<int64_t> extents);

/// An error that names the tensor unless it has the expected shape.
llvm::Error checkShape(llvm::StringRef name, llvm::ArrayRef<int64_t> shape,
                       llvm::ArrayRef<int64_t> expected);

/// Returns how many elements of `width` bytes the strides of a tensor that the
/// launch decides are multiples of (docs/LaunchRecord.md).
int64_t getStrideUnit(llvm::StringRef name, unsigned width);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_HARNESS_TENSORSHAPE_H
