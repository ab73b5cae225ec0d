//===- UnevenTime.cpp - Plans of batches of mixed lengths -----------------===//
//
// CTAs take tiles in the order of the grid as places on SMs become free. Each
// waits for a start, then reads its keys: at an equal share of DRAM, or at what
// its own copies in flight give, which is the same for all. So those that read
// advance alike, and a tile that has the place at mark m of that common advance
// leaves it at m and the work of its keys.
//
//===----------------------------------------------------------------------===//

#include "attn/Planner/Choice/UnevenTime.h"
#include "attn/Planner/Facts/Factor.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <queue>

using namespace mlir;
using namespace mlir::attn;

/// Keys of the shortest sequence that is thought of.
static constexpr Factor kShortestSequence{"uneven.shortest_sequence"};
static constexpr Factor kTileStart{"uneven.tile_start"},
    kFirstKeys{"uneven.first_keys"};
/// Places that are enough to tell plans apart: heads, whose tiles have the same
/// keys, are counted together as long as there are as many.
static constexpr int64_t kFewestPlaces = 64;
/// Tiles that are followed one by one; of more, each run's share of so many.
static constexpr int64_t kMostFollowed = int64_t(1) << 20;

SmallVector<int64_t> attn::listUnevenLengths(const UnevenBatch &batch) {
  SmallVector<int64_t> lengths;
  if (size_t count = batch.expected.size()) {
    for (int64_t i = 0; i < batch.sequences; ++i)
      lengths.push_back(std::min(batch.expected[i % count], batch.seen));
    return lengths;
  }
  // Multiples of the golden ratio are spread evenly, and so are any few
  // that follow each other.
  constexpr double kGolden = 0.6180339887498949;
  double longest = std::max<double>(batch.keys, 1);
  double range = std::max(0.0, std::log(longest / kShortestSequence));
  for (int64_t i = 0; i < batch.sequences; ++i) {
    double place = (double(i) + 0.5) * kGolden;
    double length = std::min<double>(longest, kShortestSequence) *
                    std::exp((place - std::floor(place)) * range);
    lengths.push_back(std::min<int64_t>(std::lround(length), batch.seen));
  }
  // Some sequence is as long as the table lets it.
  if (!lengths.empty())
    *llvm::max_element(lengths) = batch.seen;
  return lengths;
}

/// Returns the keys of a sequence that estimates of a plan are of.
static double getEstimatedKeys(const UnevenBatch &batch) {
  if (batch.expected.empty())
    return double(batch.seen);
  double keys = 0;
  for (int64_t each : batch.expected)
    keys += double(std::min(each, batch.seen));
  return std::max(1.0, keys / double(batch.expected.size()));
}

namespace {

/// Places on SMs, and tiles that take them.
class Places {
public:
  Places(int64_t count, int64_t together, double cap)
      : free(count), together(double(together)), cap(cap) {}

  /// Takes a place for a tile whose keys take DRAM `work` microseconds.
  void add(double work) {
    while (free == 0)
      advance();
    --free;
    starting.push({now + kTileStart + (work > 0 ? kFirstKeys : 0), work});
  }
  /// When the last one leaves.
  double finish() {
    while (!starting.empty() || !reading.empty())
      advance();
    return now;
  }

private:
  /// Goes on to the next start or end of reading.
  void advance() {
    double rate = reading.empty()
                      ? 0
                      : std::min(cap, 1 / (together * double(reading.size())));
    double end =
        reading.empty() ? HUGE_VAL : now + (reading.top() - mark) / rate;
    if (!starting.empty() && starting.top().first <= end) {
      auto [time, work] = starting.top();
      starting.pop();
      mark += rate * (time - now);
      now = time;
      if (work > 0)
        reading.push(mark + work);
      else
        ++free;
      return;
    }
    now = end;
    mark = reading.top();
    reading.pop();
    ++free;
  }

  template <typename T>
  using Queue = std::priority_queue<T, std::vector<T>, std::greater<T>>;
  /// When the start of a tile ends, and its work; at which mark one ends.
  Queue<std::pair<double, double>> starting;
  Queue<double> reading;
  int64_t free;
  /// Tiles that a place stands for, and the most of DRAM that one reads.
  double together, cap;
  /// Microseconds, and how far those that read have come.
  double now = 0, mark = 0;
};

} // namespace

SmallVector<int64_t> attn::dealRuns(ArrayRef<int64_t> lengths,
                                    DealtRuns dealt) {
  auto count = [](int64_t length) {
    return llvm::divideCeil(length, DealRunOp::kBlockKeys) + 1;
  };
  int64_t blocks = 0;
  for (int64_t length : lengths)
    blocks += count(length);
  int64_t spare = dealt.total - int64_t(lengths.size());
  int64_t each = llvm::divideCeil(blocks, spare);
  SmallVector<int64_t> runs;
  for (int64_t length : lengths)
    runs.push_back(
        std::min<int64_t>(dealt.most, llvm::divideCeil(count(length), each)));
  return runs;
}

/// What all tiles take, in the order of `lengths`, of which each has so many
/// runs; the plan's estimate is one of `splits` runs of a tile.
static double runTiles(ArrayRef<int64_t> lengths, ArrayRef<int64_t> runs,
                       const PlanEstimate &plan, double tileWork,
                       int64_t splits, double keys, const TargetRow &target) {
  int64_t places = int64_t(target.smCount) *
                   std::max<int64_t>(1, plan.ctasPerSM) * plan.ctaTiles;
  int64_t sequences = lengths.size();
  int64_t tiles = std::max<int64_t>(1, plan.tiles / (sequences * splits));
  int64_t together = 1;
  for (int64_t count = 2; count <= tiles && places / count >= kFewestPlaces;
       ++count)
    if (tiles % count == 0)
      together = count;
  double cap =
      plan.loneTileMicroseconds > 0 ? tileWork / plan.loneTileMicroseconds : 1;
  // Blocks of an average run of the longest sequence are `plan.blocks`.
  double blockKeys =
      std::max(1.0, keys / (std::max(plan.blocks, 1.0) * splits));
  Places state(places / together, together, cap);
  int64_t allRuns = 0;
  for (int64_t own : runs)
    allRuns += own;
  int64_t each = tiles / together;
  int64_t followed = std::clamp<int64_t>(
      kMostFollowed / std::max<int64_t>(1, allRuns), 1, each);
  for (auto [length, own] : llvm::zip(lengths, runs)) {
    // Blocks are dealt to runs, and only keys that there are are read.
    double left = double(length);
    int64_t blocks = std::ceil(left / blockKeys);
    for (int64_t run = 0; run < own; ++run) {
      double part = double(blocks / own + (run < blocks % own));
      double read = std::min(left, part * blockKeys);
      left -= read;
      double work = tileWork * read * double(splits) / keys;
      for (int64_t tile = 0; tile < followed; ++tile)
        state.add(work);
    }
  }
  return state.finish() * double(each) / double(followed);
}

double attn::estimateEqualRuns(const PlanEstimate &whole,
                               const PlanEstimate &plan,
                               const UnevenBatch &batch) {
  double keys = 0;
  for (int64_t length : listUnevenLengths(batch))
    keys += double(length);
  double share = keys / (double(batch.sequences) * getEstimatedKeys(batch));
  // All CTAs end together, and so does the longest sequence.
  double partials = plan.dramRoofMicroseconds - whole.dramRoofMicroseconds;
  double lone = plan.loneTileMicroseconds;
  return double(kTileStart) + kFirstKeys +
         share * std::max(whole.dramRoofMicroseconds, lone) +
         std::max(0.0, partials);
}

double attn::estimateUneven(const PlanEstimate &whole, const PlanEstimate &plan,
                            int64_t splits, const UnevenBatch &batch,
                            const TargetRow &target, DealtRuns dealt) {
  double partials = plan.dramRoofMicroseconds - whole.dramRoofMicroseconds;
  double tileWork =
      whole.dramRoofMicroseconds / std::max<double>(1, double(plan.tiles));
  SmallVector<int64_t> lengths = listUnevenLengths(batch);
  SmallVector<int64_t> runs(lengths.size(), splits);
  if (dealt.total)
    runs = dealRuns(lengths, dealt);
  auto run = [&] {
    return runTiles(lengths, runs, plan, tileWork, splits,
                    getEstimatedKeys(batch), target);
  };
  // Where long sequences stand is chance: both directions stand for all.
  double forward = run();
  std::reverse(lengths.begin(), lengths.end());
  std::reverse(runs.begin(), runs.end());
  return (forward + run()) / 2 + std::max(0.0, partials);
}
