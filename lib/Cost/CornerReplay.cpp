//===- CornerReplay.cpp - A launch under other numbers --------------------===//

#include "CornerReplay.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
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

/// Without zeros behind.
static std::string formatNumber(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

static std::string nameValue(const CornerAxis &axis, unsigned index) {
  return (getCycleKey(axis.number) + "=" + formatNumber(axis.values[index]))
      .str();
}

static std::string nameChoice(llvm::ArrayRef<CornerAxis> axes,
                              llvm::ArrayRef<unsigned> choice) {
  std::string name;
  for (auto [axis, index] : llvm::zip_equal(axes, choice))
    if (index)
      name += (name.empty() ? "" : " ") + nameValue(axis, index);
  return name.empty() ? "nominal" : name;
}

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
    highest.push_back(llvm::max_element(effect.cycles) -
                      effect.cycles.begin());
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

llvm::SmallVector<unsigned> Corners::getChoice(size_t corner) const {
  llvm::SmallVector<unsigned> choice(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    choice[i] = corner % axes[i].values.size();
    corner /= axes[i].values.size();
  }
  return choice;
}

std::string Corners::getName(size_t corner) const {
  return nameChoice(axes, getChoice(corner));
}

llvm::json::Value Corners::toJSON() const {
  llvm::json::Array listed;
  for (const CornerAxis &axis : axes)
    listed.push_back(
        llvm::json::Object{{"number", getCycleKey(axis.number)},
                           {"values", llvm::json::Array(axis.values)}});
  return llvm::json::Object{{"axes", std::move(listed)},
                            {"cycles", llvm::json::Array(cycles)}};
}

void Corners::print(llvm::raw_ostream &os) const {
  size_t low = llvm::min_element(cycles) - cycles.begin();
  size_t high = llvm::max_element(cycles) - cycles.begin();
  os << llvm::formatv("corners:         {0}, {1:F0} ({2}) to {3:F0} ({4}) "
                      "cycles\n",
                      cycles.size(), cycles[low], getName(low), cycles[high],
                      getName(high));
  for (auto [i, axis] : llvm::enumerate(axes)) {
    os << "  " << getCycleKey(axis.number) << ":";
    for (unsigned value = 0; value < axis.values.size(); ++value) {
      double least = cycles[high], most = cycles[low], alone = 0;
      for (size_t corner = 0; corner < cycles.size(); ++corner) {
        llvm::SmallVector<unsigned> choice = getChoice(corner);
        if (choice[i] != value)
          continue;
        least = std::min(least, cycles[corner]);
        most = std::max(most, cycles[corner]);
        choice[i] = 0;
        if (llvm::all_of(choice, [](unsigned index) { return index == 0; }))
          alone = cycles[corner];
      }
      os << llvm::formatv("{0} {1}: {2:F0} alone, {3:F0} to {4:F0}",
                          value ? ";" : "", formatNumber(axis.values[value]),
                          alone, least, most);
    }
    os << "\n";
  }
}
