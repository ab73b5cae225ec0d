//===- MatrixMath.h - Elements and sums of matrix products ------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_NUMERICS_MATRIXMATH_H
#define ATTN_LIB_SIMULATOR_NUMERICS_MATRIXMATH_H

#include "../PTX/Types.h"

namespace mlir::attn::sim {

/// Decodes one element of an operand type.
float decodeMatrixElement(Type type, uint32_t bits);

/// Bits of an element in memory, without the padding behind sixteen of them.
unsigned packedBits(Type type);

/// Decodes `n` elements of a type.
void decodeElements(Type type, const uint8_t *data, unsigned n, float *to);

/// row[j] += sum of a[i]·b[i][j] in the order of i, in f32; b is k by n.
void addProducts(float *row, const float *a, const float *b, unsigned n,
                 unsigned k);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_NUMERICS_MATRIXMATH_H
