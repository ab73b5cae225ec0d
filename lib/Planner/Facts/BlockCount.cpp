//===- BlockCount.cpp - How many blocks of keys tiles walk ----------------===//

#include "BlockCount.h"
#include "RangeModel.h"
#include "attn/Planner/Facts/PlanModel.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

/// Sets what follows from the keys that sequences are expected to have. Packed
/// ones, whose queries are in proportion, take as long as fewer sequences of
/// one length that have as many rows and products.
static void setExpected(const ProblemFacts &facts, TypicalExtents &typical) {
  double sum = 0, squares = 0;
  for (double keys : facts.expectedKeys) {
    sum += keys;
    squares += keys * keys;
  }
  double mean = sum / facts.expectedKeys.size();
  if (!facts.varlen) {
    typical.keys = std::clamp(mean, 1.0, std::max(1.0, typical.keys));
    return;
  }
  double length = std::max(1.0, sum > 0 ? squares / sum : 0);
  double rows = mean * typical.batch;
  if (int64_t all = facts.q.shape[2]; !ShapedType::isDynamic(all))
    rows = double(all);
  double share = rows / std::max(1.0, mean * typical.batch);
  typical.queries =
      std::clamp(share * length, 1.0, std::max(1.0, typical.queries));
  typical.keys = length;
  typical.batch = std::max(1.0, rows / typical.queries);
}

TypicalExtents attn::getTypicalExtents(const ProblemFacts &facts) {
  TypicalExtents typical;
  typical.batch = getAssumedExtent(facts.batch, kAssumedBatch);
  typical.heads = getAssumedExtent(facts.heads, kAssumedHeads);
  typical.queries = getAssumedExtent(facts.queries, kAssumedLength);
  typical.keys = getAssumedExtent(facts.keys, kAssumedLength);
  if (!facts.expectedKeys.empty()) {
    if (ShapedType::isDynamic(facts.batch))
      typical.batch = double(facts.expectedKeys.size());
    setExpected(facts, typical);
    return typical;
  }
  if (!facts.varlen || ShapedType::isDynamic(facts.batch))
    return typical;
  double sequences = std::max<double>(1, typical.batch);
  if (int64_t rows = facts.q.shape[2]; !ShapedType::isDynamic(rows))
    typical.queries = std::clamp<double>(std::ceil(rows / sequences), 1,
                                         std::max<double>(1, typical.queries));
  typical.keys = std::max<double>(1, typical.keys / sequences);
  if (facts.isPaged())
    return typical;
  // Most rows are in sequences that are longer than the mean. With lengths that
  // are spread evenly up to the bound, this is their mean over the rows.
  double spread = std::min(1.0, facts.queries / typical.queries - 1);
  typical.keys *= 1 + spread * spread / 3;
  return typical;
}

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
/// Blocks of an average tile under a mask that is bounded on the left, or what
/// key_range leaves.
struct WindowBlocks {
  double all = 0, ends = 0;
};
} // namespace

/// Counts them as the kernel does: how narrow windows fall on
/// blocks is most of what such tiles cost.
static WindowBlocks countWindow(const ProblemFacts &facts, int64_t queries,
                                int64_t keys, int64_t blockM, int64_t blockN) {
  constexpr int64_t kMostTiles = 256;
  int64_t tiles = llvm::divideCeil(queries, blockM);
  int64_t step = llvm::divideCeil(tiles, kMostTiles), counted = 0;
  WindowBlocks sum;
  RangeModel model(facts, queries, keys);
  for (int64_t tile = 0; tile < tiles; tile += step, ++counted) {
    BlockBoundsOf<int64_t> bounds =
        model.findBlocks(tile * blockM, blockM, blockN);
    // Tiles whose rows lie behind all keys count the last block where it is not
    // whole: what plans cost was fitted so.
    int64_t all = bounds.end - std::min(bounds.begin, keys / blockN);
    sum.all += all;
    sum.ends += all - (bounds.fullEnd - bounds.fullBegin);
  }
  return {sum.all / std::max<int64_t>(1, counted),
          sum.ends / std::max<int64_t>(1, counted)};
}

double attn::countWindowEnds(const ProblemFacts &facts, double queries,
                             double keys, double blockM, double blockN) {
  if (!facts.mask.hasLeft() && !facts.hasKeyRange())
    return 0;
  return countWindow(facts, queries, keys, blockM, blockN).ends;
}

double attn::countBlocks(const ProblemFacts &facts, double queries, double keys,
                         double blockM, double blockN) {
  // Nobody has a tile.
  if (queries < 1 || blockM < 1)
    return 1;
  if (facts.mask.hasLeft() || facts.hasKeyRange())
    return std::max(1.0, countWindow(facts, queries, keys, blockM, blockN).all);
  double share = keptShare(facts, queries, keys, blockM, blockN);
  // How many blocks lists name only the launch knows.
  if (facts.hasBlockLists())
    share = RangeModel::kCapturedShare;
  double blocks = std::ceil(keys / blockN);
  // Half of the last block is empty on average where lengths differ.
  if (facts.isDocument ||
      (facts.varlen && !facts.isPaged() && queries < facts.queries))
    blocks = keys / blockN + 0.5;
  return std::max(1.0, blocks * share);
}
