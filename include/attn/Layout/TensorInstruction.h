//===- TensorInstruction.h - Shapes of tcgen05.mma --------------*- C++ -*-===//
//
// Which instructions a product of tcgen05.mma takes, and the 32-bit instruction
// descriptor that says what one of them does (PTX ISA, "Matrix shape" and
// "Instruction descriptor" of tcgen05).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_TENSORINSTRUCTION_H
#define ATTN_LAYOUT_TENSORINSTRUCTION_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>

namespace mlir::attn {

/// Element types of operands: those of kind::f16, and of kind::f8f6f4, whose
/// operands may differ.
enum class TensorOperand { F16, BF16, E4M3, E5M2 };

/// Returns the name behind `.kind::` of products with such operands.
llvm::StringRef getTensorKind(TensorOperand operand);

/// tcgen05.mma of one CTA or of a pair with an accumulator in f32. M and N are
/// those of both CTAs.
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
/// that there is, where there are several a multiple of `span`: the columns of
/// B that lie together where B is MN-major, else 1. An error names the nearest
/// legal extents.
llvm::Expected<TensorInstruction> chooseTensorInstruction(int64_t m, int64_t n,
                                                          int64_t k,
                                                          unsigned elementBits,
                                                          int64_t span = 1);

/// Does the same for a product of both CTAs of a pair, of which each has `rows`
/// rows of A and D and half of N: one instruction for each step of the
/// contraction.
llvm::Expected<TensorInstruction> choosePairInstruction(int64_t rows, int64_t n,
                                                        int64_t k,
                                                        unsigned elementBits,
                                                        int64_t span = 1);

} // namespace mlir::attn

#endif // ATTN_LAYOUT_TENSORINSTRUCTION_H
