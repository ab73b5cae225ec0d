//===- RowMatrix.h - rows of numbers ----------------------------*- C++ -*-===//

#ifndef ATTN_LIB_HARNESS_ROWMATRIX_H
#define ATTN_LIB_HARNESS_ROWMATRIX_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>
#include <limits>
#include <vector>

namespace mlir::attn::sim {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// Returns a row-major matrix of numbers, or with `transpose` a column-major
/// one.
std::vector<double>
makeMatrix(int64_t rows, int64_t columns, bool transpose,
           llvm::function_ref<double(int64_t, int64_t)> get);

/// Logits of a row beside the scores of its keys, -inf for none: a sink, and a
/// state that stands for a value.
struct RowLogits {
  double sink, init;
  llvm::function_ref<double(int64_t)> getInitValue;
};

/// Adds to `o` the values of the keys `seen`, rows of `v`, times their weights
/// exp(score - max), and of the state. Returns the sum of all weights.
double addValues(llvm::ArrayRef<double> scores, llvm::ArrayRef<int64_t> seen,
                 llvm::ArrayRef<double> v, const RowLogits &logits, double max,
                 llvm::MutableArrayRef<double> o);

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
