//===- StateSummary.cpp - States that stand for others --------------------===//
//
// One that knows less stands for one that knows more, in the same places.
//
//===----------------------------------------------------------------------===//

#include "StateKey.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// To begin with a comparison, in the measure of what is compared.
static constexpr int64_t kComparison = 4;

void KindList::finish() {
  SmallVector<const NumberList *> lists = llvm::map_to_vector(
      columns, [](const NumberList &list) { return &list; });
  for (ListWalk walk(lists); !walk.isAtEnd();) {
    Run &run = runs.emplace_back();
    run.count = walk.takeRuns(run.values);
  }
  columns.clear();
}

/// How many kinds of `other`, in a row from one of them on, are in a row of
/// `own` too.
int64_t KindList::countAlike(const Run &own, const Run &other,
                             int64_t from) const {
  int64_t first = 0;
  bool isSame = true;
  for (auto [run, more] : llvm::zip_equal(own.values, other.values)) {
    isSame &= run.distance == more.distance;
    if (own.count > 1 && run.distance != 0)
      first = (more.at(from) - run.first) / run.distance;
  }
  if (first < 0 || first >= own.count)
    return 0;
  for (auto [run, more] : llvm::zip_equal(own.values, other.values))
    if (run.at(first) != more.at(from))
      return 0;
  return isSame ? std::min(own.count - first, other.count - from) : 1;
}

bool KindList::includes(const KindList &other, Work &work) const {
  for (const Run &run : other.runs)
    for (int64_t from = 0; from < run.count;) {
      int64_t alike = 0;
      for (const Run &own : runs) {
        alike = std::max(alike, countAlike(own, run, from));
        work.add(1);
      }
      if (alike == 0)
        return false;
      from += alike;
    }
  return true;
}

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
  work.add(kComparison + kinds.countRuns());
  if (!kinds.includes(other.kinds, work))
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
  auto place = accesses.begin();
  for (const auto &[key, known] : other.accesses) {
    for (; place != accesses.end() && place->first < key; ++place)
      work.add(1);
    work.add(1);
    if (place == accesses.end() || place->first != key ||
        !place->second.knowers.isWithin(known.knowers))
      return false;
  }
  bool follows = llvm::all_of(
      facts.get(), [&](const Affine &fact) { return other.facts.imply(fact); });
  work.take(other.facts);
  return follows;
}

std::string StateSummary::getText() const {
  std::string text = places;
  for (const Affine &fact : facts.get())
    text += fact.getText() + ";";
  return text;
}

void StateKey::setKnowers(uint32_t event, const EventSet &knowers) {
  for (auto [index, set] : llvm::enumerate(sets))
    if (knowers.test(index))
      set->set(event);
    else
      set->reset(event);
}

/// The state of the machine may be any that the summary stands for.
void StateKey::weaken(const StateSummary &joined) {
  weakenOthers(joined);
  for (auto [tensor, written] : llvm::zip(m.tensors, joined.written))
    tensor.written = written;
  for (const auto &[key, known] : joined.accesses) {
    if (const StateSummary::Known *own = summary.find(key)) {
      if (!own->knowers.isWithin(known.knowers))
        setKnowers(own->access.event, known.knowers);
      continue;
    }
    Access access = known.access;
    const AccessInfo &info = m.program->accesses[access.info];
    // Where it lies with the rings as they stand here.
    if (info.ring != kNoRing) {
      int64_t start = info.footprint.getStart();
      int64_t bytes = info.footprint.slotBytes;
      m.moveTo(access,
               start + turnSlotOn(info.ring, (key[1] - start) / bytes) * bytes);
    }
    access.instance = instanceBase(access.step, access.warp) + key[7];
    access.event = m.newEvent();
    setKnowers(access.event, known.knowers);
    m.accesses.push_back(access);
    if (int64_t group = key.back()) {
      Warp &warp = m.warps[(group >> 16) / kGroupEngines];
      unsigned engine = (group >> 16) % kGroupEngines;
      int64_t place = group & 0xffff;
      if (place == 1)
        warp.open[engine].push_back(access.event);
      else
        warp.groups[engine][warp.groups[engine].size() - (place - 2)].push_back(
            access.event);
    }
  }
}
