//===- Machine.cpp - State of a running launch ----------------------------===//

#include "Machine.h"
#include "Cluster.h"
#include "llvm/Support/FormatVariadic.h"

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
  if (!inserted) {
    if (it->second < result.findings.size())
      ++result.findings[it->second].occurrences;
    return;
  }
  if (result.findings.size() >= config.maxFindings) {
    ++result.findingsDropped;
    return;
  }
  result.findings.push_back(std::move(finding));
}

bool Machine::claimCluster(std::array<uint32_t, 3> &id) {
  if (nextCluster >= countClusters())
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
  if (!cluster.printed.empty())
    printed[cluster.linear] = std::move(cluster.printed);
  result.printedDropped += cluster.printedDropped;
}
