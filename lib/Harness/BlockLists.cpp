//===- BlockLists.cpp - lists of blocks of keys ---------------------------===//

#include "BlockLists.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Twine;

Error sim::checkBlockLists(const AttentionProblem &problem,
                           const BlockListShapes &shapes) {
  bool isListed = problem.blockRows != 0;
  if (isListed == shapes.indices.empty() || isListed == shapes.counts.empty())
    return createStringError("reference: expected lists of blocks, their "
                             "counts and sizes, or none");
  if (!isListed)
    return Error::success();
  int64_t keys = shapes.k[2];
  if (problem.blockKeys < 1 || keys % problem.blockKeys != 0)
    return createStringError("reference: expected keys in whole blocks of " +
                             Twine(problem.blockKeys) + ", got " + Twine(keys));
  const int64_t lists[] = {
      shapes.q[0], problem.heads,
      int64_t(llvm::divideCeil(shapes.q[2], problem.blockRows))};
  for (ArrayRef<int64_t> shape : {shapes.counts, shapes.indices})
    if (shape.size() != 4 || shape.drop_back() != ArrayRef(lists) ||
        (shape.data() == shapes.counts.data() && shape[3] != 2))
      return createStringError(
          "reference: expected a list of blocks, and two counts, for each " +
          Twine(problem.blockRows) + " queries of each batch and head");
  return Error::success();
}

std::vector<BlockKind> sim::readBlockList(int64_t blocks,
                                          ArrayRef<int64_t> counts,
                                          ArrayRef<int64_t> indices) {
  int64_t all = std::clamp<int64_t>(counts[0], 0, indices.size());
  int64_t full = std::clamp<int64_t>(counts[1], 0, all);
  std::vector<BlockKind> kinds(blocks, BlockKind::Hidden);
  for (auto [place, block] : llvm::enumerate(indices.take_front(all)))
    if (block >= 0 && block < blocks)
      kinds[block] =
          int64_t(place) < full ? BlockKind::Full : BlockKind::Partial;
  return kinds;
}

std::pair<int64_t, int64_t> sim::getKeyRange(const AttentionProblem &problem,
                                             int64_t queries, int64_t keys,
                                             int64_t query) {
  if (problem.mask == MaskKind::None)
    return {0, keys};
  int64_t diagonal = query;
  if (problem.align == MaskAlign::BottomRight)
    diagonal += keys - queries;
  bool isDiagonal = problem.mask == MaskKind::Causal;
  int64_t left = isDiagonal ? -1 : problem.left;
  int64_t right = isDiagonal ? 0 : problem.right;
  // Bounds beyond every length change nothing; clamped, they cannot overflow.
  constexpr int64_t far = int64_t(1) << 48;
  int64_t begin = left < 0 ? 0 : diagonal - std::min(left, far);
  int64_t end = right < 0 ? keys : diagonal + std::min(right, far) + 1;
  begin = std::clamp<int64_t>(begin, 0, keys);
  return {begin, std::clamp<int64_t>(end, begin, keys)};
}
