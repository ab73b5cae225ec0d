//===- OutputScales.cpp - Outputs with scales of their columns ------------===//

#include "OutputScales.h"
#include "TensorShape.h"
#include "attn/Harness/Results.h"
#include "attn/Problem/ScaleTiles.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::APFloat;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;

namespace {

/// A group of columns of a row.
struct Group {
  /// Its place in the results, with its number in the place of the column, and
  /// in the tensor of scales.
  llvm::SmallVector<int64_t, 4> index, place;
  /// The row among all, and the first and last column.
  int64_t row, first, last;
};

} // namespace

/// Calls `visit` for the groups of all rows that are defined; `scales` is the
/// shape of their tensor.
static void forEachGroup(const AttentionResult &reference, int64_t groups,
                         ArrayRef<int64_t> scales,
                         llvm::function_ref<void(const Group &)> visit) {
  ArrayRef<int64_t> shape = reference.shape;
  int64_t rows = shape[0] * shape[1] * shape[2], columns = shape[3] / groups;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t group = 0; group < groups && reference.defined[row]; ++group) {
      llvm::SmallVector<int64_t, 4> index = {row / shape[2] / shape[1],
                                             row / shape[2] % shape[1],
                                             row % shape[2], group};
      llvm::SmallVector<int64_t, 4> place = index;
      if (isInScaleTiles(scales)) {
        int64_t padded = scales.back();
        int64_t offset = getScaleTileOffset(index[0] * shape[2] + index[2],
                                            index[1] * groups + group, padded);
        place = {offset / padded, offset % padded};
      }
      visit({index, place, row, group * columns, (group + 1) * columns});
    }
}

/// Returns how many groups a row has: those of a problem that says it, or as
/// many as `scales` have columns. 0 where these are no number of groups.
static int64_t countGroups(ArrayRef<int64_t> scales, int64_t columns,
                           int64_t size) {
  if (isInScaleTiles(scales))
    return size > 0 && columns % size == 0 ? columns / size : 0;
  int64_t groups = scales.empty() ? 0 : scales.back();
  return groups > 0 && columns % groups == 0 ? groups : 0;
}

/// Returns the largest number of a format.
static double getLargest(const llvm::fltSemantics &format) {
  return APFloat::getLargest(format).convertToDouble();
}

/// Returns the largest scale of results of 4 bits.
static double getLargestScale() { return getLargest(APFloat::Float8E4M3FN()); }

/// Returns the format of results; bytes are pairs of f4E2M1FN.
static const llvm::fltSemantics &getFormat(DType dtype) {
  if (dtype == DType::I8)
    return APFloat::Float4E2M1FN();
  return dtype == DType::F8E5M2 ? APFloat::Float8E5M2()
                                : APFloat::Float8E4M3FN();
}

/// Returns the number in a column of stored results; `index` names its row. Of
/// pairs of f4E2M1FN the even column is in the lower half of a byte.
static double readResult(const TensorView &o, DType dtype,
                         llvm::SmallVector<int64_t, 4> index, int64_t column) {
  bool isPaired = dtype == DType::I8;
  index[3] = isPaired ? column / 2 : column;
  double number = o.get(index);
  if (!isPaired)
    return number;
  llvm::APInt bits(/*numBits=*/4, int64_t(number) >> (column % 2 * 4) & 15);
  return APFloat(getFormat(dtype), bits).convertToDouble();
}

/// Returns the place of a number among all of its format, 0 for zero.
static int64_t getPlace(double number, const llvm::fltSemantics &format) {
  APFloat rounded(number);
  bool losesInfo = false;
  rounded.convert(format, APFloat::rmNearestTiesToEven, &losesInfo);
  bool isNegative = rounded.isNegative();
  rounded.clearSign();
  int64_t place = int64_t(rounded.bitcastToAPInt().getZExtValue());
  return isNegative ? -place : place;
}

Expected<AttentionResult>
sim::applyOutputScales(const TensorView &o, DType dtype,
                       const TensorView &scales, int64_t groupColumns,
                       const AttentionResult &reference) {
  llvm::SmallVector<int64_t, 4> stored(reference.shape);
  if (dtype == DType::I8)
    stored.back() /= 2;
  if (Error error = checkShape("o", o.shape, stored))
    return std::move(error);
  llvm::SmallVector<int64_t, 4> shape(reference.shape);
  int64_t groups =
      countGroups(scales.shape, reference.shape.back(), groupColumns);
  if (groups != 0)
    shape.back() = groups;
  if (groups != 0 && isInScaleTiles(scales.shape))
    shape = {int64_t(llvm::alignTo(shape[0] * shape[2], kScaleTileRows)),
             int64_t(llvm::alignTo(shape[1] * groups, kScaleTileColumns))};
  if (Error error = checkShape("o_scales", scales.shape, shape))
    return std::move(error);
  AttentionResult result = reference;
  forEachGroup(reference, groups, scales.shape, [&](const Group &group) {
    double scale = scales.get(group.place);
    for (int64_t column = group.first; column < group.last; ++column)
      result.o[group.row * reference.shape[3] + column] =
          readResult(o, dtype, group.index, column) * scale;
  });
  return result;
}

std::optional<std::string>
sim::findWrongScale(const TensorView &scales, DType dtype, int64_t groupColumns,
                    const AttentionResult &reference, double tolerance,
                    double rowTolerance) {
  bool isPaired = dtype == DType::I8;
  // A power of two is the least one that is no less.
  bool isPower = scales.dtype == DType::F8E8M0FNU;
  const llvm::fltSemantics &kind = getFormat(dtype);
  double largest = getLargest(kind);
  // A scale of f8E4M3FN is rounded itself.
  double distance = isPaired ? 0x1p-10 : 0;
  if (isPaired)
    tolerance += 0x1p-4;
  std::optional<std::string> problem;
  int64_t groups =
      countGroups(scales.shape, reference.shape.back(), groupColumns);
  forEachGroup(reference, groups, scales.shape, [&](const Group &group) {
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
    if (isPaired)
      expected = std::min(expected, getLargestScale());
    double scale = scales.get(group.place);
    if (isPower && most > 0 && scale > expected * (1 - tolerance) &&
        scale < 2 * expected * (1 + tolerance) + accepted)
      return;
    // Probabilities beside a sink that f32 has no number for are a row of
    // zeros. So is a group whose scale is none of its normal numbers.
    double least = std::max(0x1p-120, largest * 0x1p-126);
    if (most < least && scale == 1)
      return;
    if (!problem &&
        !(std::abs(scale - expected) <= tolerance * expected + accepted))
      problem =
          llvm::formatv("output \"o_scales\": expected {0:e3} at [{1}], got "
                        "{2:e3}",
                        expected,
                        llvm::join(llvm::map_range(group.place,
                                                   [](int64_t i) {
                                                     return std::to_string(i);
                                                   }),
                                   ", "),
                        scale);
  });
  return problem;
}

void sim::limitFloat4(AttentionResult &reference) {
  double most = getLargest(APFloat::Float4E2M1FN()) * getLargestScale();
  for (double &number : reference.o)
    if (std::abs(number) > most)
      number = std::copysign(most, number);
}

/// Compares the numbers of `o` with those that `reference` rounds to, beyond
/// the largest one to that. `scales` is null for a type without scales. What is
/// not finite is left out.
static RoundedNumbers compareRounded(const TensorView &o, DType dtype,
                                     const TensorView *scales,
                                     int64_t groupColumns,
                                     const AttentionResult &reference) {
  const llvm::fltSemantics &format = getFormat(dtype);
  double largest = getLargest(format);
  int64_t columns = reference.shape[3], groups = 1;
  if (scales)
    groups = countGroups(scales->shape, columns, groupColumns);
  RoundedNumbers numbers;
  forEachGroup(
      reference, groups,
      scales ? ArrayRef<int64_t>(scales->shape) : ArrayRef<int64_t>(),
      [&](const Group &group) {
        double scale = scales ? scales->get(group.place) : 1;
        for (int64_t column = group.first; column < group.last; ++column) {
          double number = readResult(o, dtype, group.index, column);
          // Nothing is left of numbers that are too small for a scale.
          double wanted =
              scale == 0 ? 0
                         : reference.o[group.row * columns + column] / scale;
          if (!std::isfinite(wanted) || !std::isfinite(number))
            continue;
          wanted = std::clamp(wanted, -largest, largest);
          int64_t steps =
              std::abs(getPlace(number, format) - getPlace(wanted, format));
          ++numbers.count;
          numbers.different += steps != 0;
          numbers.mostSteps = std::max(numbers.mostSteps, steps);
        }
      });
  return numbers;
}

static std::optional<std::string>
findWrongAmax(double amax, double initial, const AttentionResult &reference,
              double factor, double tolerance) {
  double expected = initial;
  int64_t columns = reference.shape[3];
  for (auto [position, number] : llvm::enumerate(reference.o)) {
    if (!reference.defined[position / columns] || std::isnan(expected))
      continue;
    double size = std::abs(number) / factor;
    if (!(size <= expected))
      expected = size;
  }
  bool isRight =
      std::isfinite(expected)
          ? std::abs(amax - expected) <= tolerance * expected
          : amax == expected || (std::isnan(amax) && std::isnan(expected));
  if (isRight)
    return std::nullopt;
  return llvm::formatv("output \"amax\": expected {0:e3}, got {1:e3}", expected,
                       amax);
}

void sim::compareNarrow(HarnessReport &report, const AttentionProblem *problem,
                        const AttentionResult &reference) {
  const HarnessTensor *o = report.findTensor("o");
  const HarnessTensor *scales = report.findTensor("o_scales");
  DType dtype = o->argument.dtype;
  if (dtype == DType::I8 || dtype == DType::F8E4M3FN ||
      dtype == DType::F8E5M2) {
    std::optional<TensorView> view;
    if (scales)
      view = scales->getView();
    report.rounded =
        compareRounded(o->getView(), dtype, view ? &*view : nullptr,
                       problem ? problem->outGroup : 0, reference);
  }
  const HarnessTensor *amax = report.findTensor("amax");
  if (!amax)
    return;
  const HarnessTensor *q = report.findTensor("q");
  double tolerance = getDefaultTolerance(q ? q->argument.dtype : DType::F32,
                                         DType::F32, problem);
  double initial = amax->initial.empty()
                       ? 0
                       : decodeElement(DType::F32, amax->initial.data());
  double factor = problem && problem->outScale > 0 ? problem->outScale : 1;
  if (std::optional<std::string> wrong = findWrongAmax(
          amax->getView().get({0}), initial, reference, factor, tolerance))
    report.problems.push_back(*wrong);
}
