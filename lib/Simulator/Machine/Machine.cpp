//===- Machine.cpp - State of a running launch ----------------------------===//

#include "Machine.h"
#include "Cluster.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;

void Machine::report(Finding finding) {
  if (parallel) {
    repeat = stop = true;
    return;
  }
  std::lock_guard<std::mutex> lock(reportMutex);
  std::string key = llvm::formatv(
      "{0}/{1}/{2}/{3}/{4}", int(finding.kind), int(finding.severity),
      finding.first ? finding.first->ptxLine : 0,
      finding.second ? finding.second->ptxLine : 0, finding.space);
  if (!finding.second)
    key += finding.message;
  auto [it, inserted] = seen.try_emplace(key, result.findings.size());
  size_t index = it->second;
  if (inserted && index >= config.maxFindings) {
    ++result.findingsDropped;
    return;
  }
  if (index >= result.findings.size() + inserted)
    return;
  if (inserted) {
    actors.emplace_back();
    result.findings.push_back(finding);
  } else {
    ++result.findings[index].occurrences;
  }
  // A set that nobody could read is no help.
  constexpr size_t kMostActors = 4096;
  const std::optional<Site> &site = finding.second;
  if (site && actors[index].size() < kMostActors)
    actors[index].insert({site->cta, site->warp});
}

void Machine::nameActors() {
  for (auto [finding, set] : llvm::zip_equal(result.findings, actors))
    if (set.size() > 1)
      finding.actors = describeWarps(
          std::vector<WarpName>(set.begin(), set.end()), CtaNames::Grid);
}

void Machine::forgetFindings() {
  result = RunReport();
  seen.clear();
  actors.clear();
}

bool Machine::claimCluster(std::array<uint32_t, 3> &id) {
  // Those that are recorded are chosen, and run one after the other.
  if (nextCluster >= countClusters() || config.tracedClusters)
    return false;
  uint32_t linear = nextCluster++;
  id = {linear % clusters[0], linear / clusters[0] % clusters[1],
        linear / clusters[0] / clusters[1]};
  return true;
}

void Machine::count(Cluster &cluster) {
  std::lock_guard<std::mutex> lock(reportMutex);
  Counters &c = cluster.counters;
  for (size_t i = 0; i < cluster.execCount.size(); ++i)
    if (cluster.execCount[i])
      c.classes[stringifyInstClass(program.code[i].cls).str()] +=
          cluster.execCount[i];
  for (size_t i = 0; i < cluster.execCount.size(); ++i)
    execCount[i] += cluster.execCount[i];
  c.warpInstructions = cluster.steps;
  c.laneInstructions = cluster.laneCount;
  result.counters.add(c);
  result.hasWaited |= cluster.hasWaited;
  result.storingClusters += c.globalStoreBytes + c.bulkStoreBytes != 0;
  if (!cluster.printed.empty())
    printed[cluster.linear] = std::move(cluster.printed);
  result.printedDropped += cluster.printedDropped;
}
