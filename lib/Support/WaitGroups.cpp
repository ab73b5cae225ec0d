//===- WaitGroups.cpp - Who waits for whom where nobody can go on ---------===//

#include "attn/Support/WaitGroups.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <optional>
#include <set>

using namespace mlir::attn;
using llvm::ArrayRef;

/// A summary has less characters than this, "deadlock: " in front of it among
/// them; the groups have the rest.
static constexpr size_t kLongSummary = 120 - 10;
/// Characters to say how many places are left out.
static constexpr size_t kMorePlaces = 16;

static void addDistinct(llvm::SmallVectorImpl<unsigned> &to,
                        ArrayRef<unsigned> from) {
  for (unsigned each : from)
    if (!llvm::is_contained(to, each))
      to.push_back(each);
}

namespace {

/// Names warps as far as the reader needs it.
class Namer {
public:
  Namer(ArrayRef<WaitGroup> groups, const WaiterNames &names);
  std::string name(ArrayRef<unsigned> warps) const;
  std::string begin(const WaitGroup &group, llvm::StringRef place) const;
  /// Returns what a group waits for, and from whom where `isWhole`, for a
  /// summary. Behind a clause that ends with the group's warps these are not
  /// named again.
  std::string summarise(const WaitGroup &group, const WaitGroup *before,
                        bool isWhole) const;
  /// Returns what has not come, and from whom; may be empty.
  std::string describeLack(const WaitGroup &group) const;
  /// Returns that for a summary, without how much it is where there is no room.
  std::string summariseLack(const WaitGroup &group, bool hasRoom) const;
  /// The CTAs of all, where they need not be named each time.
  const std::string &getWhere() const { return where; }

private:
  std::vector<WarpName> list(ArrayRef<unsigned> warps) const {
    std::vector<WarpName> result;
    for (unsigned warp : warps)
      result.push_back(names.warps[warp]);
    return result;
  }

  bool isOne(ArrayRef<unsigned> warps) const;
  /// The name of a role says enough where CTAs need none.
  bool hasShortName(ArrayRef<unsigned> warps) const {
    return ctas == CtaNames::None && names.role && !names.role(warps).empty();
  }
  std::string nameShort(ArrayRef<unsigned> warps) const {
    return hasShortName(warps) ? names.role(warps) : name(warps);
  }

  const WaiterNames &names;
  CtaNames ctas;
  std::string where;
};

} // namespace

/// The CTAs of warps that are the same ones in each of these CTAs; empty if
/// they are not.
static std::set<WarpName> getAlikeCtas(ArrayRef<WarpName> warps) {
  std::map<std::array<uint32_t, 3>, std::set<int64_t>> byCta;
  for (const WarpName &warp : warps)
    byCta[warp.cta].insert(warp.warp);
  std::set<WarpName> ctas;
  for (const auto &[cta, set] : byCta) {
    if (set != byCta.begin()->second)
      return {};
    ctas.insert({cta});
  }
  return ctas;
}

Namer::Namer(ArrayRef<WaitGroup> groups, const WaiterNames &names)
    : names(names), ctas(names.ctas) {
  if (ctas == CtaNames::None)
    return;
  std::set<WarpName> common = getAlikeCtas(list(groups.front().warps));
  auto isCommon = [&](ArrayRef<unsigned> warps) {
    std::set<WarpName> own = getAlikeCtas(list(warps));
    return warps.empty() ||
           std::equal(own.begin(), own.end(), common.begin(), common.end(),
                      [](const WarpName &a, const WarpName &b) {
                        return a.cta == b.cta;
                      });
  };
  if (common.empty() || !llvm::all_of(groups, [&](const WaitGroup &group) {
        return isCommon(group.warps) && isCommon(group.awaitedOf) &&
               isCommon(group.exited);
      }))
    return;
  where =
      describeWarps(std::vector<WarpName>(common.begin(), common.end()), ctas);
  ctas = CtaNames::None;
}

std::string Namer::name(ArrayRef<unsigned> warps) const {
  std::string role = names.role ? names.role(warps) : "";
  return role + (role.empty() ? "" : " ") + describeWarps(list(warps), ctas);
}

bool Namer::isOne(ArrayRef<unsigned> group) const {
  std::vector<WarpName> warps = list(group);
  return llvm::all_of(warps, [&](const WarpName &warp) {
    return warp.warp == warps.front().warp &&
           (ctas == CtaNames::None || warp.cta == warps.front().cta);
  });
}

/// "warps 0-3 wait for ..." or "warp 4 waits here for ...".
std::string Namer::begin(const WaitGroup &group, llvm::StringRef place) const {
  return llvm::formatv("{0} {1}{2} for {3}", name(group.warps),
                       isOne(group.warps) ? "waits" : "wait", place,
                       group.awaited);
}

/// "'consumer' waits for phase 8 of 'k.full'[0] from 'producer'".
std::string Namer::summarise(const WaitGroup &group, const WaitGroup *before,
                             bool isWhole) const {
  bool follows = before && llvm::equal(before->awaitedOf, group.warps);
  std::string awaited = group.awaited;
  // A name in quotes says what it is.
  constexpr llvm::StringLiteral kind = "the mbarrier '";
  if (size_t at = awaited.find(kind); at != std::string::npos)
    awaited.erase(at, kind.size() - 1);
  std::string text =
      follows ? ", which" : (before ? "; " : "") + nameShort(group.warps);
  text += llvm::formatv(
      " {0} for {1}",
      hasShortName(group.warps) || isOne(group.warps) ? "waits" : "wait",
      awaited);
  if (isWhole && !group.awaitedOf.empty())
    text += " from " + nameShort(group.awaitedOf);
  return text;
}

std::string Namer::describeLack(const WaitGroup &group) const {
  std::string text = group.lacks.empty() ? "" : ", which lacks " + group.lacks;
  if (!group.awaitedOf.empty())
    return text + " from " + name(group.awaitedOf);
  if (!group.exited.empty())
    return text + " from " + name(group.exited) + ", which exited";
  return text;
}

std::string Namer::summariseLack(const WaitGroup &group, bool hasRoom) const {
  std::string text;
  if (hasRoom && !group.lacks.empty())
    text = ", which lacks " + group.lacks;
  if (!group.exited.empty())
    text += " from " + nameShort(group.exited) + ", which exited";
  return text;
}

/// The groups of those that a group waits for.
static llvm::SmallVector<size_t, 4> getNext(ArrayRef<WaitGroup> groups,
                                            const WaitGroup &group) {
  llvm::SmallVector<size_t, 4> next;
  for (auto [index, other] : llvm::enumerate(groups))
    if (&other != &group && llvm::any_of(other.warps, [&](unsigned warp) {
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

WaitGroups mlir::attn::groupWaiters(ArrayRef<Waiter> waiters,
                                    const WaiterNames &names) {
  std::vector<WaitGroup> groups;
  for (const Waiter &waiter : waiters) {
    auto found = llvm::find_if(groups, [&](const WaitGroup &group) {
      return group.place == waiter.place && group.awaited == waiter.awaited &&
             group.lacks == waiter.lacks;
    });
    if (found == groups.end()) {
      groups.emplace_back();
      groups.back().place = waiter.place;
      groups.back().awaited = waiter.awaited;
      groups.back().lacks = waiter.lacks;
      found = std::prev(groups.end());
    }
    addDistinct(found->warps, {waiter.warp});
    addDistinct(found->awaitedOf, waiter.awaitedOf);
    addDistinct(found->exited, waiter.exited);
  }
  std::optional<size_t> again;
  std::vector<size_t> path = follow(groups, 0, again);
  // Those that only wait for a cycle are not of it.
  if (again)
    path.erase(path.begin(), path.begin() + *again);
  Namer namer(groups, names);
  WaitGroups result;
  if (!namer.getWhere().empty())
    result.summary = namer.getWhere() + ": ";
  bool saysLack = false;
  auto fits = [&](const std::string &text, size_t index) {
    size_t room = index + 1 < path.size() ? kMorePlaces : 0;
    return result.summary.size() + text.size() + room < kLongSummary;
  };
  for (auto [index, at] : llvm::enumerate(path)) {
    const WaitGroup &group = groups[at];
    const WaitGroup *before = index ? &groups[path[index - 1]] : nullptr;
    // The last one of a cycle waits for the first.
    bool closes = again && index + 1 == path.size() && index != 0 &&
                  llvm::equal(group.awaitedOf, groups[path.front()].warps);
    std::string text = namer.summarise(group, before, !closes);
    if (!fits(text, index))
      text = namer.summarise(group, before, /*isWhole=*/false);
    if (index && !fits(text, index)) {
      size_t left = path.size() - index;
      result.summary +=
          llvm::formatv("; {0} more place{1}", left, left == 1 ? "" : "s");
      break;
    }
    result.summary += text;
    // Where somebody brings it, how much it is matters less than who.
    if (!group.awaitedOf.empty())
      continue;
    std::string lack = namer.summariseLack(group, /*hasRoom=*/true);
    saysLack = fits(lack, index) && !names.role;
    if (!fits(lack, index))
      lack = namer.summariseLack(group, /*hasRoom=*/false);
    if (fits(lack, index))
      result.summary += lack;
  }
  for (size_t at : path)
    result.groups.push_back(groups[at]);
  result.groups.front().isSaid = path.size() == 1 && saysLack;
  for (auto [index, group] : llvm::enumerate(groups))
    if (!llvm::is_contained(path, index))
      result.groups.push_back(std::move(group));
  for (WaitGroup &group : result.groups)
    group.text = namer.begin(group, " here") + namer.describeLack(group);
  return result;
}
