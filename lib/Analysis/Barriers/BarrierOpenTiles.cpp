//===- BarrierOpenTiles.cpp - Tiles that only the launch gives ------------===//
//
// Where trip counts of tiles, or how many tiles there are, follow from what
// only the launch gives, the number of each tile is an unknown. All partitions
// and CTAs of a cluster walk the same ones, since they compute them in the same
// way from what is the same for all of their threads (BarrierLaunch.cpp).
//
//===----------------------------------------------------------------------===//

#include "BarrierMachine.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// When more trips than this are behind a warp, what is left is forgotten. As a
/// rule all have come to the loop by then; one that has not computes a number
/// of trips that nothing is known of.
static constexpr int64_t kTripsBehind = 6;

/// Returns the same for a kernel. In a pair the loader fills its ring before
/// the warps of the other CTA have come that far.
static int64_t countTripsBehind(const Program &program) {
  int64_t most = kTripsBehind;
  if (llvm::any_of(program.steps, [](const Step &s) { return s.isOfPair; }))
    for (const BarrierArray &array : program.arrays)
      most = std::max<int64_t>(most, array.count + 1);
  return most;
}

static uint32_t getNamed(Unknowns &unknowns, StringRef kind, int64_t name) {
  return unknowns.get(llvm::formatv("{0} {1}", kind, name).str(), {},
                      /*isGiven=*/true);
}

Affine Machine::getOpenTile(size_t index) {
  return Affine::unknown(getNamed(*unknowns, Unknowns::kTile, tiles[index]));
}

/// Whether anything that may still be taken depends on an unknown.
bool Machine::isTaken(uint32_t number) const {
  auto depends = [&](const Affine &sum) {
    return llvm::any_of(sum.terms, [&](const auto &term) {
      return unknowns->dependsOn(term.first, number);
    });
  };
  for (const Warp &warp : warps)
    for (auto &[slot, sum] : warp.unknown)
      if (warp.state != Warp::Done &&
          program->getLive(warp.cta, warp.pc).test(slot) && depends(sum))
        return true;
  return llvm::any_of(words, [&](const auto &word) {
    return word.second.isKnown && word.second.sum && depends(*word.second.sum);
  });
}

/// Forgets what is known of some unknowns. What follows from that of arguments
/// would be another thing after each tile; that they are not negative stays.
void Machine::forget(llvm::function_ref<bool(uint32_t)> isForgotten) {
  facts.forget(isForgotten);
  for (auto [slot, argument] : program->arguments)
    learn(getArgument(argument), /*isAlways=*/true);
}

/// The first name that nothing has any more, so that states meet again. What
/// was known of it is forgotten.
uint32_t Machine::getFreeName(StringRef kind, ArrayRef<int64_t> taken) {
  for (int64_t name = 0;; ++name) {
    uint32_t number = getNamed(*unknowns, kind, name);
    if (llvm::is_contained(taken, name) || isTaken(number))
      continue;
    forget([&](uint32_t other) { return unknowns->dependsOn(other, number); });
    return name;
  }
}

/// A tile that a warp has not come to has its name in no value yet.
void Machine::addOpenTile() {
  uint32_t last = program->dealsTiles ? std::min<size_t>(dealt, tiles.size())
                                      : tiles.size();
  for (const Warp &warp : warps)
    if (warp.state != Warp::Done &&
        program->getLive(warp.cta, warp.pc).test(program->numSlots))
      last = std::min(last, warp.tiles);
  tiles.push_back(
      getFreeName(Unknowns::kTile, ArrayRef(tiles).drop_front(last)));
  Affine tile = getOpenTile(tiles.size() - 1);
  if (program->areTilesCounts)
    learn(tile);
  if (auto range = program->tileRange) {
    learn(tile.plus(Affine(-range->first)));
    learn(Affine(range->second).plus(tile, -1));
  }
}

/// Writes a sum in place of so many times an unknown wherever that is. Where it
/// is of the launch, what a tile has not computed stays what it is.
void Machine::replace(uint32_t number, int64_t times, const Affine &by) {
  auto write = [&](Affine &sum) {
    for (auto [other, factor] : Affine(sum).terms)
      if (other == number && factor % times == 0)
        sum =
            sum.plus(Affine::unknown(number), -factor).plus(by, factor / times);
  };
  bool isOfLaunch = unknowns->isOfLaunch(number);
  for (Warp &warp : warps)
    for (auto &[slot, sum] : warp.unknown)
      if (!isOfLaunch || !program->acrossTiles.test(slot))
        write(sum);
  for (auto &[place, word] : words)
    if (word.sum)
      write(*word.sum);
  if (question)
    write(*question);
  Facts written;
  for (Affine fact : facts.get()) {
    const auto *term = llvm::find_if(
        fact.terms, [&](const auto &term) { return term.first == number; });
    // A bound of the number itself is one of so many of it as well.
    if (term != fact.terms.end() && term->second % times != 0) {
      written.add(fact);
      // An inequality keeps its direction where trips count down, too.
      fact = fact.times(std::abs(times) / std::gcd(times, term->second));
    }
    write(fact);
    written.add(fact);
  }
  if (isOfLaunch)
    for (const Affine &fact : unknowns->ofEachLaunch.get())
      written.add(fact);
  facts = written;
}

/// Writes the name of trips that are a difference of several unknowns where a
/// multiple of it is, such as the blocks before one of the loop's.
static void writeNamed(const Unknowns &unknowns, uint32_t number, Affine &sum) {
  const Affine *named = unknowns.findTrips(number);
  if (!named || named->terms.size() < 2 ||
      sum.terms.size() != named->terms.size())
    return;
  int64_t times = sum.terms.front().second / named->terms.front().second;
  Affine rest = sum.plus(*named, -times);
  if (rest.isConstant())
    sum = rest.plus(Affine::unknown(number), times);
}

/// Numbers that no trip has been taken from, but for the last of them, are what
/// loops have in all.
static bool isTotal(int64_t behind) { return behind <= 1; }

/// True if a fact says no less once loops have gone on, each by a trip: what
/// they have in all stays as it is.
static bool staysTrue(const Affine &fact,
                      const std::map<uint32_t, int64_t> &behind) {
  bool hasTotal = false;
  int64_t change = 0;
  for (auto [number, factor] : fact.terms)
    if (isTotal(behind.at(number)))
      hasTotal = true;
    else
      change -= factor;
  return !hasTotal || change >= 0;
}

/// A sum in which unknowns are written as totals where these are nearer:
/// `total` of `left` is that and so many trips that are over.
static Affine writeTotals(Affine sum, const std::map<uint32_t, int64_t> &behind,
                          const std::map<uint32_t, uint32_t> &totals) {
  for (auto [number, factor] : Affine(sum).terms) {
    auto total = totals.find(number);
    if (total == totals.end())
      continue;
    int64_t over = factor * behind.at(number);
    if (std::abs(sum.constant - over) >= std::abs(sum.constant))
      continue;
    sum = sum.plus(Affine::unknown(number), -factor)
              .plus(Affine::unknown(total->second), factor)
              .plus(Affine(-over));
  }
  return sum;
}

/// Where a loop still has at hand how many trips it has in all, the distance to
/// what is left of them would grow with each trip: what is kept of it is that
/// it is no less than it was.
void Machine::forgetTotals(const std::map<uint32_t, int64_t> &behind,
                           const Facts &known) {
  std::map<uint32_t, uint32_t> totals;
  SmallVector<int64_t> names;
  for (auto [number, over] : behind) {
    if (isTotal(over))
      continue;
    names.push_back(getFreeName(Unknowns::kTotal, names));
    totals[number] = getNamed(*unknowns, Unknowns::kTotal, names.back());
  }
  llvm::DenseSet<uint32_t> used;
  for (Warp &warp : warps)
    for (auto &[slot, sum] : warp.unknown) {
      sum = writeTotals(sum, behind, totals);
      for (auto [number, factor] : sum.terms)
        used.insert(number);
    }
  for (auto [number, total] : totals) {
    if (!used.contains(total))
      continue;
    facts.add(Affine::unknown(total)
                  .plus(Affine::unknown(number), -1)
                  .plus(Affine(-behind.at(number))));
  }
  // Totals stand to each other as what was left of them did.
  for (Affine fact : known.get()) {
    bool isOfTotals = true;
    for (auto [number, factor] : Affine(fact).terms) {
      if (isTotal(behind.at(number)))
        continue;
      isOfTotals &= used.contains(totals.at(number));
      fact = fact.plus(Affine::unknown(number), -factor)
                 .plus(Affine::unknown(totals.at(number)), factor)
                 .plus(Affine(-factor * behind.at(number)));
    }
    if (isOfTotals)
      facts.add(fact);
  }
}

/// Trips that follow from the number of a tile by a factor, or are a difference
/// of two numbers of blocks, have a name of their own, as those have that are
/// computed in other ways: what is left of them is forgotten as a whole.
Affine Machine::nameTrips(const Affine &sum) {
  if (!program->hasOpenTiles() || sum.isConstant())
    return sum;
  auto [number, factor] = sum.terms.front();
  bool isOfTile =
      StringRef(unknowns->getText(number)).starts_with(Unknowns::kTile);
  bool isOfOne = sum.terms.size() == 1;
  if (isOfOne && !isOfTile &&
      (factor == 1 || unknowns->getSources(number).empty()))
    return sum;
  Affine trips = Affine::unknown(unknowns->getTrips(sum));
  learn(trips.plus(sum, -1));
  learn(sum.plus(trips, -1));
  return trips;
}

/// How many trips a loop has left follows from how many it has and how many are
/// over, which is another number after each trip, where it can be computed anew
/// how many it has: for the next tile. Beyond some trips it is forgotten, and
/// what is left is any number. This is less than is known, so what is right
/// from here on is right.
void Machine::forgetTrips() {
  std::map<uint32_t, int64_t> least;
  llvm::DenseSet<uint32_t> counted;
  auto findLeast = [&](const Warp &warp, Slot slot, const Affine &sum) {
    if (warp.state == Warp::Done ||
        !program->getLive(warp.cta, warp.pc).test(slot) ||
        sum.terms.size() != 1 || sum.terms[0].second != 1 ||
        unknowns->getSources(sum.terms[0].first).empty())
      return;
    int64_t &constant = least[sum.terms[0].first];
    if (llvm::is_contained(program->counters, slot)) {
      constant = std::min(constant, sum.constant);
      counted.insert(sum.terms[0].first);
    }
  };
  for (const Warp &warp : warps)
    for (auto &[slot, sum] : warp.unknown)
      findLeast(warp, slot, sum);
  // Other numbers of the launch stay what they are in each tile.
  for (auto it = least.begin(); it != least.end();)
    it = !counted.contains(it->first) && unknowns->isOfLaunch(it->first)
             ? least.erase(it)
             : std::next(it);
  // Loops of one tile have to do with each other.
  int64_t mostBehind = 0;
  for (auto [number, constant] : least)
    mostBehind = std::max(mostBehind, -constant);
  if (mostBehind <= kTripsBehind || mostBehind <= countTripsBehind(*program))
    return;
  std::map<uint32_t, int64_t> behind;
  llvm::DenseSet<uint32_t> fresh, ofLeft, ofTotals;
  for (auto [number, constant] : least) {
    for (Warp &warp : warps)
      for (auto &[slot, sum] : warp.unknown)
        writeNamed(*unknowns, number, sum);
    for (auto &[place, word] : words)
      if (word.sum)
        writeNamed(*unknowns, number, *word.sum);
  }
  for (auto [number, constant] : least) {
    // That a difference is what it was named as is known as an inequality.
    const Affine *sum = unknowns->findTrips(number);
    if (sum && sum->terms.size() == 1)
      replace(sum->terms.front().first, sum->terms.front().second,
              Affine::unknown(number).plus(Affine(-sum->constant)));
    uint32_t left =
        getNamed(*unknowns, Unknowns::kLeft, getFreeName(Unknowns::kLeft));
    fresh.insert(left);
    replace(number, 1, Affine::unknown(left).plus(Affine(-constant)));
    behind[left] = -constant;
    (isTotal(-constant) ? ofTotals : ofLeft).insert(left);
  }
  Facts ofThese = facts;
  ofThese.keepOnly(fresh);
  forget([&](uint32_t number) { return fresh.contains(number); });
  for (const Affine &fact : ofThese.get())
    if (staysTrue(fact, behind))
      facts.add(fact);
  // What the others say of each by itself.
  for (const llvm::DenseSet<uint32_t> &some : {ofLeft, ofTotals}) {
    Facts ofSome = ofThese;
    ofSome.keepOnly(some);
    for (const Affine &fact : ofSome.get())
      facts.add(fact);
  }
  forgetTotals(behind, ofThese);
}

/// Whether a number is that of a tile, or says that there are no more. What is
/// computed of one may be either.
bool Machine::isTile(const Warp &warp, Slot slot) {
  std::optional<Affine> sum = getOpen(warp, slot);
  if (sum && sum->isConstant() && sum->constant == kNoTile)
    return false;
  for (size_t index = 0; sum && index < tiles.size(); ++index)
    if (getOpenTile(index) == *sum)
      return true;
  fail(warp.pc, kUnlikeTiles.str());
  return false;
}

/// Takes the next tile, if it is known whether there is one.
bool Machine::takeTile(Warp &warp, const Step &step) {
  auto request = dyn_cast_if_present<ChannelUserOpInterface>(step.op);
  if (warp.heardOfNone && request && request.takesTile()) {
    report(BarrierFault::Request, here(warp),
           nameOf(warp) + " asks for another cluster, though it has read that "
                          "there is none");
    return false;
  }
  uint32_t index = step.value == kFirstTile  ? 0
                   : step.value == kNextTile ? warp.tiles
                                             : dealt;
  if (index >= tiles.size()) {
    if (!areTilesOver) {
      warp.state = Warp::AtTile;
      return false;
    }
    warp.state = Warp::Ready;
    if (step.flag) {
      set(warp, step.dst, kNoTile);
      ++warp.pc;
      dealt += step.value == kDealtTile;
    } else {
      warp.pc = step.target;
    }
    return true;
  }
  warp.state = Warp::Ready;
  if (program->hasOpenTiles() && step.dst != kNoSlot)
    setOpen(warp, step.dst, getOpenTile(index));
  else
    set(warp, step.dst, tiles[index]);
  if (!choices.empty() && index == openTile)
    warp.varied[step.dst] = choices;
  ++warp.pc;
  if (step.value == kNextTile)
    ++warp.tiles;
  dealt += step.value == kDealtTile;
  return true;
}
