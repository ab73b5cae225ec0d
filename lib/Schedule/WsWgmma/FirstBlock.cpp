//===- FirstBlock.cpp - Keys that a tile's first block needs --------------===//
//
// The bounds are those of BlockBounds.cpp, for constants, of each tile.
//
//===----------------------------------------------------------------------===//

#include "FirstBlock.h"
#include <numeric>

using namespace mlir;
using namespace mlir::attn;

std::optional<FirstBlockSizes> attn::findFirstBlock(const ProblemFacts &facts,
                                                    WsWgmmaPlanAttr plan) {
  int64_t blockM = plan.getBlockM(), blockN = plan.getBlockN();
  MaskAttr mask = facts.mask;
  bool isBand = mask.hasLeft() || mask.hasRight();
  // Without a band all tiles are alike.
  if (plan.getFirstBlock() == FirstBlock::Whole || plan.getKeyQuads() ||
      facts.varlen || ShapedType::isDynamic(facts.keys) || facts.keys == 0 ||
      (isBand && ShapedType::isDynamic(facts.queries)))
    return std::nullopt;
  int64_t keys = facts.keys;
  int64_t queries = isBand ? facts.queries : blockM;
  int64_t offset =
      mask.getAlign() == MaskAlign::BottomRight ? keys - queries : 0;
  int64_t step = facts.isNarrow() ? 32 : 16;
  int64_t groups = blockM / kGroupRows;

  FirstBlockSizes sizes;
  sizes.keys.assign(groups, 0);
  SmallVector<int64_t, 3> phases(3, 0);
  int64_t tiles = 0, blocks = 0;
  // One past the last key that the row keeps.
  auto endOfRow = [&](int64_t row) {
    if (!mask.hasRight())
      return keys;
    return std::clamp<int64_t>(row + offset + mask.rightBound() + 1, 0, keys);
  };
  for (int64_t row = 0; row < queries; row += blockM) {
    int64_t last = std::min(row + blockM, queries) - 1;
    int64_t end = llvm::divideCeil(endOfRow(last), blockN);
    int64_t fullEnd = endOfRow(row) / blockN;
    int64_t begin = 0, fullBegin = 0;
    if (mask.hasLeft()) {
      int64_t lower = offset + mask.leftBound();
      begin = std::min(std::max<int64_t>(row + lower, 0) / blockN, end);
      fullBegin = llvm::divideCeil(std::max<int64_t>(last + lower, 0), blockN);
    }
    if (begin == end)
      continue;
    ++tiles;
    blocks += end - begin;
    for (int64_t group = 0; group < groups; ++group) {
      int64_t first = row + group * kGroupRows;
      if (first > last)
        break;
      int64_t kept =
          endOfRow(std::min(first + kGroupRows - 1, last)) - (end - 1) * blockN;
      sizes.keys[group] = std::max(
          sizes.keys[group],
          std::min<int64_t>(llvm::alignTo(std::max<int64_t>(kept, 0), step),
                            blockN));
    }
    if (end - begin == 1)
      continue;
    KVPhase second = KVPhase::Interior;
    if (end - 2 >= fullEnd)
      second = KVPhase::Right;
    else if (end - 2 < fullBegin)
      second = KVPhase::Left;
    ++phases[static_cast<unsigned>(second)];
  }
  int64_t needed =
      std::accumulate(sizes.keys.begin(), sizes.keys.end(), int64_t(0));
  if (tiles == 0 || needed == groups * blockN)
    return std::nullopt;
  if (llvm::count(phases, 0) == 2)
    sizes.second = static_cast<KVPhase>(
        std::distance(phases.begin(), llvm::max_element(phases)));
  sizes.savedOfFirst = 1 - double(needed) / (groups * blockN);
  sizes.saved = sizes.savedOfFirst * tiles / blocks;
  return sizes;
}
