//===- Corners.cpp - Values that numbers of the model may have ------------===//

#include "attn/Cost/Corners.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;

/// Without zeros behind.
static std::string formatNumber(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

std::string mlir::attn::sim::nameValue(const CornerAxis &axis, unsigned index) {
  return (getCycleKey(axis.number) + "=" + formatNumber(axis.values[index]))
      .str();
}

std::string mlir::attn::sim::nameChoice(llvm::ArrayRef<CornerAxis> axes,
                                        llvm::ArrayRef<unsigned> choice) {
  std::string name;
  for (auto [axis, index] : llvm::zip_equal(axes, choice))
    if (index)
      name += (name.empty() ? "" : " ") + nameValue(axis, index);
  return name.empty() ? "nominal" : name;
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
