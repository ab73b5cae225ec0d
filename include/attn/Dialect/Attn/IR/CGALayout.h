//===- CGALayout.h - Blocks of a product's values in a cluster --*- C++ -*-===//
//
// The algebra of `#attn.cga` that does not need IR: which bases are a layout,
// and what they become where pairs of CTAs make a product.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_CGALAYOUT_H
#define ATTN_DIALECT_ATTN_IR_CGALAYOUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace mlir::attn {

/// One basis for each bit of the rank, of as many numbers as dimensions.
using CGABases = llvm::SmallVector<llvm::SmallVector<int64_t>>;

/// Returns what keeps `bases` from being a layout, such as "expected ..., got
/// ..."; empty if nothing does.
std::string findFault(llvm::ArrayRef<llvm::SmallVector<int64_t>> bases);

/// The bits of the rank whose bases are zeros.
uint32_t getCopiedBits(llvm::ArrayRef<llvm::SmallVector<int64_t>> bases);

/// The layouts of a (M x K), b (K x N) and d (M x N) of a product.
struct ProductLayouts {
  CGABases a, b, d;

  /// The product that CTAs make each for itself, if a has blocks along M and b
  /// along N.
  static ProductLayouts get(const CGABases &a, const CGABases &b);
  /// True if the CTAs that differ in bit 0 can make it together: they have
  /// other rows of a, and the same b.
  bool canPair() const;
  /// The product of pairs, in which each CTA holds half of the columns of b.
  ProductLayouts getPaired() const;
};

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_CGALAYOUT_H
