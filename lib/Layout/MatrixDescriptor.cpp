//===- MatrixDescriptor.cpp - Operands in shared memory -------------------===//

#include "attn/Layout/MatrixDescriptor.h"
#include "Errors.h"

using namespace mlir::attn;
using llvm::Expected;

uint64_t MatrixDescriptor::fields(MatrixInstruction instruction) const {
  uint64_t swizzle = spanBytes == 128 ? 1 : spanBytes == 64 ? 2 : 3;
  // tcgen05 has a third bit of swizzle, which is for spans of atoms of other
  // sizes, and the constant 0b001 in bits 46 to 48.
  uint64_t version = instruction == MatrixInstruction::Tcgen05 ? 1 : 0;
  return swizzle << 62 | version << 46 |
         static_cast<uint64_t>(strideBytes >> 4) << 32 |
         static_cast<uint64_t>(leadingBytes >> 4) << 16;
}

Expected<MatrixDescriptor>
mlir::attn::describeMatrix(const SharedLayout &layout,
                           MatrixInstruction instruction) {
  if (layout.rank() != 2)
    return makeError("expected a matrix of rank 2, got rank {0}",
                     layout.rank());
  if (layout.spanBytes() == 0)
    return makeError("expected a swizzle of 32, 64 or 128 bytes for a matrix "
                     "descriptor, got none");
  MatrixDescriptor result;
  result.spanBytes = layout.spanBytes();
  result.mnMajor = layout.contiguousDim() == 0u;
  bool takesNarrow = instruction == MatrixInstruction::Tcgen05;
  if (result.mnMajor && layout.elementBits() != 16 &&
      (layout.elementBits() != 8 || !takesNarrow))
    return makeError("expected elements of {0}16 bits in a matrix that is not "
                     "contiguous along the contraction, got {1} bits",
                     takesNarrow ? "8 or " : "", layout.elementBits());
  // Strides along a dimension without repetitions are never used; the ISA's
  // examples have 1 there.
  auto stride = [&](unsigned dim) {
    const SharedRepetition &repetition = layout.repetitions()[dim];
    return repetition.count == 1 ? 16
                                 : repetition.stride * layout.elementBytes();
  };
  result.leadingBytes = result.mnMajor ? stride(0) : 16;
  result.strideBytes = stride(result.mnMajor ? 1 : 0);
  constexpr int64_t largest = 0x3fff << 4;
  if (result.leadingBytes > largest || result.strideBytes > largest)
    return makeError("expected strides of at most {0} bytes in a matrix "
                     "descriptor, got {1} and {2}",
                     largest, result.leadingBytes, result.strideBytes);
  return result;
}
