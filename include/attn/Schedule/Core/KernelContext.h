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

  /// Clones the operations of score_mod, mask_mod or out_mod for the given
  /// arguments and returns what it yields. Reads of memrefs become loads of
  /// global memory. Null after a diagnostic.
  Value inlineRegion(OpBuilder &builder, Region &region, ValueRange arguments);
  /// Does the same for a region that yields several values. Empty after a
  /// diagnostic.
  SmallVector<Value> inlineResults(OpBuilder &builder, Region &region,
                                   ValueRange arguments);
  /// Does the same for key_range, asked for rows of a tile that needs the keys
  /// `begin` to `end - 1` alone: others are not looked for.
  SmallVector<Value> inlineRangeBetween(OpBuilder &builder,
                                        ValueRange arguments, Value begin,
                                        Value end);

  /// Emits which captured tensors are in order whose keys are looked for, once
  /// for all tiles: in front of the kernel's partitions. Tiles of kernels that
  /// do not call it look at their own rows.
  void emitOrders();
  /// True if that has been called and key_range looks for keys.
  bool knowsOrders() const { return !orders.empty(); }

private:
  /// Emits attn.find_key on the memory of its memrefs; null after a diagnostic.
  Value inlineFindKey(ImplicitLocOpBuilder &lb, FindKeyOp find,
                      const IRMapping &mapping);
  /// Emits whether a row of a captured tensor is in order; `place` is what the
  /// row is known by.
  Value emitOrder(ImplicitLocOpBuilder &lb, const TensorFacts &tensor,
                  Value row, ValueRange place, Type type);
  void collectDescriptorArgs();

  /// Keys outside of these are not looked for, i32; null for no such bounds.
  Value searchBegin, searchEnd;
  /// By tensor and place of the row, which is empty for all rows: true if they
  /// are in order.
  SmallVector<std::tuple<Value, SmallVector<Value>, Value>> orders;
};

/// What runs are dealt by: the sequences' numbers of keys, and the most runs of
/// one of them.
std::pair<TensorFacts, int64_t> getDealtBatch(const ProblemFacts &facts);

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_CORE_KERNELCONTEXT_H
