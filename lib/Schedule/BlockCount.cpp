//===- BlockCount.cpp - How many blocks of keys tiles walk ----------------===//

#include "BlockCount.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

/// The share of pairs of query and key blocks that a mask without left bound
/// leaves.
static double keptShare(const ProblemFacts &facts, double queries, double keys,
                        double blockM, double blockN) {
  MaskAttr mask = facts.mask;
  if (mask.getKind() == MaskKind::None || keys <= 0)
    return 1;
  double offset =
      mask.getAlign() == MaskAlign::BottomRight ? keys - queries : 0;
  double kept = 0;
  // Tiles at 16 evenly spaced places are enough for an estimate.
  constexpr int kSamples = 16;
  for (int i = 0; i < kSamples; ++i) {
    double row = queries * (i + 0.5) / kSamples;
    double high = keys;
    if (mask.hasRight())
      high = std::min(high, row + offset + mask.rightBound() + blockM / 2);
    // Blocks start at multiples of their size, as tiles do of theirs.
    double overhang = std::max(0.0, blockN - blockM) / 2;
    kept += std::max(0.0, std::min(keys, high + overhang));
  }
  return kept / kSamples / keys;
}

namespace {
/// Blocks of an average tile under a mask that is bounded on the left.
struct WindowBlocks {
  double all = 0, ends = 0;
};
} // namespace

/// Counts them as the kernel does (BlockBounds.cpp): how narrow windows fall on
/// blocks is most of what such tiles cost.
static WindowBlocks countWindow(const ProblemFacts &facts, int64_t queries,
                                int64_t keys, int64_t blockM, int64_t blockN) {
  constexpr int64_t kMostTiles = 256;
  MaskAttr mask = facts.mask;
  int64_t offset =
      mask.getAlign() == MaskAlign::BottomRight ? keys - queries : 0;
  int64_t tiles = llvm::divideCeil(queries, blockM);
  int64_t step = llvm::divideCeil(tiles, kMostTiles), counted = 0;
  WindowBlocks sum;
  for (int64_t tile = 0; tile < tiles; tile += step, ++counted) {
    int64_t row = tile * blockM;
    int64_t last = std::min(row + blockM, queries) - 1;
    auto clampKey = [&](int64_t key) {
      return std::clamp<int64_t>(key, 0, keys);
    };
    int64_t some = keys, all = keys;
    if (mask.hasRight()) {
      some = clampKey(last + offset + mask.rightBound() + 1);
      all = clampKey(row + offset + mask.rightBound() + 1);
    }
    int64_t end = llvm::divideCeil(some, blockN);
    int64_t begin =
        std::min(clampKey(row + offset + mask.leftBound()) / blockN, end);
    int64_t fullBegin =
        llvm::divideCeil(clampKey(last + offset + mask.leftBound()), blockN);
    sum.all += end - begin;
    sum.ends += end - begin - std::max<int64_t>(0, all / blockN - fullBegin);
  }
  return {sum.all / std::max<int64_t>(1, counted),
          sum.ends / std::max<int64_t>(1, counted)};
}

double attn::countWindowEnds(const ProblemFacts &facts, double queries,
                             double keys, double blockM, double blockN) {
  if (!facts.mask.hasLeft())
    return 0;
  return countWindow(facts, queries, keys, blockM, blockN).ends;
}

double attn::countBlocks(const ProblemFacts &facts, double queries, double keys,
                         double blockM, double blockN) {
  if (facts.mask.hasLeft())
    return std::max(1.0, countWindow(facts, queries, keys, blockM, blockN).all);
  double share = keptShare(facts, queries, keys, blockM, blockN);
  return std::max(1.0, std::ceil(keys / blockN) * share);
}
