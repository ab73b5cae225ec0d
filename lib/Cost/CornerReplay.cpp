//===- CornerReplay.cpp - A launch under other numbers --------------------===//

#include "CornerReplay.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Parallel.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::Expected;
using N = CycleNumber;

double CornerReplay::getCycles(const CycleNumbers &numbers,
                               const Timeline &timeline) const {
  return numbers[N::Launch] * numbers[N::LatencyFactor] +
         timeline.cycles * share;
}

Expected<Timeline> CornerReplay::getNominal() {
  Expected<Timeline> timeline = replay(trace, table.getNominal(), resident);
  if (timeline)
    nominal = *timeline;
  return timeline;
}

double CornerReplay::replayWith(const CycleNumbers &numbers) const {
  // The order of events is the trace's, so what ended once ends again.
  Timeline timeline = llvm::cantFail(replay(trace, numbers, resident));
  return getCycles(numbers, timeline);
}

void CornerReplay::findAxes() {
  if (effects)
    return;
  effects.emplace();
  double cycles = getCycles(table.getNominal(), nominal);
  for (CycleNumber number : table.getUncertain()) {
    Effect effect;
    effect.axis.number = number;
    effect.axis.values.push_back(table[number].value);
    effect.cycles.push_back(cycles);
    bool matters = false;
    for (double value : table[number].others) {
      CycleNumbers numbers = table.getNominal();
      numbers[number] = value;
      Timeline timeline = llvm::cantFail(replay(trace, numbers, resident));
      effect.cycles.push_back(getCycles(numbers, timeline));
      matters |= effect.cycles.back() != cycles ||
                 timeline.busy != nominal.busy ||
                 timeline.stalls != nominal.stalls;
      effect.axis.values.push_back(value);
    }
    if (matters)
      effects->push_back(std::move(effect));
  }
}

namespace {

/// Collects the least and the most cycles.
class RangeFinder {
public:
  explicit RangeFinder(double cycles)
      : range{cycles, cycles, "nominal", "nominal"} {}
  void add(double cycles, const std::string &corner) {
    if (cycles < range.low) {
      range.low = cycles;
      range.lowCorner = corner;
    }
    if (cycles > range.high) {
      range.high = cycles;
      range.highCorner = corner;
    }
  }
  CycleRange range;
};

} // namespace

CycleRange CornerReplay::getRange() {
  findAxes();
  RangeFinder finder(getCycles(table.getNominal(), nominal));
  std::vector<CornerAxis> axes;
  llvm::SmallVector<unsigned> lowest, highest;
  CycleNumbers low = table.getNominal(), high = low;
  for (const Effect &effect : *effects) {
    axes.push_back(effect.axis);
    for (size_t i = 1; i < effect.cycles.size(); ++i)
      finder.add(effect.cycles[i], nameValue(effect.axis, i));
    lowest.push_back(llvm::min_element(effect.cycles) - effect.cycles.begin());
    highest.push_back(llvm::max_element(effect.cycles) - effect.cycles.begin());
    low[effect.axis.number] = effect.axis.values[lowest.back()];
    high[effect.axis.number] = effect.axis.values[highest.back()];
  }
  finder.add(replayWith(low), nameChoice(axes, lowest));
  finder.add(replayWith(high), nameChoice(axes, highest));
  return finder.range;
}

Corners CornerReplay::getAll() {
  findAxes();
  Corners corners;
  size_t count = 1;
  for (const Effect &effect : *effects) {
    corners.axes.push_back(effect.axis);
    count *= effect.axis.values.size();
  }
  corners.cycles.resize(count);
  llvm::parallelFor(0, count, [&](size_t corner) {
    CycleNumbers numbers = table.getNominal();
    for (auto [axis, index] :
         llvm::zip_equal(corners.axes, corners.getChoice(corner)))
      numbers[axis.number] = axis.values[index];
    corners.cycles[corner] = replayWith(numbers);
  });
  return corners;
}
