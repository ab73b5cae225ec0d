//===- WaitGroups.cpp - Who waits for whom where nobody can go on ---------===//

#include "attn/Support/WaitGroups.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <optional>

using namespace mlir::attn;
using llvm::ArrayRef;

using Names = llvm::function_ref<std::string(ArrayRef<unsigned>)>;

/// A summary ends with the clause that comes to so many characters; the groups
/// have the rest.
static constexpr size_t kLongSummary = 110;

static void addDistinct(llvm::SmallVectorImpl<unsigned> &to,
                        ArrayRef<unsigned> from) {
  for (unsigned each : from)
    if (!llvm::is_contained(to, each))
      to.push_back(each);
}

/// "warps 0-3 wait" or "warp 4 waits", with a word behind it.
static std::string beginClause(const WaitGroup &group, Names name,
                               llvm::StringRef place) {
  return llvm::formatv("{0} {1}{2} for {3}", name(group.warps),
                       group.warps.size() == 1 ? "waits" : "wait", place,
                       group.awaited);
}

std::string mlir::attn::describeGroup(const WaitGroup &group, Names name) {
  std::string text = beginClause(group, name, " here");
  std::string from =
      group.awaitedOf.empty() ? "" : " from " + name(group.awaitedOf);
  if (!group.lacks.empty())
    return text + ", which lacks " + group.lacks + from;
  return text + from;
}

/// The groups of those that a group waits for.
static llvm::SmallVector<size_t, 4> getNext(ArrayRef<WaitGroup> groups,
                                            const WaitGroup &group) {
  llvm::SmallVector<size_t, 4> next;
  for (auto [index, other] : llvm::enumerate(groups))
    if (&other != &group &&
        llvm::any_of(other.warps, [&](unsigned warp) {
          return llvm::is_contained(group.awaitedOf, warp);
        }))
      next.push_back(index);
  return next;
}

/// Follows who waits for whom from one group on: the way to the first that
/// comes again, or to one that waits for nobody who waits.
static std::vector<size_t> follow(ArrayRef<WaitGroup> groups, size_t first,
                                  std::optional<size_t> &again) {
  std::vector<size_t> path = {first};
  while (true) {
    llvm::SmallVector<size_t, 4> next = getNext(groups, groups[path.back()]);
    if (next.empty())
      return path;
    // One that was there closes the cycle, and the shorter the better.
    for (size_t at = path.size(); at-- > 0;)
      if (llvm::is_contained(next, path[at])) {
        again = at;
        return path;
      }
    path.push_back(next.front());
  }
}

WaitGroups mlir::attn::groupWaiters(ArrayRef<Waiter> waiters, Names name) {
  std::vector<WaitGroup> groups;
  for (const Waiter &waiter : waiters) {
    auto found = llvm::find_if(groups, [&](const WaitGroup &group) {
      return group.place == waiter.place && group.awaited == waiter.awaited &&
             group.lacks == waiter.lacks;
    });
    if (found == groups.end()) {
      groups.push_back({{}, waiter.place, waiter.awaited, waiter.lacks, {}});
      found = std::prev(groups.end());
    }
    addDistinct(found->warps, {waiter.warp});
    addDistinct(found->awaitedOf, waiter.awaitedOf);
  }
  std::optional<size_t> again;
  std::vector<size_t> path = follow(groups, 0, again);
  // Those that only wait for a cycle are not of it.
  if (again)
    path.erase(path.begin(), path.begin() + *again);
  WaitGroups result;
  for (auto [index, at] : llvm::enumerate(path)) {
    const WaitGroup &group = groups[at];
    if (result.summary.size() > kLongSummary) {
      result.summary += llvm::formatv("; {0} more places", path.size() - index);
      break;
    }
    result.summary += index ? "; " : "";
    result.summary += beginClause(group, name, "");
    bool isEnd = index + 1 == path.size() && !again;
    if (!group.awaitedOf.empty())
      result.summary += " from " + name(group.awaitedOf);
    else if (isEnd && !group.lacks.empty())
      result.summary += ", which lacks " + group.lacks;
  }
  for (size_t at : path)
    result.groups.push_back(groups[at]);
  for (auto [index, group] : llvm::enumerate(groups))
    if (!llvm::is_contained(path, index))
      result.groups.push_back(std::move(group));
  return result;
}
