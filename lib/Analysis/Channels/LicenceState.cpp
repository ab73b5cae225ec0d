//===- LicenceState.cpp - What a partition holds --------------------------===//

#include "LicenceState.h"
#include "attn/Analysis/Flow/RegionPaths.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::attn;

bool LicenceState::operator==(const LicenceState &other) const {
  return rights == other.rights &&
         llvm::equal(grants, other.grants,
                     [](const Grant &a, const Grant &b) {
                       return a.tie() == b.tie();
                     }) &&
         llvm::equal(groups, other.groups, [](const Group &a, const Group &b) {
           return a.tie() == b.tie();
         });
}

void LicenceState::tidy() {
  std::vector<int> renamed(grants.size(), -1);
  std::vector<Grant> kept;
  auto rename = [&](unsigned &grant) {
    if (renamed[grant] < 0) {
      renamed[grant] = kept.size();
      kept.push_back(grants[grant]);
    }
    grant = renamed[grant];
  };
  for (auto &[value, named] : rights)
    for (Right &right : named)
      rename(right.first);
  for (Group &group : groups)
    for (auto &access : group.accesses)
      rename(access.first);
  grants = std::move(kept);
}

bool attn::takesPart(const ChannelInfo &channel, unsigned partition) {
  return llvm::any_of(channel.roles, [&](const RoleInfo &role) {
    return llvm::any_of(role.participants, [&](const Participant &each) {
      return each.partition == partition;
    });
  });
}

unsigned attn::countChannels(const ChannelAnalysis &analysis,
                             unsigned partition) {
  return llvm::count_if(analysis.getChannels(), [&](const auto &entry) {
    return takesPart(entry.second, partition);
  });
}

/// The innermost loop that runs both, if it comes to `op` without a condition.
static Operation *findCommonLoop(Operation *op, Operation *other) {
  for (Operation *at = op->getParentOp(); at; at = at->getParentOp()) {
    if (isSequentialLoop(at) && at->isProperAncestor(other))
      return at;
    if (!isSequentialLoop(at) && !runsInSomeThreads(at))
      return nullptr;
  }
  return nullptr;
}

Operation *attn::findAcquireOfEachTrip(const ChannelAnalysis &analysis,
                                       Operation *access,
                                       ChannelCreateOp channel) {
  SmallVector<ChannelUserOpInterface> acquires;
  for (Region &region : analysis.getPartitions()->getRegions()) {
    if (!region.isAncestor(access->getParentRegion()))
      continue;
    region.walk([&](ChannelUserOpInterface op) {
      if (op.getChannelUse() == ChannelUse::Acquire &&
          op.getUsedChannel() == channel.getResult())
        acquires.push_back(op);
    });
  }
  if (acquires.size() != 1)
    return nullptr;
  ChannelUserOpInterface acquire = acquires.front();
  Operation *loop = findCommonLoop(access, acquire);
  if (!loop)
    return nullptr;
  for (Operation *at = acquire->getParentOp(); at != loop;
       at = at->getParentOp())
    if (!runsInSomeThreads(at))
      return nullptr;
  if (auto counted = dyn_cast<scf::ForOp>(loop))
    if (auto trips = counted.getStaticTripCount(); trips && trips->ult(2))
      return nullptr;
  OpOperand *cursor = acquire.getUsedHandle();
  auto argument =
      cursor ? dyn_cast<BlockArgument>(cursor->get()) : BlockArgument();
  return argument && argument.getOwner()->getParentOp() == loop ? acquire
                                                                : nullptr;
}
