//===- TensorInstruction.h - Shapes of tcgen05.mma --------------*- C++ -*-===//
//
// Which instructions a product of tcgen05.mma takes, and the 32-bit instruction
// descriptor that says what one of them does (PTX ISA, "Matrix shape" and
// "Instruction descriptor" of tcgen05).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_TENSORINSTRUCTION_H
#define ATTN_LAYOUT_TENSORINSTRUCTION_H

#include "llvm/Support/Error.h"
#include <cstdint>

namespace mlir::attn {

/// Element types of operands of kind::f16.
enum class TensorOperand : uint32_t { F16 = 0, BF16 = 1 };

/// tcgen05.mma of one CTA with an accumulator in f32.
struct TensorInstruction {
  int64_t m = 0;
  int64_t n = 0;
  /// Elements of the contraction that it takes at once.
  int64_t k = 0;

  /// The instruction descriptor. An operand is MN-major if the dimension that
  /// is not contracted is contiguous in memory.
  uint32_t encode(TensorOperand a, bool mnMajorA, TensorOperand b,
                  bool mnMajorB) const;
};

/// Divides a product of m x n x k into instructions of one shape: the largest n
/// that there is, where there are several a multiple of `span`. An error names
/// the nearest legal extents.
llvm::Expected<TensorInstruction> chooseTensorInstruction(int64_t m, int64_t n,
                                                          int64_t k,
                                                          unsigned elementBits,
                                                          int64_t span = 1);

} // namespace mlir::attn

#endif // ATTN_LAYOUT_TENSORINSTRUCTION_H
