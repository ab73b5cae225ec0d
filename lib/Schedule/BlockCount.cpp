//===- BlockCount.cpp - How many blocks of keys tiles walk ----------------===//

#include "BlockCount.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

/// The share of pairs of query and key blocks that a mask leaves.
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
    double low = 0, high = keys;
    if (mask.hasRight())
      high = std::min(high, row + offset + mask.rightBound() + blockM / 2);
    if (mask.hasLeft())
      low = std::max(low, row + offset + mask.leftBound() - blockM / 2);
    // Blocks start at multiples of their size, as tiles do of theirs.
    double overhang =
        mask.hasLeft() ? blockN / 2 : std::max(0.0, blockN - blockM) / 2;
    kept += std::max(0.0, std::min(keys, high - low + overhang));
  }
  return kept / kSamples / keys;
}

double attn::countBlocks(const ProblemFacts &facts, double queries, double keys,
                         double blockM, double blockN) {
  double share = keptShare(facts, queries, keys, blockM, blockN);
  return std::max(1.0, std::ceil(keys / blockN) * share);
}
