//===- NumberList.h - Numbers of many kinds at once -------------*- C++ -*-===//
//
// A tile may be of one of thousands of kinds, which differ in how often a loop
// goes around. What they make of a value are numbers at equal distances as a
// rule, and are kept as such: a million of them as two of them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_KNOWLEDGE_NUMBERLIST_H
#define ATTN_LIB_ANALYSIS_KNOWLEDGE_NUMBERLIST_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <optional>

namespace mlir::attn::barriers {

/// Places in a list: from the first number up to the second one, in order.
using IndexRanges = llvm::SmallVector<std::pair<int64_t, int64_t>, 2>;

/// Returns the places below `size` that are not among `ranges`.
IndexRanges getOthers(const IndexRanges &ranges, int64_t size);

class NumberList {
public:
  /// Numbers at equal distances.
  struct Run {
    int64_t first = 0, count = 0, distance = 0;
    int64_t at(int64_t index) const { return first + index * distance; }
    bool operator==(const Run &other) const {
      return first == other.first && count == other.count &&
             (distance == other.distance || count == 1);
    }
  };

  void push_back(int64_t number);
  void append(const Run &run);
  void clear();
  int64_t size() const { return count; }
  bool empty() const { return count == 0; }
  int64_t front() const { return runs.front().first; }
  llvm::ArrayRef<Run> getRuns() const { return runs; }
  bool areAllEqual() const;
  /// Returns the list without what is not in the ranges.
  NumberList select(const IndexRanges &ranges) const;
  /// Returns where the number stands.
  IndexRanges find(int64_t number) const;
  /// Returns what `change` makes of each number.
  NumberList map(llvm::function_ref<int64_t(int64_t)> change) const;
  /// Returns by how much all numbers are more than those of `other`, if that is
  /// the same for all.
  std::optional<int64_t> getDistanceTo(const NumberList &other) const;
  /// Returns the numbers with `by` added to each.
  NumberList shift(int64_t by) const;
  int64_t getLeast() const;
  int64_t getGreatest() const;

private:
  llvm::SmallVector<Run, 1> runs;
  int64_t count = 0;
};

/// Goes through several lists of the same length at once, as long as none of
/// them comes to another run.
class ListWalk {
public:
  explicit ListWalk(llvm::ArrayRef<const NumberList *> lists);
  bool isAtEnd() const { return left == 0; }
  /// Goes on behind what `takeRuns` has given; returns how many numbers follow
  /// that are in one run of each list, and puts these runs into `parts`.
  int64_t takeRuns(llvm::SmallVectorImpl<NumberList::Run> &parts);

private:
  struct Cursor {
    const NumberList *list;
    size_t run;
    int64_t index;
  };
  llvm::SmallVector<Cursor> cursors;
  int64_t left;
};

} // namespace mlir::attn::barriers

#endif // ATTN_LIB_ANALYSIS_KNOWLEDGE_NUMBERLIST_H
