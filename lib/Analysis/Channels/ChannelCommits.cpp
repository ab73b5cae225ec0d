//===- ChannelCommits.cpp - Releases that wait for products ---------------===//
//
// A role that signals by commit is done with a slot when the products are that
// its thread has started. So the thread that releases has to be the one that
// started them, and they have to stand in front.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Channels/ChannelAnalysis.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::attn;

/// The acquires that a token comes from, if they are in front of it without
/// control flow between; else none.
static SmallVector<ChannelUserOpInterface> findAcquires(Value token) {
  SmallVector<ChannelUserOpInterface> acquires;
  SmallVector<Value> worklist = {token};
  while (!worklist.empty()) {
    auto user = worklist.pop_back_val().getDefiningOp<ChannelUserOpInterface>();
    if (!user)
      return {};
    if (user.getChannelUse() == ChannelUse::Acquire) {
      acquires.push_back(user);
      continue;
    }
    for (Value operand : user->getOperands())
      if (isa<TokenType>(operand.getType()))
        worklist.push_back(operand);
  }
  return acquires;
}

/// The products with an operand in the slot of an acquire, whose ends an
/// mbarrier tells.
static SetVector<Operation *> findProducts(ChannelUserOpInterface acquire) {
  SetVector<Operation *> products;
  SmallVector<Value> worklist = {acquire.getSlotIndex()};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    bool isView = isa<BufferType>(value.getType());
    for (Operation *user : value.getUsers()) {
      if (isa<ViewLikeOpInterface>(user))
        llvm::append_range(worklist, user->getResults());
      auto product = dyn_cast<ProductOpInterface>(user);
      if (isView && product &&
          product.getCompletion() == ProductCompletion::Barrier)
        products.insert(user);
    }
  }
  return products;
}

/// True if both stand below one block, `second` before `first` there.
static bool isBehind(Operation *first, Operation *second) {
  for (Block *block = second->getBlock(); block;
       block = block->getParentOp() ? block->getParentOp()->getBlock()
                                    : nullptr) {
    Operation *ancestor = block->findAncestorOpInBlock(*first);
    if (!ancestor)
      continue;
    Operation *other = block->findAncestorOpInBlock(*second);
    return other->isBeforeInBlock(ancestor);
  }
  return false;
}

LogicalResult ChannelAnalysis::checkProduct(ChannelUserOpInterface release,
                                            Operation *product) {
  Owner owner = owners.find(release.getUsedHandle()->get())->second;
  bool isOwnThread = product->getParentOfType<ElectOp>() ==
                     release->getParentOfType<ElectOp>();
  if (isOwnThread && !isBehind(product, release))
    return success();
  InFlightDiagnostic diag = release->emitOpError("expected to stand ");
  if (isOwnThread)
    diag << "after each product that uses the slot of " << describe(owner)
         << ", got one after it";
  else
    diag << "in the attn.elect of each product that uses the slot of "
         << describe(owner) << ", since a commit is for what its thread has "
         << "started, got another one";
  diag.attachNote(product->getLoc()) << "the product is here";
  return diag;
}

LogicalResult ChannelAnalysis::checkCommit(ChannelUserOpInterface release) {
  Value token = release.getUsedHandle()->get();
  auto elect = release->getParentOfType<ElectOp>();
  if (!elect || elect.getEachWarpgroup()) {
    InFlightDiagnostic diag = release->emitOpError(
        "expected to stand in an attn.elect of one thread, whose products ");
    diag << describe(owners.find(token)->second) << " commits, got "
         << (elect ? "one of each warpgroup" : "none");
    return diag;
  }
  for (ChannelUserOpInterface acquire : findAcquires(token))
    for (Operation *product : findProducts(acquire))
      if (failed(checkProduct(release, product)))
        return failure();
  return success();
}
