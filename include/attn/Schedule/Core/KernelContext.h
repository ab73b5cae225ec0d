//===- KernelContext.h - The kernel that a schedule fills -------*- C++ -*-===//
//
// The frame of an attention kernel while its schedule emits it, with the
// problem that it computes.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_CORE_KERNELCONTEXT_H
#define ATTN_SCHEDULE_CORE_KERNELCONTEXT_H

#include "attn/Planner/Facts/ProblemFacts.h"
#include "attn/Schedule/Core/KernelFrame.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::attn {

/// What a schedule's emit works with.
class KernelContext : public KernelFrame {
public:
  KernelContext(const ProblemFacts &facts, const TargetRow &target,
                Location loc);

  const ProblemFacts &facts;

  /// Extents, i32. The batch of packed sequences is their number.
  Value getBatch();
  Value getHeads();
  Value getKVHeads();
  Value getQueries();
  Value getKeys();
  /// The address of the sequences' own numbers of keys.
  Value getLengths();

  /// Clones the operations of score_mod or mask_mod for the given arguments and
  /// returns what it yields. Reads of memrefs become loads of global memory.
  /// Null after a diagnostic.
  Value inlineRegion(OpBuilder &builder, Region &region, ValueRange arguments);
  /// Does the same for a region that yields several values. Empty after a
  /// diagnostic.
  SmallVector<Value> inlineResults(OpBuilder &builder, Region &region,
                                   ValueRange arguments);

private:
  Value loadMemRef(ImplicitLocOpBuilder &lb, const TensorFacts &tensor,
                   ValueRange indices, Type type);
  void collectDescriptorArgs();
};

/// What runs are dealt by: the sequences' numbers of keys, and the most runs of
/// one of them.
std::pair<TensorFacts, int64_t> getDealtBatch(const ProblemFacts &facts);

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_CORE_KERNELCONTEXT_H
