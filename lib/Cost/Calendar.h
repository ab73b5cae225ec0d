//===- Calendar.h - A unit's time -------------------------------*- C++ -*-===//

#ifndef ATTN_LIB_COST_CALENDAR_H
#define ATTN_LIB_COST_CALENDAR_H

#include <algorithm>
#include <cstddef>
#include <vector>

namespace mlir::attn::sim {

/// A unit's time in slices: what runs later may be placed before what does not
/// need the unit yet.
class Calendar {
public:
  /// Takes `length` cycles from `time` on; when they begin.
  double reserve(double time, double length) {
    end = time;
    if (length <= 0)
      return time;
    size_t slice = findFree(size_t(time / width));
    double begin = std::max(time, slice * width + used[slice]);
    for (double left = length; left > 0; slice = findFree(slice)) {
      double part = std::min(left, width - used[slice]);
      used[slice] += part;
      end = slice * width + used[slice];
      left -= part;
      if (used[slice] >= width - 1e-6)
        next[slice] = slice + 1;
    }
    return begin;
  }

  /// When the last cycles that were taken end, if nothing was in their way.
  double getEnd() const { return end; }

private:
  static constexpr double width = 16;
  size_t findFree(size_t slice) {
    if (slice + 2 > used.size()) {
      size_t old = next.size();
      used.resize(2 * slice + 64, 0);
      next.resize(used.size());
      for (size_t i = old; i < next.size(); ++i)
        next[i] = i;
    }
    size_t found = slice;
    while (next[found] != found) {
      found = next[found];
      if (found + 2 > used.size())
        return findFree(found);
    }
    for (size_t i = slice; i != found;) {
      size_t after = next[i];
      next[i] = found;
      i = after;
    }
    return found;
  }
  double end = 0;
  std::vector<double> used;
  std::vector<size_t> next; ///< the slice itself while it has room
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_COST_CALENDAR_H
