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

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// When more trips than this are behind a warp, what is left is forgotten. As a
/// rule all have come to the loop by then; one that has not computes a number
/// of trips that nothing is known of.
static constexpr int64_t kTripsBehind = 6;

static uint32_t getNamed(Unknowns &unknowns, StringRef kind, int64_t name) {
  return unknowns.get(llvm::formatv("{0} {1}", kind, name).str(), {},
                      /*isGiven=*/true);
}

Affine Machine::getOpenTile(size_t index) {
  return Affine::unknown(getNamed(*unknowns, "tile", tiles[index]));
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
      if (warp.state != Warp::Done && program->live[warp.pc].test(slot) &&
          depends(sum))
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
    learn(getArgument(argument));
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
        program->live[warp.pc].test(program->numSlots))
      last = std::min(last, warp.tiles);
  tiles.push_back(getFreeName("tile", ArrayRef(tiles).drop_front(last)));
  if (program->areTilesCounts)
    learn(getOpenTile(tiles.size() - 1));
}

/// Writes a sum in place of an unknown wherever it is.
void Machine::replace(uint32_t number, const Affine &by) {
  auto write = [&](Affine &sum) {
    for (auto [other, factor] : Affine(sum).terms)
      if (other == number)
        sum = sum.plus(Affine::unknown(number), -factor).plus(by, factor);
  };
  for (Warp &warp : warps)
    for (auto &[slot, sum] : warp.unknown)
      write(sum);
  for (auto &[place, word] : words)
    if (word.sum)
      write(*word.sum);
  if (question)
    write(*question);
  Facts written;
  for (Affine fact : facts.get()) {
    write(fact);
    written.add(fact);
  }
  facts = written;
}

/// How many trips a loop has left follows from how many it has and how many are
/// over, which is another number after each trip, where it can be computed anew
/// how many it has: for the next tile. Beyond some trips it is forgotten, and
/// what is left is any number. This is less than is known, so what is right
/// from here on is right.
void Machine::forgetTrips() {
  std::map<uint32_t, int64_t> least;
  for (const Warp &warp : warps)
    for (auto &[slot, sum] : warp.unknown)
      if (warp.state != Warp::Done && program->live[warp.pc].test(slot) &&
          sum.terms.size() == 1 && sum.terms[0].second == 1 &&
          !unknowns->getSources(sum.terms[0].first).empty()) {
        int64_t &constant = least[sum.terms[0].first];
        constant = std::min(constant, sum.constant);
      }
  // Loops of one tile have to do with each other.
  if (llvm::none_of(least, [](const auto &trips) {
        return trips.second < -kTripsBehind;
      }))
    return;
  llvm::DenseSet<uint32_t> fresh;
  for (auto [number, constant] : least) {
    uint32_t left = getNamed(*unknowns, "trips", getFreeName("trips"));
    fresh.insert(left);
    replace(number, Affine::unknown(left).plus(Affine(-constant)));
  }
  Facts ofThese = facts;
  ofThese.keepOnly(fresh);
  forget([&](uint32_t number) { return fresh.contains(number); });
  for (const Affine &fact : ofThese.get())
    facts.add(fact);
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

/// Whether anything takes what a step computes.
bool Machine::isUsed(const Warp &warp, const Step &step) const {
  return step.dst == kNoSlot || step.code != Code::Compute ||
         program->live[warp.pc + 1].test(step.dst);
}
