//===- LoopWatch.cpp - Loops that cannot end ------------------------------===//

#include "LoopWatch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

using namespace mlir::attn::sim;

void LoopWatch::add(Cluster &cluster) {
  clusters.push_back(&cluster);
  executed.clear();
  isOpen = false;
}

void LoopWatch::remove(Cluster &cluster) {
  llvm::erase(clusters, &cluster);
  executed.clear();
  isOpen = false;
}

uint64_t LoopWatch::countEffects(Effect effect) const {
  uint64_t count = 0;
  for (const Cluster *cluster : clusters) {
    for (auto [inst, times] :
         llvm::zip_equal(machine.program.code, cluster->execCount))
      if (inst.effect == effect)
        count += times;
    if (effect == Effect::Other)
      count += cluster->writes;
  }
  return count;
}

/// What decides what a warp does next, but for memory and for its place.
static llvm::XXH128_hash_t hashState(const Warp &warp) {
  const Machine &m = *warp.cta->cluster->machine;
  auto hash = [](const uint32_t *words, size_t count) {
    return llvm::xxh3_128bits(
        llvm::ArrayRef(reinterpret_cast<const uint8_t *>(words), 4 * count));
  };
  llvm::XXH128_hash_t state = hash(warp.file.words, m.program.regWords);
  if (!warp.returnPC.empty()) {
    llvm::XXH128_hash_t calls =
        hash(warp.returnPC.data(), warp.returnPC.size());
    state.low64 ^= calls.low64 * 3;
    state.high64 ^= calls.high64 * 3;
  }
  return state;
}

bool LoopWatch::restart(bool isOnlyTry) {
  constexpr unsigned mostTries = 64;
  if (!isOnlyTry)
    tries = 0;
  else if (++tries > mostTries)
    return false;
  open();
  return true;
}

void LoopWatch::open() {
  if (executed.size() == clusters.size())
    lines = describeLines();
  isOpen = true;
  opened = turns;
  comparisons = 0;
  executed.clear();
  for (const Cluster *cluster : clusters) {
    executed.push_back(cluster->execCount);
    for (Warp *warp : cluster->warps) {
      WarpMark &mark = warp->mark;
      mark.splits = warp->splits;
      mark.turns = warp->quantumCount;
      mark.repeats = false;
      llvm::XXH128_hash_t state = hashState(*warp);
      mark.state = {state.low64, state.high64};
    }
  }
  others = countEffects(Effect::Other);
  meetings = countEffects(Effect::Meeting);
}

/// Whether the lanes are where they were, and each of their groups has had
/// turns since.
bool LoopWatch::isSame(const Warp &warp) const {
  const WarpMark &mark = warp.mark;
  size_t n = warp.splits.size();
  if (mark.splits.size() != n ||
      (n > 1 && (warp.quantumCount - mark.turns) % (4 * (n - 1)) != 0))
    return false;
  for (auto [now, then] : llvm::zip_equal(warp.splits, mark.splits))
    if (now.pc != then.pc || now.mask != then.mask ||
        now.resumed != then.resumed)
      return false;
  return true;
}

/// Waits for what only others can do.
static bool isWaiting(const Warp &warp) {
  return llvm::all_of(warp.splits, [&](const Split &s) {
    return s.block != BlockKind::None ||
           s.pollProgress == warp.cta->cluster->progress;
  });
}

bool LoopWatch::allRepeat() const {
  bool meets = countEffects(Effect::Meeting) != meetings;
  for (const Cluster *cluster : clusters)
    for (const Warp *warp : cluster->warps)
      if (!warp->mark.repeats && !warp->done() && (meets || !isWaiting(*warp)))
        return false;
  return true;
}

bool LoopWatch::repeats(Warp &warp) {
  // Of those that look at mbarriers in vain there is another report, when all
  // do that.
  bool polls = llvm::any_of(
      warp.splits, [](const Split &s) { return s.block == BlockKind::None; });
  if (polls && isWaiting(warp))
    return false;
  ++turns;
  if (turns >= nextOpening) {
    nextOpening = 2 * turns;
    tries = 0;
    open();
    return false;
  }
  if (!isOpen || !comesBack(warp))
    return false;
  if (countEffects(Effect::Other) != others) {
    isOpen = false;
    return false;
  }
  return allRepeat();
}

/// Whether the warp has come back to the state that was kept, if it is time to
/// look: the state of loops that do get on is hashed in few turns.
bool LoopWatch::comesBack(Warp &warp) {
  constexpr unsigned freeComparisons = 256, turnsPerComparison = 32;
  // Others may have come to where they wait since.
  if (warp.mark.repeats)
    return turns % turnsPerComparison == 0;
  if (!isSame(warp) ||
      comparisons > freeComparisons + (turns - opened) / turnsPerComparison)
    return false;
  ++comparisons;
  llvm::XXH128_hash_t state = hashState(warp);
  warp.mark.repeats =
      warp.mark.state == std::make_pair(state.low64, state.high64);
  return warp.mark.repeats;
}

std::string LoopWatch::describeLines() const {
  unsigned first = ~0u, last = 0;
  for (auto [cluster, before] : llvm::zip_equal(clusters, executed))
    for (size_t i = 0; i < before.size(); ++i)
      if (cluster->execCount[i] != before[i]) {
        first = std::min<unsigned>(first, machine.program.code[i].line);
        last = std::max<unsigned>(last, machine.program.code[i].line);
      }
  if (first >= last)
    return llvm::formatv("line {0}", last);
  return llvm::formatv("lines {0} to {1}", first, last);
}

void LoopWatch::report(Exec &x, const Warp &warp) const {
  unsigned looping = 0, waiting = 0;
  for (const Cluster *cluster : clusters)
    for (const Warp *each : cluster->warps)
      if (!each->done())
        ++(isWaiting(*each) ? waiting : looping);
  Finding f;
  f.kind = FindingKind::EndlessLoop;
  f.message =
      llvm::formatv("{0} warps repeat {1} without an end: their registers and "
                    "the memory that they read are what they were before",
                    looping, describeLines());
  if (waiting)
    f.message += llvm::formatv(", and {0} warps wait", waiting);
  uint32_t pc = warp.splits.empty() ? ~0u : warp.splits.front().pc;
  f.second = x.siteOf(pc, warp.cta, warp.id, -1);
  f.hint = "no other thread is left that could store what the loop waits for";
  x.report(std::move(f));
}
