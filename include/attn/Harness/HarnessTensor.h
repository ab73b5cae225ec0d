//===- HarnessTensor.h - One tensor of a launch -----------------*- C++ -*-===//

#ifndef ATTN_HARNESS_HARNESSTENSOR_H
#define ATTN_HARNESS_HARNESSTENSOR_H

#include "attn/Harness/Reference.h"
#include "attn/Launch/LaunchBinding.h"
#include "attn/Launch/LaunchRecord.h"
#include <vector>

namespace mlir::attn::sim {

/// One tensor of a launch with its contents.
struct HarnessTensor {
  TensorArgument argument;
  TensorAccess access = TensorAccess::Read;
  /// The strided extent, before the launch for inputs and after it for what is
  /// written.
  std::vector<uint8_t> bytes;
  /// The bytes that a tensor which is updated has before each launch.
  std::vector<uint8_t> initial;
  /// Bytes of an input that are there, but that no launch may look at: they
  /// stay uninitialised. Empty for none.
  std::vector<bool> absent;

  /// Returns true if there is a dimension `axis` that may count what those of
  /// other tensors do. Scales in tiles have tokens and heads' columns.
  bool sharesAxis(unsigned axis) const;
  TensorView getView() const;
  /// The elements alone, row-major.
  std::vector<uint8_t> getElements() const;
};

/// Calls `visit` with the byte offset of each element, in row-major order.
void forEachElement(const TensorArgument &tensor,
                    llvm::function_ref<void(int64_t offset)> visit);

} // namespace mlir::attn::sim

#endif // ATTN_HARNESS_HARNESSTENSOR_H
