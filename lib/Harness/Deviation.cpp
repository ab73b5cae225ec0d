//===- Deviation.cpp - how far outputs are from the reference -------------===//
#include "attn/Harness/Reference.h"

#include "TensorShape.h"
#include <cmath>
#include <limits>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// |out - ref|, where equal infinities and two NaNs agree.
static double difference(double out, double ref) {
  if (std::isnan(out) && std::isnan(ref))
    return 0;
  if (out == ref)
    return 0;
  double delta = std::abs(out - ref);
  return std::isnan(delta) ? kInfinity : delta;
}

namespace {

/// Where the elements of an output type end.
struct OutputRange {
  /// The least magnitude that rounds to infinity, or the largest finite one of
  /// a type whose conversions saturate.
  double end = kInfinity;
  bool saturates = false;
  double minNormal = 0;
  /// Half the distance of the numbers below `minNormal`.
  double halfSpacing = 0;
};

} // namespace

static OutputRange getRange(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return {65520, false, 0x1p-14, 0x1p-25};
  case DType::BF16:
    return {0x1.FFp127, false, 0x1p-126, 0x1p-134};
  case DType::F32:
    return {0x1.FFFFFFp127, false, 0x1p-126, 0x1p-150};
  case DType::F8E4M3FN:
    return {448, true, 0x1p-6, 0x1p-10};
  case DType::F8E5M2:
    return {57344, true, 0x1p-14, 0x1p-17};
  default:
    return {};
  }
}

/// The difference of an element of O, judged by what its type can hold: beyond
/// the range infinity is right (or the largest number), to within the same
/// hundredth on both sides of the end; below the normal numbers half their
/// spacing is no error.
static double outputDifference(double out, double ref,
                               const OutputRange &range) {
  constexpr double margin = 0.01;
  if (!std::isfinite(ref))
    return difference(out, ref);
  double size = std::abs(ref);
  if (range.saturates) {
    ref = std::copysign(std::min(size, range.end), ref);
  } else {
    bool sameSign = std::signbit(out) == std::signbit(ref);
    if (std::isinf(out) && sameSign && size >= range.end * (1 - margin))
      return std::max(0.0, range.end - size);
    if (size > range.end * (1 + margin))
      return kInfinity;
  }
  double delta = difference(out, ref);
  return size < range.minNormal ? std::max(0.0, delta - range.halfSpacing)
                                : delta;
}

/// Calls `visit(index, row)` for each index of `shape`, in row-major order.
static void
forEachIndex(ArrayRef<int64_t> shape,
             llvm::function_ref<void(ArrayRef<int64_t>, int64_t)> visit) {
  llvm::SmallVector<int64_t, 4> index(shape.size(), 0);
  if (llvm::is_contained(shape, 0))
    return;
  for (int64_t position = 0;; ++position) {
    visit(index, position);
    size_t axis = shape.size();
    while (axis && ++index[axis - 1] == shape[axis - 1])
      index[--axis] = 0;
    if (!axis)
      return;
  }
}

/// Remembers the element that differs most.
static void track(Deviation &deviation, double &largest, double delta,
                  ArrayRef<int64_t> index, double out, double ref) {
  if (!(delta > largest))
    return;
  largest = delta;
  deviation.worst.assign(index.begin(), index.end());
  deviation.out = out;
  deviation.ref = ref;
}

Expected<Deviation> sim::compareOutput(const TensorView &out,
                                       const AttentionResult &reference) {
  if (Error error = checkShape("o", out.shape, reference.shape))
    return std::move(error);
  Deviation deviation;
  double largest = 0, deltas = 0, refs = 0;
  // A recorded result may have any rank.
  int64_t dv = reference.shape.empty() ? 1 : reference.shape.back();
  OutputRange range = getRange(out.dtype);
  forEachIndex(reference.shape, [&](ArrayRef<int64_t> index, int64_t position) {
    if (!reference.defined[position / dv])
      return;
    double value = out.get(index), ref = reference.o[position];
    double delta = outputDifference(value, ref, range);
    deltas += delta * delta;
    double size = std::min(std::abs(ref), range.end);
    refs += std::isfinite(ref) ? size * size : 0;
    track(deviation, largest, delta, index, value, ref);
  });
  deviation.error = std::sqrt(deltas) / (refs > 0 ? std::sqrt(refs) : 1.0);
  return deviation;
}

/// A float cannot hold a large LSE to a thousandth: from 1024 on the difference
/// counts in proportion.
static double getLSEScale(double ref) {
  return std::max(1.0, std::abs(ref) / 1024);
}

Expected<Deviation> sim::compareLSE(const TensorView &out,
                                    const AttentionResult &reference) {
  llvm::SmallVector<int64_t, 4> shape(reference.shape);
  shape.pop_back();
  // Maxima and sums of rows.
  unsigned numbers = reference.hasStates ? 2 : 1;
  if (numbers == 2)
    shape.push_back(numbers);
  if (Error error = checkShape("lse", out.shape, shape))
    return std::move(error);
  Deviation deviation;
  forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t position) {
    int64_t row = position / numbers;
    if (!reference.defined[row])
      return;
    double value = out.get(index), ref = reference.lse[row];
    if (position % numbers == 1) {
      ref = reference.sums[row];
      double delta = difference(value, ref) / std::max(1.0, ref);
      track(deviation, deviation.error, delta, index, value, ref);
      return;
    }
    double delta =
        difference(value, ref) / (std::isfinite(ref) ? getLSEScale(ref) : 1);
    track(deviation, deviation.error, delta, index, value, ref);
  });
  return deviation;
}
