//===- ChannelCounts.cpp - Arrivals and bytes of channels -----------------===//
//
// How many arrivals and bytes complete a phase of a role, and whether everyone
// who has to signals.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Channels/ChannelAnalysis.h"
#include "attn/Analysis/Flow/RegionPaths.h"

using namespace mlir;
using namespace mlir::attn;

/// Every warp that comes to an arrive arrives once, in an elect for those that
/// do not come to it.
LogicalResult ChannelAnalysis::countRelease(ChannelUserOpInterface op) {
  Owner owner = owners.find(op.getUsedHandle()->get())->second;
  RoleInfo &role = channels.find(owner.channel)->second.roles[owner.role];
  auto [parent, index] = getPartition(op);
  Participant &participant = *llvm::find_if(
      role.participants, [index = index](const Participant &candidate) {
        return candidate.partition == index;
      });
  bool each = owner.part == Owner::kOwnPart;
  if (each)
    participant.released.set();
  else
    participant.released.set(owner.part);
  if (owner.getSignal().arrivals != 0) {
    participant.release = op;
    return success();
  }
  // A part of each warpgroup is released by that one's warps.
  int64_t warps = each ? kWarpgroupWarps : parent.getWarps()[index];
  int64_t count = warps * owner.getSignal().warpArrivals;
  if (auto elect = op->getParentOfType<ElectOp>())
    count = elect.getEachWarpgroup() ? warps / kWarpgroupWarps : 1;
  if (participant.release && participant.count != count) {
    InFlightDiagnostic diag =
        op->emitOpError("expected as many arrivals at each release, got ")
        << count << " here and " << participant.count << " elsewhere";
    diag.attachNote(participant.release->getLoc())
        << "the other release is here";
    return diag;
  }
  participant.count = count;
  participant.release = op;
  return success();
}

/// All loads of a role go to as many CTAs, unless each says which ones.
LogicalResult ChannelAnalysis::countCTAs(ChannelUserOpInterface op) {
  std::optional<int64_t> filled = op.getFilledCTAs();
  if (!filled)
    return success();
  int64_t ctas = *filled;
  Owner owner = owners.find(op.getUsedHandle()->get())->second;
  RoleInfo &role = channels.find(owner.channel)->second.roles[owner.role];
  if (role.isLeader())
    return op->emitOpError(
               "expected a load in all CTAs of the cluster, got one "
               "by ")
           << describe(owner) << ", which is the leader's";
  uint32_t bits = ctas == 1 ? 0 : op.getFillTargets().getAny();
  bool isMixed = role.fill && role.multicast != ctas;
  if (isMixed && std::max(bits, role.multicastBits) == ~0u) {
    InFlightDiagnostic diag = op->emitOpError("expected all loads of ")
                              << describe(owner)
                              << " to go to as many CTAs, got " << ctas
                              << " here and " << role.multicast << " elsewhere";
    diag.attachNote(role.fill->getLoc()) << "the other load is here";
    return diag;
  }
  role.fill = op;
  role.multicast = std::max(role.multicast, ctas);
  role.multicastBits |= bits;
  return success();
}

bool ChannelAnalysis::crossesCTAs() const {
  return llvm::any_of(
      channels, [](const auto &entry) { return entry.second.crossesCTAs(); });
}

/// Says whether the leader's barrier can count what all CTAs copy: each copies
/// something in each phase, by which its slot is handed on.
bool RoleInfo::canFillAtLeader() const {
  return fill && !ownFill && !llvm::is_contained(bytes, 0);
}

/// Bytes that CTAs copy count in no other CTA but the leader of a pair, where
/// each copy can say so, and a leader's in all CTAs. The end of products counts
/// in other CTAs if they are a leader's: of others the last signals would come
/// when a CTA has exited, since nobody waits for them.
std::optional<unsigned>
ChannelInfo::findUncounted(ChannelCreateOp channel) const {
  uint32_t ranks = cluster - 1;
  for (unsigned role = 0; role < roles.size(); ++role) {
    const ChannelSignal &signal = Owner{channel, role}.getSignal();
    SignalMask target = getTarget(role);
    bool isOwn = target == SignalMask::own() || roles[role].isLeader();
    bool atLeaderOfPair = target.getAny() == 0 &&
                          (target.getClear() & ranks) == 1 &&
                          roles[role].canFillAtLeader();
    bool isOfSome = roles[role].isLeader() && target != SignalMask::own() &&
                    target != SignalMask::all();
    bool isOfOther = (target.getClear() & ranks) != 0;
    if ((signal.awaitsCopies && !isOwn) ||
        (signal.awaitsProducts && (!isOwn || isOfOther)) ||
        (signal.countsBytes && (isOwn ? isOfSome : !atLeaderOfPair)))
      return role;
  }
  return std::nullopt;
}

bool ChannelInfo::hasTail(unsigned role, ChannelCreateOp channel) const {
  unsigned before = (role + roles.size() - 1) % roles.size();
  uint32_t others = getTarget(before).getAny() & ~roles[before].leaderBits;
  return Owner{channel, before}.getSignal().awaitsProducts &&
         (others & (cluster - 1)) != 0;
}

std::string ChannelInfo::describeTails(ChannelCreateOp channel) const {
  std::string tails;
  for (unsigned role = 0; role < roles.size(); ++role)
    if (hasTail(role, channel))
      tails += llvm::formatv("{0}{1}", tails.empty() ? "" : ", ",
                             channel.getRole(role).getName());
  return tails;
}

std::string ChannelInfo::describeMasks(ChannelCreateOp channel) const {
  if (!crossesCTAs())
    return "";
  std::string masks;
  for (unsigned index = 0; index < roles.size(); ++index) {
    masks += llvm::formatv("{0}{1}", masks.empty() ? "" : ", ",
                           channel.getRole(index).getName());
    const RoleInfo &role = roles[index];
    SignalMask target =
        role.multicastBits == ~0u ? SignalMask::all() : getTarget(index);
    for (int64_t rank = 0; rank < cluster; ++rank)
      if ((rank & role.leaderBits) != 0)
        masks += " -";
      else
        masks += llvm::formatv(" {0}", target.getTargets(rank, cluster));
  }
  return masks;
}

CGAAttr ChannelInfo::getBarrierCGA(unsigned role, MLIRContext *context,
                                   bool isOfPairs) const {
  if (!isOfPairs || !crossesCTAs())
    return {};
  SmallVector<SmallVector<int64_t>> bases;
  int64_t step = 1;
  for (int64_t bit = 1; bit < cluster; bit *= 2) {
    bool isShared = (getTarget(role).getClear() & bit) != 0;
    bases.push_back({isShared ? 0 : step});
    step *= isShared ? 1 : 2;
  }
  return CGAAttr::get(context, bases);
}

/// Multicast loads go to all CTAs of the cluster unless they say to which ones,
/// and releases come from all.
LogicalResult ChannelAnalysis::checkCluster() {
  for (auto &[channel, info] : channels)
    for (auto [index, role] : llvm::enumerate(info.roles)) {
      if (role.multicastBits == ~0u && role.multicast != cluster) {
        InFlightDiagnostic diag =
            role.fill->emitOpError("expected a cluster of ")
            << role.multicast << " CTAs, got " << cluster;
        diag.attachNote(kernel.getLoc())
            << "the kernel's known_cluster_size says so";
        return diag;
      }
    }
  for (auto &[key, info] : channels) {
    ChannelCreateOp channel = key;
    if (std::optional<unsigned> role = info.findUncounted(channel))
      return channel.emitOpError(
                 "expected a role that signals by arrive before one ")
             << (info.getTarget(*role).getClear() != 0
                     ? "of the cluster's leader"
                     : "with multicast loads")
             << ", got " << describe({channel, *role});
  }
  return success();
}

/// Bytes of the loads with `token` in and below `block`.
FailureOr<int64_t> ChannelAnalysis::sumBytes(Value token, Block *block) {
  int64_t total = 0;
  for (UseGroup &group : groupUses(token, block)) {
    if (group.nested.empty()) {
      auto user = dyn_cast<ChannelUserOpInterface>(group.op);
      ChannelUse use = user ? user.getChannelUse() : ChannelUse::None;
      if (use == ChannelUse::Fill)
        total += user.getFilledBytes();
      else if (use != ChannelUse::Release)
        return group.op->emitOpError("expected the token of a tx role to be "
                                     "used by loads and its release only");
      continue;
    }
    if (!isBranch(group.op)) {
      InFlightDiagnostic diag = group.op->emitOpError(
          "expected loads outside of loops, since their bytes are announced "
          "when the slot is acquired");
      diag.attachNote(token.getLoc()) << "the slot is acquired here";
      return diag;
    }
    SmallVector<int64_t, 2> paths;
    for (Region &region : group.op->getRegions()) {
      if (region.empty())
        continue;
      FailureOr<int64_t> own = sumBytes(token, &region.front());
      if (failed(own))
        return failure();
      paths.push_back(*own);
    }
    if (maySkipRegions(group.op))
      paths.push_back(0);
    if (!llvm::all_equal(paths)) {
      InFlightDiagnostic diag =
          group.op->emitOpError("expected loads of as many bytes on both "
                                "paths, got ")
          << paths.front() << " and " << paths.back();
      diag.attachNote(token.getLoc())
          << "the bytes are announced here, where the slot is acquired";
      return diag;
    }
    total += paths.front();
  }
  return total;
}

/// True for the token of a slot that all warps of a partition fill together.
static bool isExchanged(Value token) {
  return llvm::any_of(token.getUsers(), [](Operation *user) {
    auto fill = dyn_cast<ChannelUserOpInterface>(user);
    return fill && fill.getChannelUse() == ChannelUse::Fill &&
           fill.isExchange();
  });
}

LogicalResult ChannelAnalysis::countBytes(ChannelUserOpInterface acquire) {
  Value token = acquire.getMadeHandle();
  Owner owner = owners.find(token)->second;
  RoleInfo &role = channels.find(owner.channel)->second.roles[owner.role];
  if (!owner.getSignal().countsBytes)
    return success();
  if (!acquire->getParentOfType<ElectOp>() && !isExchanged(token))
    return acquire->emitOpError("expected to stand in an attn.elect, since one "
                                "thread announces the bytes of a tx role");
  FailureOr<int64_t> bytes = sumBytes(token, acquire->getBlock());
  if (failed(bytes))
    return failure();
  // Each warpgroup sends its own rows.
  if (owner.part == Owner::kOwnPart)
    *bytes /= int64_t(owner.parts.size());
  role.bytes.push_back(*bytes);
  announced[acquire] = *bytes;
  return success();
}

LogicalResult ChannelAnalysis::checkReleases(Owner owner,
                                             const Participant &participant) {
  ChannelCreateOp channel = owner.channel;
  auto fail = [&](const Twine &expected, const Twine &got) -> LogicalResult {
    InFlightDiagnostic diag = channel.emitOpError("expected ")
                              << expected << " by " << describe(owner);
    // Only where the name of the role does not say it.
    if (channel.getRole(owner.role).getPartitions().size() > 1)
      diag << " in partition " << partitions.getNames()[participant.partition];
    diag << ", got " << got;
    diag.attachNote(partitions.getLoc())
        << "so the role after it would wait forever";
    return diag;
  };
  if (!participant.release)
    return fail("a release", "none");
  int part = participant.released.find_first_unset();
  if (part < 0)
    return success();
  StringAttr name = channel.getRole(owner.role).getParts()[part];
  return fail("a release of each part", "none of \"" + name.getValue() + "\"");
}

LogicalResult ChannelAnalysis::checkReleases() {
  for (auto &[channel, info] : channels) {
    // Nobody waits.
    if (!info.isUsed())
      continue;
    for (auto [index, role] : llvm::enumerate(info.roles))
      for (const Participant &participant : role.participants)
        if (failed(checkReleases({channel, unsigned(index)}, participant)))
          return failure();
  }
  return success();
}
