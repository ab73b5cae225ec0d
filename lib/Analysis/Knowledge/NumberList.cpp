//===- NumberList.cpp - Numbers of many kinds at once ---------------------===//

#include "NumberList.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

IndexRanges barriers::getOthers(const IndexRanges &ranges, int64_t size) {
  IndexRanges others;
  int64_t end = 0;
  for (auto [first, last] : ranges) {
    if (first > end)
      others.push_back({end, first});
    end = last;
  }
  if (end < size)
    others.push_back({end, size});
  return others;
}

void NumberList::push_back(int64_t number) {
  ++count;
  if (!runs.empty()) {
    Run &last = runs.back();
    if (last.count == 1)
      last.distance = number - last.first;
    if (last.at(last.count) == number) {
      ++last.count;
      return;
    }
  }
  runs.push_back({number, 1, 0});
}

/// Lists of the same numbers have the same runs, however they came about: each
/// number that can be is in the run of the one before it.
void NumberList::append(const Run &run) {
  for (int64_t index = 0; index < run.count; ++index) {
    if (index > 0 && runs.back().count > 1 &&
        runs.back().distance == run.distance) {
      runs.back().count += run.count - index;
      count += run.count - index;
      return;
    }
    push_back(run.at(index));
  }
}

void NumberList::clear() {
  runs.clear();
  count = 0;
}

bool NumberList::areAllEqual() const {
  return runs.empty() ||
         (runs.size() == 1 && (runs[0].count == 1 || runs[0].distance == 0));
}

NumberList NumberList::select(const IndexRanges &ranges) const {
  NumberList selected;
  int64_t start = 0;
  const auto *run = runs.begin();
  for (auto [first, last] : ranges)
    while (first < last) {
      for (; start + run->count <= first; ++run)
        start += run->count;
      int64_t end = std::min(last, start + run->count);
      selected.append({run->at(first - start), end - first, run->distance});
      first = end;
    }
  return selected;
}

IndexRanges NumberList::find(int64_t number) const {
  IndexRanges found;
  auto add = [&](int64_t first, int64_t last) {
    if (!found.empty() && found.back().second == first)
      found.back().second = last;
    else
      found.push_back({first, last});
  };
  int64_t start = 0;
  for (const Run &run : runs) {
    if (run.count == 1 || run.distance == 0) {
      if (run.first == number)
        add(start, start + run.count);
    } else if (int64_t index = (number - run.first) / run.distance;
               index >= 0 && index < run.count && run.at(index) == number) {
      add(start + index, start + index + 1);
    }
    start += run.count;
  }
  return found;
}

NumberList NumberList::map(llvm::function_ref<int64_t(int64_t)> change) const {
  NumberList changed;
  for (const Run &run : runs)
    for (int64_t index = 0; index < run.count; ++index)
      changed.push_back(change(run.at(index)));
  return changed;
}

std::optional<int64_t>
NumberList::getDistanceTo(const NumberList &other) const {
  if (runs.size() != other.runs.size() || empty())
    return std::nullopt;
  int64_t distance = front() - other.front();
  for (auto [own, others] : llvm::zip(runs, other.runs))
    if (!(own == Run{others.first + distance, others.count, others.distance}))
      return std::nullopt;
  return distance;
}

NumberList NumberList::shift(int64_t by) const {
  NumberList shifted;
  for (const Run &run : runs)
    shifted.append({run.first + by, run.count, run.distance});
  return shifted;
}

int64_t NumberList::getLeast() const {
  int64_t least = front();
  for (const Run &run : runs)
    least = std::min({least, run.first, run.at(run.count - 1)});
  return least;
}

int64_t NumberList::getGreatest() const {
  int64_t greatest = front();
  for (const Run &run : runs)
    greatest = std::max({greatest, run.first, run.at(run.count - 1)});
  return greatest;
}

ListWalk::ListWalk(llvm::ArrayRef<const NumberList *> lists)
    : left(lists.empty() ? 0 : lists.front()->size()) {
  for (const NumberList *list : lists)
    cursors.push_back({list, 0, 0});
}

int64_t ListWalk::takeRuns(llvm::SmallVectorImpl<NumberList::Run> &parts) {
  parts.clear();
  int64_t taken = left;
  for (Cursor &cursor : cursors) {
    if (cursor.index == cursor.list->getRuns()[cursor.run].count) {
      ++cursor.run;
      cursor.index = 0;
    }
    const NumberList::Run &run = cursor.list->getRuns()[cursor.run];
    taken = std::min(taken, run.count - cursor.index);
  }
  for (Cursor &cursor : cursors) {
    const NumberList::Run &run = cursor.list->getRuns()[cursor.run];
    parts.push_back({run.at(cursor.index), taken, run.distance});
    cursor.index += taken;
  }
  left -= taken;
  return taken;
}
