//===- RowMatrix.cpp - rows of numbers ------------------------------------===//

#include "RowMatrix.h"
#include <cmath>

using namespace mlir::attn;

std::vector<double>
sim::makeMatrix(int64_t rows, int64_t columns, bool transpose,
                llvm::function_ref<double(int64_t, int64_t)> get) {
  std::vector<double> matrix(rows * columns);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      matrix[transpose ? column * rows + row : row * columns + column] =
          get(row, column);
  return matrix;
}

/// Returns the weight of a sink or a state: one of +inf takes all, which keys
/// with such scores do not.
static double weigh(double logit, double max) {
  return logit == infinity ? 1 : std::exp(logit - max);
}

double sim::addValues(llvm::ArrayRef<double> scores,
                      llvm::ArrayRef<int64_t> seen, llvm::ArrayRef<double> v,
                      const RowLogits &logits, double max,
                      llvm::MutableArrayRef<double> o) {
  int64_t columns = o.size();
  double sum = logits.sink == -infinity ? 0.0 : weigh(logits.sink, max);
  // The state counts as a key.
  if (logits.init != -infinity) {
    double p = weigh(logits.init, max);
    sum += p;
    for (int64_t column = 0; column < columns; ++column)
      o[column] = p * logits.getInitValue(column);
  }
  for (int64_t j : seen) {
    double p = std::exp(scores[j] - max);
    // A hidden key has no share, whatever its value is. Kernels multiply it by
    // 0 where it shares a block with visible ones, so that it has to be finite
    // (docs/Reference.md).
    if (p == 0)
      continue;
    sum += p;
    const double *row = v.data() + j * columns;
    for (int64_t column = 0; column < columns; ++column)
      o[column] += p * row[column];
  }
  return sum;
}

void sim::scaleRows(std::vector<double> &matrix,
                    const std::vector<double> &scales, int64_t columns,
                    int64_t rows, bool isTransposed) {
  int64_t groups = rows == 0 ? 1 : int64_t(scales.size()) / rows;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      int64_t group = column * groups / columns;
      if (isTransposed)
        matrix[column * rows + row] *= scales[group * rows + row];
      else
        matrix[row * columns + column] *= scales[row * groups + group];
    }
}

std::vector<double> sim::joinColumns(const std::vector<double> &first,
                                     const std::vector<double> &second,
                                     int64_t rows) {
  std::vector<double> joined;
  joined.reserve(first.size() + second.size());
  for (int64_t row = 0; row < rows; ++row)
    for (const std::vector<double> *each : {&first, &second}) {
      int64_t columns = int64_t(each->size()) / rows;
      auto begin = each->begin() + row * columns;
      joined.insert(joined.end(), begin, begin + columns);
    }
  return joined;
}
