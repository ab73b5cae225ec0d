//===- MatrixDescriptor.h - Operands in shared memory -----------*- C++ -*-===//
//
// The 64-bit matrix descriptor of an operand of wgmma.mma_async or tcgen05.mma
// that lies in shared memory (PTX ISA, "Matrix Descriptor Format" and "Strides"
// of the asynchronous warpgroup level matrix instructions, "Shared memory
// descriptor" of tcgen05): where rows and repetitions lie, as multiples of 16
// bytes, and the swizzle. Everything is read off the buffer's SharedLayout;
// nothing is typed twice.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_MATRIXDESCRIPTOR_H
#define ATTN_LAYOUT_MATRIXDESCRIPTOR_H

#include "attn/Layout/SharedLayout.h"

namespace mlir::attn {

/// The instructions that take descriptors. Their fields are the same but for a
/// version that tcgen05 has.
enum class MatrixInstruction { Wgmma, Tcgen05 };

/// How the instruction finds the elements of an operand. "MN" is the dimension
/// that is not contracted: M of operand A, N of operand B.
struct MatrixDescriptor {
  /// Bytes that the instruction contracts at once: k16 of 16-bit elements, k32
  /// of 8-bit ones.
  static constexpr int64_t kStepBytes = 32;

  /// The dimension that is contiguous in memory is MN and not K: the
  /// instruction's transpose bit.
  bool mnMajor = false;
  /// The swizzle: 32, 64 or 128 bytes.
  unsigned spanBytes = 0;
  /// MN-major: from one span along MN to the next. K-major: not used, 16.
  int64_t leadingBytes = 0;
  /// K-major: from 8 rows to the next 8; MN-major: from 8 steps of K to the
  /// next 8.
  int64_t strideBytes = 0;

  /// The descriptor without the address.
  uint64_t
  fields(MatrixInstruction instruction = MatrixInstruction::Wgmma) const;
  /// The descriptor of an operand that starts at `address`, a shared address in
  /// bytes. The address field takes multiples of 16 below 256 KB.
  uint64_t encode(uint32_t address) const {
    return fields() | ((address & 0x3ffff) >> 4);
  }
};

/// Describes a buffer whose layout is seen as (MN, K), dim0 and dim1. An error
/// for layouts that no descriptor can express: without a swizzle, or MN-major
/// with elements of other than 16 bits, or 8 for tcgen05.
llvm::Expected<MatrixDescriptor>
describeMatrix(const SharedLayout &layout,
               MatrixInstruction instruction = MatrixInstruction::Wgmma);

} // namespace mlir::attn

#endif // ATTN_LAYOUT_MATRIXDESCRIPTOR_H
