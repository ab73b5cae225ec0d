//===- ClusterUniformity.h - What all CTAs of a cluster share ---*- C++ -*-===//
//
// Which values are the same in all CTAs of a cluster, and which ops all of them
// execute as often. A thread's place in its CTA does not matter here: the
// thread that elects itself in one CTA has its counterpart in each other one.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_FLOW_CLUSTERUNIFORMITY_H
#define ATTN_ANALYSIS_FLOW_CLUSTERUNIFORMITY_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// The values of one kernel before `attn-lower-tile-loops`, whose tile loops
/// still deal tiles to clusters. Conservative: a value of an op that is not
/// known to be a function of its operands may differ. Global memory is taken to
/// be read only.
class ClusterUniformity {
public:
  explicit ClusterUniformity(gpu::GPUFuncOp kernel);

  /// The op because of which `value` may differ between the CTAs of a cluster,
  /// or null if it does not.
  Operation *getSource(Value value) const { return sources.lookup(value); }
  /// The op because of which the CTAs of a cluster may execute `op` differently
  /// often, or null if they do not.
  Operation *getControlSource(Operation *op) const;

private:
  void add(Value value, Operation *source);
  void propagate(OpOperand &use, Operation *source);

  gpu::GPUFuncOp kernel;
  /// Where region ops pass values on to.
  llvm::DenseMap<OpOperand *, SmallVector<Value>> flow;
  llvm::DenseMap<Value, Operation *> sources;
  SmallVector<Value> worklist;
};

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_FLOW_CLUSTERUNIFORMITY_H
