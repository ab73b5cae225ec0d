//===- StateSummary.cpp - States that stand for others --------------------===//
//
// One that knows less stands for one that knows more, in the same places.
//
//===----------------------------------------------------------------------===//

#include "StateKey.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

bool StateSummary::join(const StateSummary &other) {
  bool changes = false;
  auto meet = [&](EventSet &knowers, const EventSet &more) {
    changes |= !knowers.isWithin(more);
    knowers.intersect(more);
  };
  for (auto [word, more] : llvm::zip_equal(others, other.others)) {
    changes |= (word & ~more) != 0;
    word &= more;
  }
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

bool StateSummary::standsFor(const StateSummary &other) const {
  if (!std::includes(kinds.begin(), kinds.end(), other.kinds.begin(),
                     other.kinds.end()))
    return false;
  for (auto [own, more] : llvm::zip_equal(others, other.others))
    if (own & ~more)
      return false;
  return llvm::all_of(other.accesses, [&](const auto &access) {
    const Known *own = find(access.first);
    return own && own->knowers.isWithin(access.second.knowers);
  });
}

std::string StateSummary::getText() const {
  std::string text = places;
  auto addWords = [&](ArrayRef<uint64_t> words) {
    text.append(reinterpret_cast<const char *>(words.data()),
                words.size() * sizeof(uint64_t));
  };
  for (const auto &[key, known] : accesses) {
    text.append(reinterpret_cast<const char *>(key.data()), sizeof(key));
    addWords(known.knowers.getWords());
  }
  addWords(others);
  return text;
}
