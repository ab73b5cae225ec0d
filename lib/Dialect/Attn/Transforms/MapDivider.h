//===- MapDivider.h - Smaller boxes for tensor maps -------------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_MAPDIVIDER_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_MAPDIVIDER_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::attn {

/// Rows after which the swizzle of an address repeats.
inline constexpr int64_t kRowsOfSwizzle = 8;

/// Divides the boxes of a kernel's tensor maps in the three places that state
/// them: the kernel's parameter, its launch record and where the host encodes.
class MapDivider {
public:
  MapDivider(gpu::GPUFuncOp kernel, ModuleOp module)
      : kernel(kernel), module(module) {}

  /// Returns why loads by `map` cannot be of parts of its box; empty if they
  /// can.
  std::string findReason(Value map);
  /// Plans a box of one of `parts` parts of the rows. On failure a diagnostic
  /// was emitted.
  LogicalResult add(Value map, int64_t parts);
  /// Does what was planned.
  void rewrite();

private:
  struct Plan {
    int64_t parts = 1;
    /// The operands of launches that pass the map.
    SmallVector<OpOperand *> operands;
  };

  LogicalResult checkRecord(BlockArgument map);
  LogicalResult collectOperands(BlockArgument map, Plan &plan);
  void rewrite(BlockArgument map, const Plan &plan);

  gpu::GPUFuncOp kernel;
  ModuleOp module;
  llvm::MapVector<Value, Plan> maps;
};

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_MAPDIVIDER_H
