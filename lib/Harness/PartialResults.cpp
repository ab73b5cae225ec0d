//===- PartialResults.cpp - merging partial results -----------------------===//
#include "attn/Harness/PartialResults.h"

#include "attn/Launch/LaunchBinding.h"
#include <cmath>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Expected;

Expected<AttentionResult> sim::mergePartialResults(const TensorView &o,
                                                   const TensorView &lse) {
  // Rows that are not divided have a maximum and a sum in the place of an LSE.
  bool areStates = lse.shape.size() == 5 && lse.shape.back() == 2;
  if (o.shape.size() != 5 || lse.shape.size() != (areStates ? 5 : 4) ||
      ArrayRef(o.shape).drop_back() != ArrayRef(lse.shape).take_front(4))
    return createStringError("expected partial results o of rank 5 and lse of "
                             "its first four extents, or with two numbers for "
                             "each row");
  auto getLog = [&](int64_t s, int64_t b, int64_t h, int64_t i) {
    return areStates ? lse.get({s, b, h, i, 0}) : lse.get({s, b, h, i});
  };
  AttentionResult result;
  result.hasStates = areStates;
  result.shape.assign(o.shape.begin() + 1, o.shape.end());
  int64_t splits = o.shape[0], columns = o.shape[4];
  for (int64_t b = 0; b < o.shape[1]; ++b)
    for (int64_t h = 0; h < o.shape[2]; ++h)
      for (int64_t i = 0; i < o.shape[3]; ++i) {
        double most = -INFINITY, sum = 0;
        int64_t infinite = 0;
        for (int64_t s = 0; s < splits; ++s) {
          double each = getLog(s, b, h, i);
          most = std::isnan(each) ? each : std::max(most, each);
          infinite += each == INFINITY;
        }
        // Of several that take all nobody knows which takes more.
        if (infinite > 1)
          most = NAN;
        std::vector<double> row(columns, 0.0);
        for (int64_t s = 0; s < splits; ++s) {
          double each = getLog(s, b, h, i);
          if (each == -INFINITY)
            continue;
          double weight = each == most ? 1 : std::exp(each - most);
          sum += areStates ? weight * lse.get({s, b, h, i, 1}) : weight;
          for (int64_t c = 0; c < columns; ++c)
            row[c] += weight * o.get({s, b, h, i, c});
        }
        for (double value : row)
          result.o.push_back(areStates || sum == 0 ? value : value / sum);
        result.lse.push_back(areStates || sum == 0 ? most
                                                   : most + std::log(sum));
        if (areStates)
          result.sums.push_back(sum);
        result.defined.push_back(1);
      }
  return std::move(result);
}

static TensorView viewDoubles(ArrayRef<int64_t> shape,
                              const std::vector<double> &values) {
  TensorView view;
  view.dtype = DType::F64;
  view.shape.assign(shape.begin(), shape.end());
  view.strides = getContiguousStrides(shape);
  view.data = ArrayRef(reinterpret_cast<const uint8_t *>(values.data()),
                       values.size() * sizeof(double));
  return view;
}

TensorView sim::viewOutput(const AttentionResult &result) {
  return viewDoubles(result.shape, result.o);
}

std::vector<double> sim::listLogs(const AttentionResult &result) {
  if (!result.hasStates)
    return result.lse;
  std::vector<double> logs;
  for (auto [maximum, sum] : llvm::zip_equal(result.lse, result.sums))
    logs.insert(logs.end(), {maximum, sum});
  return logs;
}

TensorView sim::viewLogs(const AttentionResult &result,
                         const std::vector<double> &logs) {
  llvm::SmallVector<int64_t> shape(ArrayRef(result.shape).drop_back());
  if (result.hasStates)
    shape.push_back(2);
  return viewDoubles(shape, logs);
}
