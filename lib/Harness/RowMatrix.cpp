//===- RowMatrix.cpp - rows of numbers ------------------------------------===//

#include "RowMatrix.h"

using namespace mlir::attn;

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
