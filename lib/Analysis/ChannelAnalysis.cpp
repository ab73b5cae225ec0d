//===- ChannelAnalysis.cpp - What a kernel's channels need ----------------===//

#include "attn/Analysis/ChannelAnalysis.h"

using namespace mlir;
using namespace mlir::attn;

std::string attn::describe(Owner owner) {
  std::string text =
      llvm::formatv("role '{0}' of channel '{1}'",
                    owner.channel.getRole(owner.role).getPartition(),
                    owner.channel.getName());
  if (owner.part == Owner::kOwnPart)
    return text + " (each warpgroup's part)";
  if (owner.part > 0)
    return llvm::formatv("{0} (part {1})", text,
                         (*owner.channel.getParts())[owner.part]);
  return text;
}

//===----------------------------------------------------------------------===//
// Channels and roles
//===----------------------------------------------------------------------===//

LogicalResult ChannelAnalysis::addChannel(ChannelCreateOp op) {
  if (!partitions || op->getBlock() != partitions->getBlock() ||
      !op->isBeforeInBlock(partitions)) {
    InFlightDiagnostic diag = op.emitOpError(
        "expected a channel made before the kernel's attn.warp_specialize");
    diag.attachNote(partitions ? partitions.getLoc() : kernel.getLoc())
        << (partitions ? "which is here" : "this kernel has none");
    return diag;
  }
  ChannelInfo info;
  info.cluster = cluster;
  for (auto role : op.getRoles().getAsRange<RoleAttr>()) {
    if (!partitions.findPartition(
            ChannelCreateOp::getPartitionOf(role.getPartition()))) {
      InFlightDiagnostic diag =
          op.emitOpError("expected a partition for role '")
          << role.getPartition() << "', got none";
      diag.attachNote(partitions.getLoc()) << "the partitions are here";
      return diag;
    }
    info.roles.emplace_back();
    info.roles.back().released.resize(op.getNumParts());
    info.roles.back().count = getChannelSignal(role.getSignal()).arrivals;
  }
  channels.insert({op, std::move(info)});
  return success();
}

FailureOr<Owner> ChannelAnalysis::getOwner(Operation *op, Value channel,
                                           StringRef role) {
  auto create = channel.getDefiningOp<ChannelCreateOp>();
  if (!create)
    return op->emitOpError("expected the result of an attn.channel.create as "
                           "its channel");
  std::optional<unsigned> index = create.findRole(role);
  if (index)
    return Owner{create, *index};
  InFlightDiagnostic diag = op->emitOpError("expected a role of channel '")
                            << create.getName() << "', got '" << role << "'";
  diag.attachNote(create.getLoc()) << "the channel's roles are here";
  return diag;
}

/// The part that an acquire takes.
FailureOr<int> ChannelAnalysis::getPart(ChannelUserOpInterface acquire,
                                        Owner owner) {
  ChannelCreateOp channel = owner.channel;
  std::optional<StringRef> name = acquire.getUsedPart();
  auto fail = [&](const Twine &expected) -> FailureOr<int> {
    InFlightDiagnostic diag = acquire->emitOpError("expected ") << expected;
    diag.attachNote(channel.getLoc()) << "the channel is here";
    return diag;
  };
  if (!channel.getParts()) {
    if (name || acquire.usesOwnParts())
      return fail("no part of channel '" + channel.getName() +
                  "', which has none");
    return 0;
  }
  if (acquire.usesOwnParts()) {
    auto [parent, index] = getPartition(acquire);
    int64_t groups = parent.getWarps()[index] / 4;
    if (groups != channel.getNumParts())
      return fail("as many parts as warpgroups, got " +
                  Twine(channel.getNumParts()) + " and " + Twine(groups));
    return Owner::kOwnPart;
  }
  if (!name)
    return fail("a part of channel '" + channel.getName() + "', got none");
  if (std::optional<unsigned> part = channel.findPart(*name))
    return *part;
  return fail("a part of channel '" + channel.getName() + "', got '" + *name +
              "'");
}

/// For an acquire or a release: its owner, if it stands where the role runs.
FailureOr<Owner> ChannelAnalysis::checkPlace(ChannelUserOpInterface op) {
  FailureOr<Owner> owner = getOwner(op, op.getUsedChannel(), op.getUsedRole());
  if (failed(owner))
    return failure();
  StringRef expected = ChannelCreateOp::getPartitionOf(op.getUsedRole());
  auto [parent, index] = getPartition(op);
  if (!parent)
    return op->emitOpError("expected to stand in partition '")
           << expected << "', got no partition";
  auto name = cast<StringAttr>(parent.getNames()[index]);
  if (name.getValue() != expected)
    return op->emitOpError("expected to stand in partition '")
           << expected << "', got partition " << name;
  return owner;
}

//===----------------------------------------------------------------------===//
// Cursors and tokens
//===----------------------------------------------------------------------===//

static StringRef getKind(Value handle) {
  return isa<CursorType>(handle.getType()) ? "cursor" : "token";
}

LogicalResult ChannelAnalysis::setOwner(Value value, Owner owner,
                                        Operation *op) {
  auto [entry, isNew] = owners.insert({value, owner});
  if (isNew || entry->second == owner)
    return success();
  return op->emitOpError(
             "expected cursors and tokens of one role to meet, got ")
         << describe(entry->second) << " and " << describe(owner);
}

/// What starts and acquires make.
LogicalResult ChannelAnalysis::collectMade() {
  WalkResult walk = kernel.walk([&](ChannelUserOpInterface op) -> WalkResult {
    FailureOr<Owner> owner;
    if (op.getChannelUse() == ChannelUse::Start) {
      owner = getOwner(op, op.getUsedChannel(), op.getUsedRole());
    } else if (op.getChannelUse() == ChannelUse::Acquire) {
      if (failed(owner = checkPlace(op)))
        return failure();
      FailureOr<int> part = getPart(op, *owner);
      if (failed(part))
        return failure();
      owner->part = *part;
    } else {
      return WalkResult::advance();
    }
    if (failed(owner))
      return failure();
    owners.insert({op.getMadeHandle(), *owner});
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// From the ops that make cursors and tokens along control flow.
LogicalResult ChannelAnalysis::propagate() {
  HandleFlow flow = collectHandleFlow(kernel);
  // `owners` grows while it is walked.
  for (size_t next = 0; next < owners.size(); ++next) {
    auto [value, owner] = *(owners.begin() + next);
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      auto user = dyn_cast<ChannelUserOpInterface>(op);
      if (user && user.getChannelUse() == ChannelUse::Advance &&
          failed(setOwner(user.getMadeHandle(), owner, op)))
        return failure();
      if (isa<arith::SelectOp>(op)) {
        if (failed(setOwner(op->getResult(0), owner, op)))
          return failure();
        continue;
      }
      auto targets = flow.find(&use);
      if (targets == flow.end()) {
        if (!user)
          return op->emitOpError("does not say what it does with its ")
                 << getKind(value);
        continue;
      }
      for (Value target : targets->second)
        if (failed(setOwner(target, owner, op)))
          return failure();
    }
  }
  return success();
}

LogicalResult ChannelAnalysis::checkOwner(Operation *op, Value handle,
                                          Owner expected) {
  auto found = owners.find(handle);
  if (found == owners.end())
    return op->emitOpError("expected a ")
           << getKind(handle) << " of " << describe(expected)
           << ", got one from outside the kernel";
  if (found->second == expected)
    return success();
  return op->emitOpError("expected a ")
         << getKind(handle) << " of " << describe(expected) << ", got one of "
         << describe(found->second);
}

/// A role runs in all CTAs of the cluster or in the leader.
LogicalResult ChannelAnalysis::checkLeader(Operation *op, Owner owner) {
  RoleInfo &role = channels.find(owner.channel)->second.roles[owner.role];
  bool isLeader = cluster > 1 && op->getParentOfType<ClusterLeaderOp>();
  if (role.place && role.isLeader != isLeader) {
    InFlightDiagnostic diag = op->emitOpError("expected all acquires and "
                                              "releases of ")
                              << describe(owner)
                              << " in an attn.cluster_leader or none, got one "
                              << (isLeader ? "inside" : "outside");
    diag.attachNote(role.place->getLoc()) << "the other one is here";
    return diag;
  }
  role.place = op;
  role.isLeader = isLeader;
  return success();
}

/// What fills slots goes to roles whose signal counts bytes.
LogicalResult ChannelAnalysis::checkFill(ChannelUserOpInterface op) {
  auto found = owners.find(op.getUsedHandle()->get());
  if (found == owners.end())
    return op->emitOpError(
        "expected a token of a channel of the kernel, got one from outside");
  Owner owner = found->second;
  if (owner.getSignal().countsBytes)
    return countCTAs(op);
  SignalKind signal = owner.channel.getRole(owner.role).getSignal();
  InFlightDiagnostic diag = op->emitOpError("expected the token of a role "
                                            "that signals by tx, got ")
                            << describe(owner) << ", which signals by "
                            << stringifySignalKind(signal);
  diag.attachNote(owner.channel.getLoc()) << "the channel is here";
  return diag;
}

LogicalResult ChannelAnalysis::checkAdvance(ChannelUserOpInterface op) {
  // The role is the cursor's own.
  Value cursor = op.getUsedHandle()->get();
  auto found = owners.find(cursor);
  unsigned role = found == owners.end() ? 0 : found->second.role;
  auto create = op.getUsedChannel().getDefiningOp<ChannelCreateOp>();
  if (!create)
    return op->emitOpError(
        "expected the result of an attn.channel.create as its channel");
  return checkOwner(op, cursor, Owner{create, role});
}

LogicalResult ChannelAnalysis::checkRelease(ChannelUserOpInterface op) {
  FailureOr<Owner> owner = checkPlace(op);
  if (failed(owner))
    return failure();
  // The part is the token's own.
  Value token = op.getUsedHandle()->get();
  if (auto found = owners.find(token); found != owners.end())
    owner->part = found->second.part;
  if (failed(checkOwner(op, token, *owner)) || failed(checkLeader(op, *owner)))
    return failure();
  return countRelease(op);
}

LogicalResult ChannelAnalysis::checkUser(ChannelUserOpInterface op) {
  switch (op.getChannelUse()) {
  case ChannelUse::None:
  case ChannelUse::Start:
  case ChannelUse::Later:
    return success();
  case ChannelUse::Advance:
    return checkAdvance(op);
  case ChannelUse::Acquire: {
    Owner owner = owners.find(op.getMadeHandle())->second;
    if (failed(checkLeader(op, owner)))
      return failure();
    owner.part = 0;
    return checkOwner(op, op.getUsedHandle()->get(), owner);
  }
  case ChannelUse::Release:
    return checkRelease(op);
  case ChannelUse::Fill:
    return checkFill(op);
  }
  llvm_unreachable("covered switch");
}

//===----------------------------------------------------------------------===//
// Counts and bytes
//===----------------------------------------------------------------------===//

/// Every warp that comes to an arrive arrives once, in an elect for those that
/// do not come to it.
LogicalResult ChannelAnalysis::countRelease(ChannelUserOpInterface op) {
  Owner owner = owners.find(op.getUsedHandle()->get())->second;
  RoleInfo &role = channels.find(owner.channel)->second.roles[owner.role];
  bool each = owner.part == Owner::kOwnPart;
  if (each)
    role.released.set();
  else
    role.released.set(owner.part);
  if (owner.getSignal().arrivals != 0) {
    role.release = op;
    return success();
  }
  auto [parent, index] = getPartition(op);
  // A part of each warpgroup is released by that one's warps.
  int64_t warps = each ? 4 : parent.getWarps()[index], count = warps;
  if (auto elect = op->getParentOfType<ElectOp>())
    count = elect.getEachWarpgroup() ? warps / 4 : 1;
  if (role.release && role.count != count) {
    InFlightDiagnostic diag =
        op->emitOpError("expected as many arrivals at each release, got ")
        << count << " here and " << role.count << " elsewhere";
    diag.attachNote(role.release->getLoc()) << "the other release is here";
    return diag;
  }
  role.count = count;
  role.release = op;
  return success();
}

/// All loads of a role go to as many CTAs.
LogicalResult ChannelAnalysis::countCTAs(ChannelUserOpInterface op) {
  std::optional<int64_t> filled = op.getFilledCTAs();
  if (!filled)
    return success();
  int64_t ctas = *filled;
  Owner owner = owners.find(op.getUsedHandle()->get())->second;
  RoleInfo &role = channels.find(owner.channel)->second.roles[owner.role];
  if (role.isLeader)
    return op->emitOpError(
               "expected a load in all CTAs of the cluster, got one "
               "by ")
           << describe(owner) << ", which is the leader's";
  if (role.fill && role.multicast != ctas) {
    InFlightDiagnostic diag = op->emitOpError("expected all loads of ")
                              << describe(owner)
                              << " to go to as many CTAs, got " << ctas
                              << " here and " << role.multicast << " elsewhere";
    diag.attachNote(role.fill->getLoc()) << "the other load is here";
    return diag;
  }
  role.fill = op;
  role.multicast = ctas;
  return success();
}

bool ChannelAnalysis::crossesCTAs() const {
  return llvm::any_of(
      channels, [](const auto &entry) { return entry.second.crossesCTAs(); });
}

/// Multicast loads go to all CTAs of the cluster, and releases come from all.
LogicalResult ChannelAnalysis::checkCluster() {
  for (auto &[channel, info] : channels)
    for (auto [index, role] : llvm::enumerate(info.roles)) {
      if (role.multicast != 1 && role.multicast != cluster) {
        InFlightDiagnostic diag =
            role.fill->emitOpError("expected a cluster of ")
            << role.multicast << " CTAs, got " << cluster;
        diag.attachNote(kernel.getLoc())
            << "the kernel's known_cluster_size says so";
        return diag;
      }
      // Bytes that CTAs copy for themselves cannot count in others.
      if (!role.isLeader && info.getTarget(index) != SignalTarget::Own &&
          Owner{channel, unsigned(index)}.getSignal().countsBytes)
        return ChannelCreateOp(channel).emitOpError(
                   "expected a role that signals by arrive before one ")
               << (info.getTarget(index) == SignalTarget::Leader
                       ? "of the cluster's leader"
                       : "with multicast loads")
               << ", got " << describe({channel, unsigned(index)});
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
    if (!isa<scf::IfOp, ElectOp, ClusterLeaderOp>(group.op)) {
      InFlightDiagnostic diag = group.op->emitOpError(
          "expected loads outside of loops, since their bytes are announced "
          "when the slot is acquired");
      diag.attachNote(token.getLoc()) << "the slot is acquired here";
      return diag;
    }
    std::optional<int64_t> bytes;
    for (Region &region : group.op->getRegions()) {
      FailureOr<int64_t> own = 0;
      if (!region.empty())
        own = sumBytes(token, &region.front());
      if (failed(own))
        return failure();
      if (bytes && *bytes != *own) {
        InFlightDiagnostic diag =
            group.op->emitOpError("expected loads of as many bytes on both "
                                  "paths, got ")
            << *bytes << " and " << *own;
        diag.attachNote(token.getLoc())
            << "the bytes are announced here, where the slot is acquired";
        return diag;
      }
      bytes = own;
    }
    total += *bytes;
  }
  return total;
}

LogicalResult ChannelAnalysis::countBytes(ChannelUserOpInterface acquire) {
  Value token = acquire.getMadeHandle();
  Owner owner = owners.find(token)->second;
  RoleInfo &role = channels.find(owner.channel)->second.roles[owner.role];
  if (!owner.getSignal().countsBytes)
    return success();
  if (!acquire->getParentOfType<ElectOp>())
    return acquire->emitOpError("expected to stand in an attn.elect, since one "
                                "thread announces the bytes of a tx role");
  FailureOr<int64_t> bytes = sumBytes(token, acquire->getBlock());
  if (failed(bytes))
    return failure();
  role.bytes.push_back(*bytes);
  announced[acquire] = *bytes;
  return success();
}

/// Nothing is known of an op that takes a channel and does not answer.
static LogicalResult checkChannelUsers(
    const llvm::MapVector<ChannelCreateOp, ChannelInfo> &channels) {
  for (const auto &[channel, info] : channels)
    for (Operation *user : channel->getUsers())
      if (!isa<ChannelUserOpInterface>(user))
        return user->emitOpError("does not say what it does with its channel");
  return success();
}

LogicalResult ChannelAnalysis::run() {
  kernel.walk([&](WarpSpecializeOp op) { partitions = op; });
  if (std::optional<ArrayRef<int32_t>> size = kernel.getKnownClusterSize())
    cluster = llvm::product_of(*size);
  for (auto op :
       llvm::make_early_inc_range(kernel.getBody().getOps<ChannelCreateOp>()))
    if (failed(addChannel(op)))
      return failure();
  WalkResult nested = kernel.walk([&](ChannelCreateOp op) {
    return channels.contains(op) ? WalkResult::advance()
                                 : WalkResult(addChannel(op));
  });
  if (nested.wasInterrupted() || failed(checkChannelUsers(channels)) ||
      failed(collectMade()) || failed(propagate()))
    return failure();
  WalkResult walk = kernel.walk(
      [&](ChannelUserOpInterface op) { return WalkResult(checkUser(op)); });
  if (walk.wasInterrupted())
    return failure();
  walk = kernel.walk([&](ChannelUserOpInterface op) -> WalkResult {
    if (op.getChannelUse() != ChannelUse::Acquire)
      return WalkResult::advance();
    return countBytes(op);
  });
  return failure(walk.wasInterrupted() || failed(checkCluster()));
}

LogicalResult ChannelAnalysis::checkReleases() {
  for (auto &[channel, info] : channels)
    for (auto [index, role] : llvm::enumerate(info.roles))
      if (!role.release) {
        InFlightDiagnostic diag = channel.emitOpError("expected a release by ")
                                  << describe({channel, unsigned(index)})
                                  << ", got none";
        diag.attachNote(partitions.getLoc())
            << "so the role after it would wait forever";
        return diag;
      } else if (int part = role.released.find_first_unset(); part >= 0) {
        InFlightDiagnostic diag =
            channel.emitOpError("expected a release of each part by ")
            << describe({channel, unsigned(index)}) << ", got none of "
            << (*ChannelCreateOp(channel).getParts())[part];
        diag.attachNote(partitions.getLoc())
            << "so the role after it would wait forever";
        return diag;
      }
  return success();
}

std::optional<int64_t> ChannelAnalysis::getBytes(Operation *acquire) const {
  auto found = announced.find(acquire);
  if (found == announced.end())
    return std::nullopt;
  return found->second;
}
