//===- HarnessEffort.cpp - What a launch takes on the host ----------------===//

#include "HarnessEffort.h"
#include "attn/Support/HostMemory.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <thread>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::StringRef;

/// Pairs of a query and a key that it sees, about.
static double countPairs(const AttentionProblem &problem, double queries,
                         double keys) {
  if (problem.mask == MaskKind::None)
    return queries * keys;
  bool isCausal = problem.mask == MaskKind::Causal;
  double right = isCausal ? 0 : double(problem.right);
  double left = isCausal || problem.left < 0 ? keys : double(problem.left);
  if (right < 0)
    right = keys;
  double width = std::min(keys, left + right + 1);
  // Half of what a causal mask without a window leaves.
  bool isHalf = width >= keys && (left < keys || right < keys);
  return queries * width * (isHalf ? 0.5 : 1);
}

Effort sim::estimateEffort(const LaunchRecord &record,
                           ArrayRef<HarnessTensor> tensors,
                           const HarnessOptions &options) {
  // Measured on one core of a Xeon of 2023.
  constexpr double elementsPerSecond = 2.5e7, referenceFlops = 3e9,
                   simulatedFlops = 3e8;
  Effort effort;
  if (!record.problem)
    return effort;
  const AttentionProblem &problem = *record.problem;
  auto getExtent = [&](StringRef name, unsigned axis) -> double {
    std::optional<unsigned> index = record.findTensor(name);
    if (!index || axis >= tensors[*index].argument.shape.size())
      return 0;
    return double(tensors[*index].argument.shape[axis]);
  };
  for (const HarnessTensor &tensor : tensors) {
    double elements = 1;
    for (int64_t extent : tensor.argument.shape)
      elements *= double(extent);
    if (tensor.access == TensorAccess::Read)
      effort.inputs += elements / elementsPerSecond;
  }
  double batch = getExtent("q", 0), sequences = 1;
  if (problem.varlen)
    sequences = std::max(getExtent("cu_seqlens_q", 0) - 1, 1.0);
  double pairs = sequences * countPairs(problem, getExtent("q", 2) / sequences,
                                        getExtent("k", 2) / sequences);
  double flops = 2 * batch * double(problem.heads) * pairs *
                 double(problem.d + problem.dv);
  double cores = std::max(1u, std::thread::hardware_concurrency());
  if (options.verify)
    effort.reference = flops / referenceFlops / std::min(cores, 2.0);
  // A CTA takes about 128 of a head's queries.
  double tiles = batch * double(problem.heads) * getExtent("q", 2) / 128;
  if (options.sampledCTAs && tiles > options.sampledCTAs) {
    flops *= options.sampledCTAs / tiles;
    effort.reference *= options.sampledCTAs / tiles;
  }
  if (options.config.threads)
    cores = std::min<double>(cores, options.config.threads);
  effort.simulation = flops / simulatedFlops / cores;
  return effort;
}

uint64_t sim::getHostBytes(uint64_t extent, TensorAccess access) {
  return llvm::SaturatingMultiply<uint64_t>(
      extent, access == TensorAccess::Read ? 3 : 5);
}

Error sim::checkMemory(ArrayRef<HostBuffer> buffers, uint64_t limit) {
  if (!limit)
    limit = getHostMemory();
  uint64_t sum = 0;
  for (const HostBuffer &buffer : buffers)
    sum = llvm::SaturatingAdd(sum, buffer.bytes);
  if (sum <= limit)
    return Error::success();
  auto largest = llvm::max_element(
      buffers, [](const auto &a, const auto &b) { return a.bytes < b.bytes; });
  return createStringError(
      "expected a launch that takes at most the " + formatBytes(limit) +
      " of memory that there are, got " + formatBytes(sum) + ", of which " +
      largest->name + " takes " + formatBytes(largest->bytes));
}
