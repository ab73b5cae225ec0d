//===- SampledRun.cpp - A few CTAs of a launch ----------------------------===//

#include "SampledRun.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>
#include <random>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::Expected;

/// Returns true if a grid does not depend on the tensors: its CTAs deal what
/// there is to do among them.
static bool isDealt(const LaunchStep &step) {
  return llvm::all_of(step.grid, [](const SizeExpr &extent) {
    return llvm::all_of(extent.getSymbols(), [](const SizeSymbol &symbol) {
      return symbol.isDevice();
    });
  });
}

std::optional<std::string> sim::findReasonToRunAll(const LaunchRecord &record,
                                                   const Program &program) {
  if (record.steps.size() != 1)
    return llvm::formatv("the launch has {0} kernels", record.steps.size())
        .str();
  if (program.hasDependentCtas())
    return "the CTAs read what others write";
  std::optional<unsigned> o = record.findTensor("o");
  if (!o || record.tensors[*o].access != TensorAccess::Write)
    return "the results are read, too";
  if (record.tensors[*o].shape.size() != 4)
    return "the results are partial ones";
  return std::nullopt;
}

void sim::spreadTiles(const LaunchRecord &record,
                      ArrayRef<HarnessTensor> tensors,
                      ResolvedLaunch &resolved) {
  // No tile has fewer rows of all heads that share keys.
  constexpr int64_t kLeastRows = 64;
  constexpr int64_t kMostClusters = int64_t(1) << 20;
  const LaunchStep &step = record.steps.front();
  std::array<uint32_t, 3> &grid = resolved.steps.front().grid;
  if (!isDealt(step) || llvm::is_contained(grid, 0u))
    return;
  ArrayRef<int64_t> shape = tensors[*record.findTensor("o")].argument.shape;
  int64_t sequences = shape[0];
  if (std::optional<unsigned> lengths = record.findTensor("cu_seqlens_q"))
    sequences += tensors[*lengths].argument.shape[0];
  int64_t tiles =
      shape[1] * (sequences + shape[0] * (shape[2] / kLeastRows + 1));
  int64_t clusters = std::min(tiles, kMostClusters);
  grid[0] = std::max<int64_t>(grid[0], clusters * step.cluster[0]);
}

void sim::addRun(RunReport &sum, const RunReport &run) {
  sum.completed &= run.completed;
  llvm::append_range(sum.findings, run.findings);
  sum.findingsDropped += run.findingsDropped;
  sum.printed += run.printed;
  sum.printedDropped += run.printedDropped;
  sum.counters.add(run.counters);
  sum.storingClusters += run.storingClusters;
  for (auto [line, count] : run.lines)
    sum.lines[line] += count;
  sum.seconds += run.seconds;
}

Expected<RunReport> sim::runSample(const Program &program, Memory &memory,
                                   LaunchConfig config, unsigned ctas) {
  uint64_t all = 1, width = 1;
  for (unsigned axis : {0, 1, 2}) {
    all *= config.grid[axis] / config.cluster[axis];
    width *= config.cluster[axis];
  }
  // Drawn ones are swapped to the front.
  std::vector<uint32_t> numbers(all);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::mt19937_64 rng(config.seed);
  RunReport sum;
  sum.completed = true;
  uint64_t wanted = llvm::divideCeil(ctas, width), drawn = 0;
  // Clusters without a tile end at once, and others are drawn for them.
  while (sum.completed && drawn < all && sum.storingClusters < wanted) {
    uint64_t end = std::min(all, drawn + wanted - sum.storingClusters);
    config.chosenClusters.clear();
    for (; drawn < end; ++drawn) {
      std::swap(numbers[drawn], numbers[drawn + rng() % (all - drawn)]);
      config.chosenClusters.push_back(numbers[drawn]);
    }
    Expected<RunReport> run = sim::run(program, memory, config);
    if (!run)
      return run.takeError();
    addRun(sum, *run);
    sum.variables = std::move(run->variables);
  }
  return std::move(sum);
}
