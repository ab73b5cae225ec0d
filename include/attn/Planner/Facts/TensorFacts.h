//===- TensorFacts.h - What schedules ask about a tensor --------*- C++ -*-===//

#ifndef ATTN_PLANNER_FACTS_TENSORFACTS_H
#define ATTN_PLANNER_FACTS_TENSORFACTS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Launch/SizeExpr.h"

namespace mlir::attn {

/// A tensor of the launch: an operand of the op, or memory that a region reads.
struct TensorFacts {
  /// Its name in the launch record and in messages.
  std::string name;
  /// The value outside of the kernel. Null for an absent operand.
  Value value;
  /// Extents and strides in elements, ShapedType::kDynamic where the launch
  /// decides. Strides of a tensor value are those of its dense form.
  SmallVector<int64_t> shape;
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  Type elementType;
  bool written = false;
  /// The kernel reads what it has written.
  bool reread = false;
  /// The name of the workspace that it is, empty for a tensor that the caller
  /// of the launch has: an allocation that only problems of one launch use.
  /// Then its extents, in what the launch knows.
  std::string workspace;
  std::vector<SizeExpr> extents;

  explicit operator bool() const { return static_cast<bool>(value); }

  /// The dimension along which neighbours follow each other in memory: the last
  /// one, or the one before it.
  unsigned getContiguousDim() const;
  /// The largest power of two up to 16 that the address of every row along the
  /// contiguous dimension is a multiple of, in bytes. By contract allocations,
  /// dynamic strides and dynamic offsets are multiples of 16 bytes; static ones
  /// count as they are.
  int64_t getRowAlignment() const;
  bool isWorkspace() const { return !workspace.empty(); }
  /// An extent or a stride of a workspace, which is dense.
  SizeExpr getExtentExpr(unsigned dim) const { return extents[dim]; }
  SizeExpr getStrideExpr(unsigned dim) const;
  /// Bytes of a workspace.
  SizeExpr getBytesExpr() const;

  /// The facts of an operand; without value for an absent one. An operand
  /// without strides is a diagnostic at `op`.
  static FailureOr<TensorFacts> get(Operation *op, StringRef name, Value value,
                                    bool written);
};

/// The first static extent among (tensor, dimension) pairs, else dynamic.
int64_t unifyExtents(
    std::initializer_list<std::pair<const TensorFacts *, unsigned>> extents);

} // namespace mlir::attn

#endif // ATTN_PLANNER_FACTS_TENSORFACTS_H
