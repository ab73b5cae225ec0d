//===- ChannelCheck.cpp - Are a kernel's channels used right? -------------===//

#include "attn/Analysis/Channels/ChannelCheck.h"
#include "ChannelBalance.h"
#include "ChannelLicence.h"
#include <set>

using namespace mlir;
using namespace mlir::attn;

/// Steps of all runs, after which no more tiles are tried.
static constexpr int64_t kMaxSteps = 20000;

/// What a tile's events are of.
static std::vector<const void *> getKind(const TileSample &tile) {
  std::vector<const void *> kind;
  for (const auto &events : tile.events) {
    for (const ChannelEvent &event : events)
      kind.push_back(event.step);
    kind.push_back(nullptr);
  }
  return kind;
}

/// One tile of each kind of a kernel, small ones first.
static std::vector<std::pair<std::vector<const void *>, const TileEvents *>>
getKinds(const KernelSample &kernel) {
  std::set<std::vector<const void *>> known;
  std::vector<std::pair<std::vector<const void *>, const TileEvents *>> kinds;
  for (const TileSample &tile : kernel.tiles) {
    std::vector<const void *> kind = getKind(tile);
    if (known.insert(kind).second)
      kinds.push_back({std::move(kind), &tile.events});
  }
  llvm::sort(kinds, [](const auto &a, const auto &b) {
    return std::pair(a.first.size(), a.second) <
           std::pair(b.first.size(), b.second);
  });
  return kinds;
}

/// Runs each kind of tile by itself, three in a row, and then all kinds of a
/// kernel in both orders.
static void checkOrder(ChannelRuns &runs,
                       const std::vector<KernelSample> &kernels,
                       ChannelReport &report) {
  std::set<std::vector<const void *>> known;
  for (const KernelSample &kernel : kernels) {
    SmallVector<const TileEvents *> row = {&kernel.before};
    size_t events = 0;
    bool isNew = false;
    for (auto &[kind, tile] : getKinds(kernel)) {
      if (report.steps + int64_t(5 * kind.size() + events) > kMaxSteps &&
          report.runs != 0)
        break;
      row.push_back(tile);
      events += 2 * kind.size();
      if (!known.insert(std::move(kind)).second)
        continue;
      isNew = true;
      const TileEvents *three[] = {&kernel.before, tile, tile, tile,
                                   &kernel.after};
      if ((report.witness = runs.run(three)))
        return;
    }
    if (row.size() < 3 || !isNew)
      continue;
    for (size_t last = row.size(); --last > 0;)
      row.push_back(row[last]);
    row.push_back(&kernel.after);
    if ((report.witness = runs.run(row)))
      return;
  }
}

/// The op that makes a value.
static Operation *findOp(Value value) {
  Operation *op = value.getDefiningOp();
  return op ? op : value.getParentBlock()->getParentOp();
}

ChannelReport attn::checkChannels(const ChannelAnalysis &analysis) {
  ChannelReport report;
  if (!analysis.getPartitions() || analysis.getChannels().empty())
    return report;
  checkLicence(analysis, report);
  if (report.witness)
    return report;
  ChannelProgram program(analysis);
  if (auto note = program.build()) {
    report.unsupported = note;
    return report;
  }
  ChannelRuns runs(program, report);
  if (auto local = runs.findLocal()) {
    report.unsupported = {findOp(program.terms[*local].origin),
                          "steps depend on a number that one partition carries "
                          "or reads by itself"};
    return report;
  }
  std::vector<KernelSample> kernels = runs.makeKernels();
  // What holds tokens is not needed for what follows.
  auto notFollowed = std::exchange(report.unsupported, std::nullopt);
  checkBalance(program, kernels, report);
  if (report.witness || report.unsupported)
    return report;
  bool hasTiles = llvm::any_of(kernels, [](const KernelSample &kernel) {
    return !kernel.tiles.empty();
  });
  report.unsupported = notFollowed;
  if (!hasTiles && !notFollowed)
    report.unsupported = {analysis.getPartitions(),
                          "no tile is found whose steps all have numbers"};
  checkOrder(runs, kernels, report);
  return report;
}
