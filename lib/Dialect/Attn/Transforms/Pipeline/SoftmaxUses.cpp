//===- SoftmaxUses.cpp - What an online softmax is used for ---------------===//

#include "SoftmaxUses.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace mlir::attn;

/// True for `path` if what stands between the step and it, and what it reads,
/// lets it go where the step is.
static bool canMoveUp(RareOp path, OnlineSoftmaxOp op) {
  if (path->getBlock() != op->getBlock() || path->getNumResults() != 0)
    return false;
  for (Operation *between = op->getNextNode(); between != path;
       between = between->getNextNode())
    if (!isMemoryEffectFree(between))
      return false;
  WalkResult walk = path.getBody().walk([&](Operation *nested) {
    for (Value operand : nested->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (def && def != op && def->getBlock() == op->getBlock() &&
          op->isBeforeInBlock(def))
        return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return !walk.wasInterrupted();
}

bool attn::isBehindStores(RareOp path, ArrayRef<SliceOp> slices) {
  return !slices.empty() && llvm::all_of(slices, [&](SliceOp slice) {
    return llvm::all_of(slice->getUsers(), [&](Operation *user) {
      auto store = dyn_cast<AsyncOpInterface>(user);
      return store && &store.getAsyncEngine() == &kTensorStores &&
             user->getBlock() == path->getBlock() &&
             user->isBeforeInBlock(path);
    });
  });
}

/// True if the vote of the step can be taken where `path` stands.
static bool canTakeVote(RareOp path, OnlineSoftmaxOp op) {
  return op.getPolicy() == SoftmaxPolicy::Optimistic &&
         path->getBlock() == op->getBlock() && path->getNumResults() == 0 &&
         isBehindStores(path, findSlices(op));
}

RareOp attn::findRescale(OnlineSoftmaxOp op) {
  Value factor = op.getFactor();
  if (!factor)
    return {};
  for (Operation *user : factor.getUsers()) {
    auto compare = dyn_cast<arith::CmpFOp>(user);
    if (!compare || !compare->hasOneUse() ||
        compare.getPredicate() != arith::CmpFPredicate::UNE ||
        !matchPattern(compare.getRhs(), m_OneFloat()))
      continue;
    Operation *condition = *compare->user_begin();
    // Rows that have no maximum yet may be left out.
    if (isa<arith::AndIOp>(condition) && condition->hasOneUse() &&
        op.getPolicy() == SoftmaxPolicy::Optimistic)
      condition = *condition->user_begin();
    auto path = dyn_cast<RareOp>(condition);
    if (path && (canMoveUp(path, op) || canTakeVote(path, op)))
      return path;
  }
  return {};
}

SmallVector<SliceOp> attn::findSlices(OnlineSoftmaxOp op) {
  Value p = op.getP();
  if (p.hasOneUse())
    if (auto narrowing = dyn_cast<arith::TruncFOp>(*p.user_begin()))
      p = narrowing.getResult();
  SmallVector<SliceOp> slices;
  int64_t columns = 0;
  for (Operation *user : p.getUsers()) {
    auto slice = dyn_cast<SliceOp>(user);
    if (!slice || slice->getBlock() != op->getBlock())
      return {};
    slices.push_back(slice);
    columns += slice.getType().getShape()[1];
  }
  llvm::sort(slices,
             [](SliceOp a, SliceOp b) { return a->isBeforeInBlock(b); });
  llvm::SmallSet<int64_t, 4> starts;
  for (SliceOp slice : slices)
    starts.insert(slice.getColumn());
  bool isCover = starts.size() == slices.size() &&
                 columns == cast<RankedTensorType>(p.getType()).getShape()[1] &&
                 llvm::all_of(slices, [&](SliceOp slice) {
                   int64_t end =
                       slice.getColumn() + slice.getType().getShape()[1];
                   return end == columns || starts.contains(end);
                 });
  return isCover ? slices : SmallVector<SliceOp>();
}
