//===- Unknowns.h - Numbers that only the launch gives ----------*- C++ -*-===//
//
// Sums of unknown integers, what is known of them, and which of them are the
// same: what is computed in the same way from the same unknowns is one unknown.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_KNOWLEDGE_UNKNOWNS_H
#define ATTN_LIB_ANALYSIS_KNOWLEDGE_UNKNOWNS_H

#include "../Flow/RegionArithmetic.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlir::attn::barriers {

/// A sum of unknowns with factors, and of a constant.
struct Affine {
  int64_t constant = 0;
  /// Unknowns in ascending order, none with the factor zero.
  llvm::SmallVector<std::pair<uint32_t, int64_t>, 2> terms;

  Affine() = default;
  explicit Affine(int64_t constant) : constant(constant) {}
  static Affine unknown(uint32_t number) {
    Affine result;
    result.terms.push_back({number, 1});
    return result;
  }
  bool isConstant() const { return terms.empty(); }
  /// This, and `other` so many times.
  Affine plus(const Affine &other, int64_t times = 1) const;
  Affine times(int64_t factor) const { return Affine().plus(*this, factor); }
  /// The largest number that all factors are multiples of; 1 without unknowns.
  int64_t getCommonFactor() const;
  /// The quotient by such a number, rounded down.
  Affine dividedBy(int64_t divisor) const;
  /// True if no factor is beyond what sums of a few of them can hold.
  bool isSmall() const;
  std::string getText() const;
  bool operator==(const Affine &other) const {
    return terms == other.terms && constant == other.constant;
  }
  bool operator!=(const Affine &other) const { return !(*this == other); }
  bool operator<(const Affine &other) const {
    return std::tie(terms, constant) < std::tie(other.terms, other.constant);
  }
};

/// Sums that are not negative.
class Facts {
public:
  void add(const Affine &sum);
  /// True if it follows that the sum is not negative.
  bool imply(const Affine &sum) const;
  /// Returns true if the sum is 0 or more, false if it is negative, nothing if
  /// neither follows.
  std::optional<bool> decide(const Affine &sum) const;
  /// Forgets what speaks of some unknowns.
  void forget(llvm::function_ref<bool(uint32_t)> isForgotten);
  /// Keeps what follows of these unknowns alone.
  void keepOnly(const llvm::DenseSet<uint32_t> &live);
  /// True if no numbers are like that.
  bool areImpossible() const;
  /// Returns true if integers are, or if a search for them would take too long.
  bool haveIntegers() const;
  /// Numbers for which all hold, the least ones if there are such.
  std::optional<std::vector<std::pair<uint32_t, int64_t>>> findNumbers() const;
  /// Returns the only integer that the sum can be, nothing if it can be several
  /// or none.
  std::optional<int64_t> findOnly(const Affine &sum) const;
  llvm::ArrayRef<Affine> get() const { return facts; }
  /// Returns how much was computed to answer since this was asked last.
  int64_t takeWork() const { return std::exchange(work, 0); }

private:
  std::vector<Affine> facts;
  /// What was asked since they changed: warps that do the same ask the same.
  mutable std::vector<std::pair<Affine, bool>> answers;
  mutable int64_t work = 0;
};

/// What unknowns are, for all states of a check.
class Unknowns {
public:
  /// The one that is computed as `text` says, from these.
  /// One that is given is there from the start on, and nothing computes it.
  uint32_t get(const std::string &text, llvm::ArrayRef<Affine> from,
               bool isGiven = false);
  const std::string &getText(uint32_t number) const { return texts[number]; }
  /// What it is, but for what it is computed from. All quotients are of one
  /// kind.
  llvm::StringRef getKind(uint32_t number) const {
    llvm::StringRef text = texts[number];
    return text.starts_with(kQuotient) ? llvm::StringRef(kQuotient) : text;
  }
  static constexpr llvm::StringLiteral kQuotient = "by ";
  static constexpr llvm::StringLiteral kTrips = "trips of";
  /// Those whose names are given again, with a number behind: tiles, what loops
  /// have left, and what they have in all.
  static constexpr llvm::StringLiteral kTile = "tile", kLeft = "trips",
                                       kTotal = "total";
  /// The one that is a number of trips, a sum of one unknown.
  uint32_t getTrips(const Affine &sum);
  /// What such a one is; null for others.
  const Affine *findTrips(uint32_t number) const {
    auto found = trips.find(number);
    return found == trips.end() ? nullptr : &found->second;
  }
  /// A dividend and its divisor.
  struct Quotient {
    Affine of, by;
  };
  /// Returns the unknown that stands for a quotient whose divisor is unknown.
  uint32_t getQuotient(const std::string &text, const Affine &of,
                       const Affine &by);
  /// Returns the dividend and divisor if a sum is such an unknown, null
  /// for other sums.
  const Quotient *findQuotient(const Affine &sum) const;
  /// True for a number of the launch or a word of memory.
  bool isRoot(uint32_t number) const {
    return isGiven[number] || texts[number].rfind("word", 0) == 0;
  }
  /// True if it is the number of a tile, or is computed from one.
  bool isOfTile(uint32_t number) const {
    return isOf(number,
                [](llvm::StringRef text) { return text.starts_with(kTile); });
  }
  /// True if it is computed from arguments and places of the launch alone, of
  /// which no name is given again.
  bool isOfLaunch(uint32_t number) const {
    return !isOf(number, [](llvm::StringRef text) {
      return text.starts_with(kTile) || text.starts_with(kLeft) ||
             text.starts_with(kTotal);
    });
  }
  /// Says how it is computed of the numbers that these sums are.
  void define(uint32_t number, Arithmetic compute,
              llvm::ArrayRef<Affine> args) {
    definitions.try_emplace(number, std::move(compute),
                            llvm::SmallVector<Affine, 3>(args));
  }
  /// Whether numbers are what those are that they are computed from.
  bool areComputed(llvm::ArrayRef<std::pair<uint32_t, int64_t>> numbers) const;
  /// True if it may be computed once more from the unknowns in `live`.
  bool mayComeAgain(uint32_t number,
                    const llvm::DenseSet<uint32_t> &live) const;
  const llvm::SmallVector<uint32_t, 2> &getSources(uint32_t number) const {
    return sources[number];
  }
  /// True if it is `other`, or is computed from it.
  bool dependsOn(uint32_t number, uint32_t other) const;
  size_t size() const { return sources.size(); }
  /// What holds in each launch, whichever way a run has gone, of numbers that
  /// are computed from arguments and places of the launch alone.
  Facts ofEachLaunch;

private:
  /// True if it is given by such a name, or is computed from one that is.
  bool isOf(uint32_t number,
            llvm::function_ref<bool(llvm::StringRef)> isNamed) const {
    return isGiven[number] ? isNamed(texts[number])
                           : llvm::any_of(sources[number], [&](uint32_t from) {
                               return isOf(from, isNamed);
                             });
  }

  std::map<std::string, uint32_t> numbers;
  std::vector<llvm::SmallVector<uint32_t, 2>> sources;
  std::vector<bool> isGiven;
  std::vector<std::string> texts;
  std::map<uint32_t, Affine> trips;
  std::map<uint32_t, Quotient> quotients;
  std::map<uint32_t, std::pair<Arithmetic, llvm::SmallVector<Affine, 3>>>
      definitions;
};

/// What a check does besides steps of warps, so that it ends at its limit
/// whatever takes the most: comparisons of states, lists that are gone through,
/// inequalities that are solved. It is counted in what such a loop does once,
/// and not by a clock, so that each run of a check ends at the same place.
class Work {
public:
  void add(int64_t count) { done += count; }
  void take(const Facts &facts) { done += facts.takeWork(); }
  /// Returns as how many steps it counts, and leaves the rest for later.
  int64_t takeSteps() {
    int64_t steps = done / kOfStep;
    done %= kOfStep;
    return steps;
  }

private:
  /// So much takes about as long as a step.
  static constexpr int64_t kOfStep = 128;
  int64_t done = 0;
};

} // namespace mlir::attn::barriers

#endif // ATTN_LIB_ANALYSIS_KNOWLEDGE_UNKNOWNS_H
