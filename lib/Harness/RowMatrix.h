//===- RowMatrix.h - rows of numbers ----------------------------*- C++ -*-===//

#ifndef ATTN_LIB_HARNESS_ROWMATRIX_H
#define ATTN_LIB_HARNESS_ROWMATRIX_H

#include <cstdint>
#include <vector>

namespace mlir::attn::sim {

/// Multiplies rows of keys or values by their scales, which are of the same
/// form.
void scaleRows(std::vector<double> &matrix, const std::vector<double> &scales,
               int64_t columns, int64_t rows, bool isTransposed);

/// Returns the columns of `second` behind those of `first`.
std::vector<double> joinColumns(const std::vector<double> &first,
                                const std::vector<double> &second,
                                int64_t rows);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_HARNESS_ROWMATRIX_H
