//===- WarpNames.h - Warps and CTAs in words --------------------*- C++ -*-===//
//
// What reports call several warps at once, so that they say a thing once for
// all that it is true of.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_WARPNAMES_H
#define ATTN_SUPPORT_WARPNAMES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <cstdint>
#include <string>
#include <tuple>

namespace mlir::attn {

/// A warp of a CTA; without a warp the CTA itself.
struct WarpName {
  std::array<uint32_t, 3> cta = {0, 0, 0};
  int64_t warp = -1;

  bool operator<(const WarpName &other) const {
    return std::tie(cta, warp) < std::tie(other.cta, other.warp);
  }
};

/// How CTAs are called.
enum class CtaNames {
  None, ///< not at all, where there is one
  Rank, ///< by their number in the cluster, which is the first one
  Grid  ///< by their place in the grid, such as (1,0,0)
};

/// Returns numbers as a list with ranges, such as "0-3, 7"; of a long list the
/// beginning and how many follow.
std::string describeNumbers(llvm::ArrayRef<int64_t> numbers);

/// Returns who they are, such as "warps 0-3 of CTAs 0, 1", in any order and
/// with each named once.
std::string describeWarps(llvm::ArrayRef<WarpName> warps, CtaNames names);

/// Returns a count with its noun, such as "1 arrival" and "2 arrivals".
std::string describeCount(int64_t count, llvm::StringRef noun);

} // namespace mlir::attn

#endif // ATTN_SUPPORT_WARPNAMES_H
