//===- FirstBlockKeys.cpp - Keys that a tile's first block needs ----------===//

#include "FirstBlockKeys.h"
#include "../Copied/GridTiles.h"
#include "attn/Dialect/Attn/IR/BlockBounds.h"
#include <numeric>

using namespace mlir;
using namespace mlir::attn;

std::optional<FirstBlockSizes> attn::findFirstBlock(const ProblemFacts &facts,
                                                    WsWgmmaPlanAttr plan) {
  int64_t blockM = plan.getBlockM(), blockN = plan.getBlockN();
  MaskAttr mask = facts.mask;
  bool isBand = mask.hasLeft() || mask.hasRight();
  // Without a band all tiles are alike. Scales of a block are read whole.
  if (plan.getFirstBlock() == FirstBlock::Whole || plan.getKeyQuads() ||
      facts.kScales || facts.varlen || plan.getCutDocuments() ||
      facts.isServed() || facts.hasBlockLists() || areResultsPartial(facts) ||
      plan.getPackHeads() || facts.mayEndEarlier() ||
      ShapedType::isDynamic(facts.keys) || facts.keys == 0 ||
      (isBand && ShapedType::isDynamic(facts.queries)))
    return std::nullopt;
  int64_t keys = facts.keys;
  int64_t queries = isBand ? facts.queries : blockM;
  int64_t step = facts.isNarrow() ? 32 : 16;
  int64_t groups = blockM / kGroupRows;

  FirstBlockSizes sizes;
  sizes.keys.assign(groups, 0);
  SmallVector<int64_t, 3> phases(3, 0);
  int64_t tiles = 0, blocks = 0;
  for (int64_t row = 0; row < queries; row += blockM) {
    BlockBoundsOf<int64_t> bounds =
        computeBlockBounds(mask, row, queries, keys, blockM, blockN);
    int64_t begin = bounds.begin, end = bounds.end;
    if (begin == end)
      continue;
    ++tiles;
    blocks += end - begin;
    for (int64_t group = 0; group < groups; ++group) {
      int64_t first = row + group * kGroupRows;
      if (first >= queries)
        break;
      int64_t kept =
          computeBlockBounds(mask, first, queries, keys, kGroupRows, blockN)
              .lastKey -
          (end - 1) * blockN;
      sizes.keys[group] = std::max(
          sizes.keys[group],
          std::min<int64_t>(llvm::alignTo(std::max<int64_t>(kept, 0), step),
                            blockN));
    }
    if (end - begin == 1)
      continue;
    KVPhase second = KVPhase::Interior;
    if (end - 2 >= bounds.fullEnd)
      second = KVPhase::Right;
    else if (end - 2 < bounds.fullBegin)
      second = KVPhase::Left;
    ++phases[static_cast<unsigned>(second)];
  }
  int64_t needed =
      std::accumulate(sizes.keys.begin(), sizes.keys.end(), int64_t(0));
  if (tiles == 0 || needed == groups * blockN)
    return std::nullopt;
  // A mask_mod with bounds of its own has other phases.
  if (llvm::count(phases, 0) == 2 && !facts.knowsFullKeys())
    sizes.second = static_cast<KVPhase>(
        std::distance(phases.begin(), llvm::max_element(phases)));
  sizes.savedOfFirst = 1 - double(needed) / (groups * blockN);
  sizes.saved = sizes.savedOfFirst * tiles / blocks;
  return sizes;
}
