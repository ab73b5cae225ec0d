//===- ClusterRanks.h - Ranks of CTAs in a cluster --------------*- C++ -*-===//
//
// Finds out which one this CTA is of those whose ranks differ in some bits
// only, who the others are, and the mask of all of them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_CLUSTERRANKS_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_CLUSTERRANKS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <optional>

namespace mlir::attn::lowering {

/// The bits of a rank; all of them without a value.
using RankBits = std::optional<int64_t>;

/// Returns the rank of the CTA in its cluster.
Value getRank(ImplicitLocOpBuilder &b);
/// Returns true in the first CTA of those whose ranks differ in `bits`.
Value isClusterLeader(ImplicitLocOpBuilder &b, RankBits bits = std::nullopt);
/// Returns the rank of that CTA.
Value getLeader(ImplicitLocOpBuilder &b, RankBits bits);
/// Returns the rank of the CTA of number `index` among them.
Value getMember(ImplicitLocOpBuilder &b, Value index, RankBits bits);
/// Returns the number of this CTA among them.
Value getNumber(ImplicitLocOpBuilder &b, RankBits bits);
/// Returns the mask of these `ctas` CTAs, of 16 bits.
Value getMask(ImplicitLocOpBuilder &b, int64_t ctas, RankBits bits);

} // namespace mlir::attn::lowering

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_CLUSTERRANKS_H
