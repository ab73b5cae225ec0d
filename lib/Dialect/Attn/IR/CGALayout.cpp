//===- CGALayout.cpp - Blocks of a product's values in a cluster ----------===//

#include "attn/Dialect/Attn/IR/CGALayout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::SmallVector;

/// Clusters of up to 8 CTAs, and values of up to two dimensions.
static constexpr size_t kMostBits = 3, kMostDims = 2;

std::string attn::findFault(ArrayRef<SmallVector<int64_t>> bases) {
  if (bases.empty() || bases.size() > kMostBits)
    return llvm::formatv("expected a basis for each bit of the rank in a "
                         "cluster of 2, 4 or 8 CTAs, got {0}",
                         bases.size());
  size_t dims = bases.front().size();
  if (dims < 1 || dims > kMostDims)
    return llvm::formatv("expected bases of 1 or 2 dimensions, got {0}", dims);
  SmallVector<int64_t> steps[kMostDims];
  for (const SmallVector<int64_t> &basis : bases) {
    if (basis.size() != dims)
      return llvm::formatv("expected bases of as many dimensions, got {0} and "
                           "{1}",
                           basis.size(), dims);
    bool isZero = true;
    for (auto [dim, step] : llvm::enumerate(basis)) {
      if (step == 0)
        continue;
      if (!isZero)
        return llvm::formatv("expected a basis that steps along one dimension, "
                             "got [{0}, {1}]",
                             basis[0], basis[1]);
      isZero = false;
      steps[dim].push_back(step);
    }
  }
  for (size_t dim = 0; dim < dims; ++dim) {
    llvm::sort(steps[dim]);
    for (auto [bit, step] : llvm::enumerate(steps[dim]))
      if (step != int64_t(1) << bit)
        return llvm::formatv("expected steps of 1, 2 and 4 blocks along "
                             "dimension {0}, each once and none left out, got "
                             "{1} for {2}",
                             dim, step, int64_t(1) << bit);
  }
  return "";
}

uint32_t attn::getCopiedBits(ArrayRef<SmallVector<int64_t>> bases) {
  uint32_t bits = 0;
  for (auto [bit, basis] : llvm::enumerate(bases))
    if (llvm::all_of(basis, [](int64_t step) { return step == 0; }))
      bits |= 1u << bit;
  return bits;
}

ProductLayouts ProductLayouts::get(const CGABases &a, const CGABases &b) {
  ProductLayouts layouts{a, b, {}};
  for (size_t bit = 0; bit < a.size(); ++bit)
    layouts.d.push_back({a[bit][0], b[bit][1]});
  return layouts;
}

bool ProductLayouts::canPair() const {
  return !a.empty() && a[0][0] != 0 && a[0][1] == 0 &&
         (getCopiedBits(b) & 1) != 0;
}

ProductLayouts ProductLayouts::getPaired() const {
  ProductLayouts paired = *this;
  for (SmallVector<int64_t> &basis : paired.b)
    basis[1] *= 2;
  paired.b[0] = {0, 1};
  return paired;
}
