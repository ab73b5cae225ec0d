//===- OutputScales.cpp - Outputs with scales of their columns ------------===//

#include "OutputScales.h"
#include "TensorShape.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;

namespace {

/// A group of columns of a row.
struct Group {
  /// Its place in the tensor of scales.
  llvm::SmallVector<int64_t, 4> index;
  /// The row among all, and the first and last column.
  int64_t row, first, last;
};

} // namespace

/// Calls `visit` for the groups of all rows that are defined.
static void forEachGroup(const AttentionResult &reference, int64_t groups,
                         llvm::function_ref<void(const Group &)> visit) {
  ArrayRef<int64_t> shape = reference.shape;
  int64_t rows = shape[0] * shape[1] * shape[2], columns = shape[3] / groups;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t group = 0; group < groups && reference.defined[row]; ++group)
      visit({{row / shape[2] / shape[1], row / shape[2] % shape[1],
              row % shape[2], group},
             row,
             group * columns,
             (group + 1) * columns});
}

/// Returns the number of f4E2M1FN that the lowest four bits say.
static double decodeFloat4(int bits) {
  constexpr double numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  double number = numbers[bits & 7];
  return bits & 8 ? -number : number;
}

Expected<AttentionResult>
sim::applyOutputScales(const TensorView &o, DType dtype,
                       const TensorView &scales,
                       const AttentionResult &reference) {
  llvm::SmallVector<int64_t, 4> stored(reference.shape);
  bool isPaired = dtype == DType::I8;
  if (isPaired)
    stored.back() /= 2;
  if (Error error = checkShape("o", o.shape, stored))
    return std::move(error);
  llvm::SmallVector<int64_t, 4> shape(reference.shape);
  // As many columns as the rows have groups.
  int64_t groups = scales.shape.empty() ? 0 : scales.shape.back();
  if (groups > 0 && reference.shape.back() % groups == 0)
    shape.back() = groups;
  if (Error error = checkShape("o_scales", scales.shape, shape))
    return std::move(error);
  AttentionResult result = reference;
  forEachGroup(reference, shape.back(), [&](const Group &group) {
    double scale = scales.get(group.index);
    llvm::SmallVector<int64_t, 4> index(group.index);
    for (int64_t column = group.first; column < group.last; ++column) {
      index[3] = isPaired ? column / 2 : column;
      double number = o.get(index);
      if (isPaired)
        number = decodeFloat4(int(number) >> (column % 2 * 4));
      result.o[group.row * reference.shape[3] + column] = number * scale;
    }
  });
  return result;
}

std::optional<std::string> sim::findWrongScale(const TensorView &scales,
                                               DType dtype,
                                               const AttentionResult &reference,
                                               double tolerance,
                                               double rowTolerance) {
  bool isPaired = dtype == DType::I8;
  double largest = isPaired ? 6 : dtype == DType::F8E5M2 ? 57344 : 448;
  // A scale of f8E4M3FN is rounded itself.
  double distance = isPaired ? 0x1p-10 : 0;
  if (isPaired)
    tolerance += 0x1p-4;
  std::optional<std::string> problem;
  forEachGroup(reference, scales.shape.back(), [&](const Group &group) {
    ArrayRef<double> row =
        ArrayRef(reference.o)
            .slice(group.row * reference.shape[3], reference.shape[3]);
    auto findMost = [](ArrayRef<double> numbers) {
      double most = 0;
      for (double number : numbers)
        most = std::max(most, std::abs(number));
      return most;
    };
    double most = findMost(row.slice(group.first, group.last - group.first));
    double accepted = rowTolerance * findMost(row) / largest + distance;
    double expected = most > 0 ? most / largest : isPaired ? 0 : 1;
    double scale = scales.get(group.index);
    // Probabilities beside a sink that f32 has no number for are a row of
    // zeros.
    constexpr double kLeast = 0x1p-120;
    if (most < kLeast && scale == 1)
      return;
    if (!problem &&
        !(std::abs(scale - expected) <= tolerance * expected + accepted))
      problem =
          llvm::formatv("output \"o_scales\": expected {0:e3} at [{1}], got "
                        "{2:e3}",
                        expected,
                        llvm::join(llvm::map_range(group.index,
                                                   [](int64_t i) {
                                                     return std::to_string(i);
                                                   }),
                                   ", "),
                        scale);
  });
  return problem;
}
