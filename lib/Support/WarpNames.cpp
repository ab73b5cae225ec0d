//===- WarpNames.cpp - Warps and CTAs in words ----------------------------===//

#include "attn/Support/WarpNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <set>
#include <vector>

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::StringRef;

/// So many ranges, or kinds of CTAs, are named; of what follows only how much
/// it is.
static constexpr size_t kMostNamed = 6;

std::string mlir::attn::describeCount(int64_t count, StringRef noun) {
  return llvm::formatv("{0} {1}{2}", count, noun, count == 1 ? "" : "s");
}

std::string mlir::attn::describeNumbers(ArrayRef<int64_t> given) {
  std::vector<int64_t> numbers(given.begin(), given.end());
  llvm::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::string text;
  size_t named = 0;
  for (size_t i = 0; i < numbers.size(); ++named) {
    if (named == kMostNamed)
      return text + llvm::formatv(" and {0} more", numbers.size() - i).str();
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1)
      ++end;
    // Of two the range would be no shorter.
    if (end - i == 2)
      --end;
    text += text.empty() ? "" : ", ";
    text += std::to_string(numbers[i]);
    if (end - i > 1)
      text += "-" + std::to_string(numbers[end - 1]);
    i = end;
  }
  return text;
}

using Cta = std::array<uint32_t, 3>;

/// CTAs by their place in the grid: those that fill a box as one.
static std::string describePlaces(const std::set<Cta> &ctas) {
  std::array<std::set<uint32_t>, 3> axes;
  for (const Cta &cta : ctas)
    for (unsigned axis : {0, 1, 2})
      axes[axis].insert(cta[axis]);
  uint64_t box = 1;
  bool isBox = true;
  std::string text = "(";
  for (unsigned axis : {0, 1, 2}) {
    uint32_t first = *axes[axis].begin(), last = *axes[axis].rbegin();
    isBox &= last - first + 1 == axes[axis].size();
    box *= axes[axis].size();
    text += axis ? "," : "";
    text += std::to_string(first);
    if (last != first)
      text += "-" + std::to_string(last);
  }
  if (isBox && box == ctas.size())
    return text + ")";
  text.clear();
  size_t named = 0;
  for (const Cta &cta : ctas) {
    if (named++ == kMostNamed)
      return text +
             llvm::formatv(" and {0} more", ctas.size() - kMostNamed).str();
    text += llvm::formatv("{0}({1},{2},{3})", text.empty() ? "" : ", ", cta[0],
                          cta[1], cta[2]);
  }
  return text;
}

static std::string describeCtas(const std::set<Cta> &ctas, CtaNames names) {
  std::string text = ctas.size() == 1 ? "CTA " : "CTAs ";
  if (names == CtaNames::Grid)
    return text + describePlaces(ctas);
  std::vector<int64_t> ranks;
  for (const Cta &cta : ctas)
    ranks.push_back(cta[0]);
  return text + describeNumbers(ranks);
}

std::string mlir::attn::describeWarps(ArrayRef<WarpName> warps,
                                      CtaNames names) {
  std::map<Cta, std::set<int64_t>> byCta;
  for (const WarpName &name : warps)
    byCta[names == CtaNames::None ? Cta() : name.cta].insert(name.warp);
  // CTAs with the same warps are named together, in the order of the first.
  std::vector<std::pair<std::set<int64_t>, std::set<Cta>>> groups;
  for (auto &[cta, set] : byCta) {
    auto found = llvm::find_if(
        groups, [&set = set](const auto &each) { return each.first == set; });
    if (found == groups.end())
      found = groups.insert(found, {set, {}});
    found->second.insert(cta);
  }
  std::string text;
  for (auto [index, group] : llvm::enumerate(groups)) {
    auto &[set, ctas] = group;
    if (index == kMostNamed)
      return text + llvm::formatv(" and those of {0} more CTAs",
                                  groups.size() - kMostNamed)
                        .str();
    text += index == 0 ? "" : index + 1 == groups.size() ? " and " : ", ";
    if (*set.begin() < 0) {
      text += describeCtas(ctas, names);
      continue;
    }
    text += set.size() == 1 ? "warp " : "warps ";
    text += describeNumbers(std::vector<int64_t>(set.begin(), set.end()));
    if (names != CtaNames::None)
      text += " of " + describeCtas(ctas, names);
  }
  return text;
}
