//===- HotLoop.cpp - The loop of a kernel that does the work --------------===//

#include "LoopFinder.h"

using namespace mlir::attn;

std::optional<HotLoop> mlir::attn::findHotLoop(const CodeListing &listing,
                                               bool isPTX) {
  LoopFinder finder(listing, isPTX);
  const CodeLoop *hot = finder.select(isTensor);
  return hot ? std::optional(finder.measure(*hot)) : std::nullopt;
}

std::optional<SoftmaxCode> mlir::attn::findSoftmax(const CodeListing &listing,
                                                   bool isPTX) {
  LoopFinder finder(listing, isPTX);
  const CodeLoop *products = finder.select(isTensor);
  if (!products || finder.measure(*products).exponentials != 0)
    return std::nullopt;
  const CodeLoop *hot = finder.select(isExponential);
  if (!hot)
    return std::nullopt;
  return SoftmaxCode{finder.measure(*hot),
                     finder.measureBehind(*hot, isExponential)};
}

std::vector<BlockLoop> mlir::attn::findBlockLoops(const CodeListing &listing) {
  return LoopFinder(listing, /*isPTX=*/false).findBlockLoops();
}

llvm::StringRef BlockLoop::getWork() const {
  if (tensor != 0)
    return exponentials != 0 ? "products and softmax" : "products";
  return exponentials != 0 ? "softmax" : "other";
}
