//===- StateKeyUnknowns.cpp - States that differ in what a loop has left --===//
//
// A number that nobody can compute again may be any: it is written relative to
// the first value that it is in, so that a state says how the trips that are
// left in one loop differ from those in another, and not how many came before.
//
//===----------------------------------------------------------------------===//

#include "StateKey.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

namespace {

/// Other unknowns in place of those of a state: sums that come up in it.
class Names {
public:
  explicit Names(const llvm::DenseSet<uint32_t> &pinned) : pinned(pinned) {}
  /// Makes a sum, or a part of it, an unknown of its own, if one in it is not
  /// needed then.
  void add(const Affine &sum);
  /// A sum in terms of these, and the other way around.
  Affine rename(const Affine &sum) const { return replace(sum, given); }
  Affine restore(const Affine &sum) const { return replace(sum, meant); }

private:
  using Sums = llvm::DenseMap<uint32_t, Affine>;
  static Affine replace(const Affine &sum, const Sums &by);

  /// Numbers of unknowns are below these.
  static constexpr uint32_t kFirst = 1u << 24;
  const llvm::DenseSet<uint32_t> &pinned;
  /// What old unknowns are in terms of new ones, and new ones of old ones.
  Sums given, meant;
};

} // namespace

Affine Names::replace(const Affine &sum, const Sums &by) {
  Affine result(sum.constant);
  for (auto [number, factor] : sum.terms) {
    auto found = by.find(number);
    result = result.plus(
        found == by.end() ? Affine::unknown(number) : found->second, factor);
  }
  return result;
}

void Names::add(const Affine &sum) {
  // Of a multiple of a number it matters how many times that is.
  Affine renamed = rename(sum);
  renamed = renamed.dividedBy(renamed.getCommonFactor());
  for (auto [number, factor] : renamed.terms) {
    if (number >= kFirst || pinned.contains(number) || std::abs(factor) != 1)
      continue;
    // renamed = factor * number + rest, and is the new unknown.
    Affine fresh = Affine::unknown(kFirst + meant.size());
    Affine rest = renamed.plus(Affine::unknown(number), -factor);
    Sums one = {{number, fresh.plus(rest, -1).times(factor)}};
    for (auto &[old, value] : given)
      value = replace(value, one);
    given[number] = one.lookup(number);
    meant[kFirst + meant.size()] = restore(renamed);
    return;
  }
}

/// Forgets what was learned of numbers of the launch, such as how many blocks
/// there are for a tile: it would be another thing after each tile. What is
/// kept besides what holds in each launch is of tiles and of loops that are not
/// over. This is less than is known, so what is right from here on is right.
/// Integers that are not there would come back.
void StateKey::forgetLaunch(Work &work) {
  m.impossible |= !m.facts.haveIntegers();
  work.take(m.facts);
  llvm::DenseSet<uint32_t> &counted = open.counted.emplace();
  for (const Warp &warp : m.warps)
    for (Slot slot : m.program->counters) {
      bool isLive = warp.state != Warp::Done &&
                    m.program->getLive(warp.cta, warp.pc).test(slot);
      auto sum = warp.unknown.find(slot);
      if (isLive && sum != warp.unknown.end())
        for (auto [number, factor] : sum->second.terms)
          counted.insert(number);
    }
  Facts kept = m.unknowns->ofEachLaunch;
  for (const Affine &fact : m.facts.get())
    if (llvm::any_of(fact.terms, [&](const auto &term) {
          return counted.contains(term.first) ||
                 m.unknowns->isOfTile(term.first);
        }))
      kept.add(fact);
  m.facts = kept;
}

/// Returns facts without those that were learned of numbers of the launch
/// alone, which may come of what was known of a tile that is over by now; those
/// of `counted` stay. With them may go what holds in each launch, which is
/// added again.
static Facts dropLaunch(Facts facts, const Unknowns &unknowns,
                        const llvm::DenseSet<uint32_t> &counted,
                        const Names &names,
                        const llvm::DenseSet<uint32_t> &kept) {
  const Facts &always = unknowns.ofEachLaunch;
  auto isLearned = [&](const Affine &fact) {
    return llvm::all_of(fact.terms,
                        [&](const auto &term) {
                          return unknowns.isOfLaunch(term.first) &&
                                 !counted.contains(term.first);
                        }) &&
           !always.imply(fact);
  };
  Facts known;
  for (const Affine &fact : facts.get())
    if (!isLearned(names.restore(fact)))
      known.add(fact);
  if (known.get().size() == facts.get().size())
    return facts;
  for (const Affine &fact : always.get())
    known.add(names.rename(fact));
  known.keepOnly(kept);
  return known;
}

/// What nothing says is not known in the machine either from here on: another
/// state with this key may not have it.
void StateKey::addUnknowns() {
  bool asksForBlock = llvm::any_of(m.warps, [&](const Warp &warp) {
    return warp.state != Warp::Done &&
           m.program->getLive(warp.cta, warp.pc)
               .test(m.program->numSlots + 1 + m.program->rings.size());
  });
  llvm::DenseSet<uint32_t> live, pinned;
  auto use = [&](const Affine &sum, llvm::DenseSet<uint32_t> &set) {
    for (auto [number, factor] : sum.terms)
      set.insert(number);
  };
  for (const Affine &sum : open.sums)
    use(sum, live);
  if (asksForBlock)
    for (unsigned dim : {0, 1, 2})
      for (const Affine &sum : {m.getBlock(dim), m.getGrid(dim)}) {
        use(sum, live);
        use(sum, pinned);
      }
  // True if a step that is still to come may make an unknown of a kind.
  auto mayMake = [&](StringRef kind) {
    const Program &program = *m.program;
    size_t bit = program.getUnknownBit(llvm::find(program.unknownKinds, kind) -
                                       program.unknownKinds.begin());
    return llvm::any_of(m.warps, [&](const Warp &warp) {
      const llvm::BitVector &live = program.getLive(warp.cta, warp.pc);
      return warp.state != Warp::Done && bit < live.size() && live.test(bit);
    });
  };
  // A warp that is behind may still compute what others have asked about.
  auto mayComeAgain = [&](uint32_t number) {
    return m.unknowns->mayComeAgain(number, live) &&
           mayMake(m.unknowns->getKind(number));
  };
  SmallVector<uint32_t> again;
  for (const Affine &fact : m.facts.get())
    for (auto [number, factor] : fact.terms)
      if (mayComeAgain(number))
        again.push_back(number);
  live.insert(again.begin(), again.end());
  for (uint32_t number : live)
    if (mayComeAgain(number)) {
      pinned.insert(number);
      for (uint32_t source : m.unknowns->getSources(number))
        pinned.insert(source);
    }
  SmallVector<uint32_t> fixed(pinned.begin(), pinned.end());
  llvm::sort(fixed);
  for (uint32_t number : fixed)
    add(number);
  Names names(pinned);
  for (const Affine &sum : open.sums)
    names.add(sum);
  auto addSum = [&](const Affine &sum) {
    add(sum.terms.size());
    for (auto [name, factor] : sum.terms) {
      add(name);
      add(factor);
    }
    add(sum.constant);
  };
  llvm::DenseSet<uint32_t> kept = pinned;
  for (const Affine &sum : open.sums) {
    Affine renamed = names.rename(sum);
    use(renamed, kept);
    addSum(renamed);
  }
  for (const Affine &fact : m.facts.get())
    summary.facts.add(names.rename(fact));
  summary.facts.keepOnly(kept);
  if (open.counted)
    summary.facts = dropLaunch(std::move(summary.facts), *m.unknowns,
                               *open.counted, names, kept);
  m.facts = Facts();
  for (const Affine &fact : summary.facts.get())
    m.facts.add(names.restore(fact));
  if (m.question)
    addSum(names.rename(*m.question));
}
