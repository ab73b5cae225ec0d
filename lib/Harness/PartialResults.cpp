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
  if (o.shape.size() != 5 || lse.shape.size() != 4 ||
      ArrayRef(o.shape).drop_back() != ArrayRef(lse.shape))
    return createStringError("expected partial results o of rank 5 and lse of "
                             "its first four extents");
  AttentionResult result;
  result.shape.assign(o.shape.begin() + 1, o.shape.end());
  int64_t splits = o.shape[0], columns = o.shape[4];
  for (int64_t b = 0; b < o.shape[1]; ++b)
    for (int64_t h = 0; h < o.shape[2]; ++h)
      for (int64_t i = 0; i < o.shape[3]; ++i) {
        double most = -INFINITY, sum = 0;
        int64_t infinite = 0;
        for (int64_t s = 0; s < splits; ++s) {
          double each = lse.get({s, b, h, i});
          most = std::isnan(each) ? each : std::max(most, each);
          infinite += each == INFINITY;
        }
        // Of several that take all nobody knows which takes more.
        if (infinite > 1)
          most = NAN;
        std::vector<double> row(columns, 0.0);
        for (int64_t s = 0; s < splits; ++s) {
          double each = lse.get({s, b, h, i});
          if (each == -INFINITY)
            continue;
          double weight = each == most ? 1 : std::exp(each - most);
          sum += weight;
          for (int64_t c = 0; c < columns; ++c)
            row[c] += weight * o.get({s, b, h, i, c});
        }
        for (double value : row)
          result.o.push_back(sum == 0 ? 0 : value / sum);
        result.lse.push_back(sum == 0 ? most : most + std::log(sum));
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

TensorView sim::viewLSE(const AttentionResult &result) {
  return viewDoubles(ArrayRef(result.shape).drop_back(), result.lse);
}
