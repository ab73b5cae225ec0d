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
