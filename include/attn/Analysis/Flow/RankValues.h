//===- RankValues.h - Values as functions of a CTA's rank -------*- C++ -*-===//

#ifndef ATTN_ANALYSIS_FLOW_RANKVALUES_H
#define ATTN_ANALYSIS_FLOW_RANKVALUES_H

#include "attn/Analysis/Flow/ClusterUniformity.h"

namespace mlir::attn {

/// How integers of one kernel differ between the CTAs of a cluster that lies
/// along x.
class RankValues {
public:
  RankValues(gpu::GPUFuncOp kernel, const ClusterUniformity &uniformity);

  /// Returns by how much the value in the CTA of each rank is larger than that
  /// in the first one; nothing if that is not known.
  std::optional<SmallVector<int64_t>> getDifferences(Value value) const;

private:
  /// A value in the CTA of each rank; if it is not whole, less what is the same
  /// in all of them.
  struct ByRank {
    SmallVector<int64_t> at;
    bool isWhole = false;
  };

  std::optional<ByRank> evaluate(Value value) const;
  std::optional<ByRank> evaluateOp(Operation *op) const;
  std::optional<ByRank> evaluateCast(Operation *op) const;

  gpu::GPUFuncOp kernel;
  const ClusterUniformity &uniformity;
  /// CTAs of the cluster; 0 if it does not lie along x alone.
  int64_t ctas = 0;
};

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_FLOW_RANKVALUES_H
