//===- StateSummary.cpp - States that stand for others --------------------===//
//
// One that knows less stands for one that knows more, in the same places.
//
//===----------------------------------------------------------------------===//

#include "StateKey.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// Beside what is compared, in the same measure: to begin with, and to find an
/// access among others.
static constexpr int64_t kComparison = 4, kSearch = 2;

/// An event that only one of them has everybody knows in the other one.
bool StateSummary::joinOthers(const StateSummary &other) {
  bool changes = false;
  std::vector<OtherEvent> both;
  std::vector<uint64_t> bothKnowers;
  auto take = [&](const StateSummary &from, size_t index) {
    both.push_back(from.others[index]);
    llvm::append_range(bothKnowers, from.knowersOfOther(index));
  };
  size_t own = 0;
  for (size_t index = 0; index < other.others.size(); ++index) {
    auto key = other.others[index].getKey();
    while (own < others.size() && others[own].getKey() < key)
      take(*this, own++);
    if (own == others.size() || others[own].getKey() != key) {
      take(other, index);
      changes = true;
      continue;
    }
    take(*this, own++);
    ArrayRef<uint64_t> known = other.knowersOfOther(index);
    uint64_t *words = bothKnowers.data() + bothKnowers.size() - known.size();
    for (auto [word, more] : llvm::enumerate(known)) {
      changes |= (words[word] & ~more) != 0;
      words[word] &= more;
    }
  }
  while (own < others.size())
    take(*this, own++);
  others = std::move(both);
  otherKnowers = std::move(bothKnowers);
  return changes;
}

bool StateSummary::join(const StateSummary &other, Work &work) {
  work.add(accesses.size() + other.accesses.size() + others.size() +
           other.others.size());
  bool changes = false;
  for (auto [own, more] : llvm::zip(written, other.written)) {
    changes |= own.test(more);
    own &= more;
  }
  auto meet = [&](EventSet &knowers, const EventSet &more) {
    changes |= !knowers.isWithin(more);
    knowers.intersect(more);
  };
  changes |= joinOthers(other);
  std::vector<std::pair<AccessKey, Known>> both;
  both.reserve(accesses.size());
  auto own = accesses.begin();
  for (const auto &[key, known] : other.accesses) {
    while (own != accesses.end() && own->first < key)
      both.push_back(std::move(*own++));
    if (own == accesses.end() || own->first != key) {
      both.push_back({key, known});
      changes = true;
      continue;
    }
    meet(own->second.knowers, known.knowers);
    both.push_back(std::move(*own++));
  }
  std::move(own, accesses.end(), std::back_inserter(both));
  accesses = std::move(both);
  return changes;
}

bool StateSummary::standsFor(const StateSummary &other, Work &work) const {
  work.add(kComparison + kinds.size());
  if (!std::includes(kinds.begin(), kinds.end(), other.kinds.begin(),
                     other.kinds.end()))
    return false;
  for (auto [own, more] : llvm::zip(written, other.written))
    if (own.test(more))
      return false;
  size_t own = 0;
  for (size_t index = 0; index < other.others.size(); ++index, ++own) {
    work.add(1);
    auto key = other.others[index].getKey();
    while (own < others.size() && others[own].getKey() < key)
      ++own;
    if (own == others.size() || others[own].getKey() != key)
      return false;
    for (auto [word, more] :
         llvm::zip_equal(knowersOfOther(own), other.knowersOfOther(index)))
      if (word & ~more)
        return false;
  }
  bool stands =
      llvm::all_of(other.accesses,
                   [&](const auto &access) {
                     work.add(kSearch);
                     const Known *own = find(access.first);
                     return own && own->knowers.isWithin(access.second.knowers);
                   }) &&
      llvm::all_of(facts.get(),
                   [&](const Affine &fact) { return other.facts.imply(fact); });
  work.take(other.facts);
  return stands;
}

std::string StateSummary::getText() const {
  std::string text = places;
  for (const Affine &fact : facts.get())
    text += fact.getText() + ";";
  return text;
}
