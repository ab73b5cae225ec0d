//===- LaunchRecord.cpp - what a launch of a kernel needs -----------------===//
#include "attn/Target/LaunchRecord.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir::attn;
using llvm::StringRef;

unsigned mlir::attn::getMapRank(TensorMapView view, unsigned tensorRank) {
  return view == TensorMapView::Quads ? tensorRank + 1 : tensorRank;
}

unsigned mlir::attn::getSwizzleBytes(TensorMapSwizzle swizzle) {
  switch (swizzle) {
  case TensorMapSwizzle::None:
    return 0;
  case TensorMapSwizzle::B32:
    return 32;
  case TensorMapSwizzle::B64:
    return 64;
  case TensorMapSwizzle::B128:
    return 128;
  }
  llvm_unreachable("covered switch");
}

std::optional<unsigned> LaunchRecord::findTensor(StringRef name) const {
  for (auto [index, tensor] : llvm::enumerate(tensors))
    if (tensor.name == name)
      return index;
  return std::nullopt;
}
