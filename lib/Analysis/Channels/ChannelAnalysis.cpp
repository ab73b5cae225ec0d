//===- ChannelAnalysis.cpp - What a kernel's channels need ----------------===//

#include "attn/Analysis/Channels/ChannelAnalysis.h"

using namespace mlir;
using namespace mlir::attn;

std::string attn::describe(Owner owner) {
  std::string text = llvm::formatv("role '{0}' of channel '{1}'",
                                   owner.channel.getRole(owner.role).getName(),
                                   owner.channel.getName());
  if (owner.part == Owner::kOwnPart)
    return text + " (each warpgroup's part)";
  if (!owner.parts.empty())
    return llvm::formatv("{0} (part \"{1}\")", text,
                         owner.parts[owner.part].getValue());
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
    RoleAttr before = op.getRoleBefore(info.roles.size());
    // Bytes are announced where the slot is acquired.
    if (getChannelSignal(role.getSignal()).countsBytes &&
        role.getParts() != before.getParts())
      return op.emitOpError("expected role '")
             << role.getName()
             << "', which signals by tx, to hand slots on in the parts of role "
                "'"
             << before.getName() << "' before it";
    info.roles.emplace_back();
    for (StringAttr name : role.getPartitions()) {
      std::optional<unsigned> partition = partitions.findPartition(name);
      if (!partition) {
        InFlightDiagnostic diag = op.emitOpError("expected partition ")
                                  << name << " of role '" << role.getName()
                                  << "', got none";
        diag.attachNote(partitions.getLoc()) << "the partitions are here";
        return diag;
      }
      Participant participant;
      participant.partition = *partition;
      participant.released.resize(role.getNumParts());
      const ChannelSignal &signal = getChannelSignal(role.getSignal());
      participant.count = signal.arrivals;
      info.roles.back().countsBytes = signal.countsBytes;
      info.roles.back().participants.push_back(participant);
    }
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
  RoleAttr before = channel.getRoleBefore(owner.role);
  if (before.getParts().empty()) {
    if (name || acquire.usesOwnParts())
      return fail("no part of channel '" + channel.getName() +
                  "', whose slots role '" + before.getName() +
                  "' hands on as a whole");
    return 0;
  }
  if (acquire.usesOwnParts()) {
    auto [parent, index] = getPartition(acquire);
    int64_t groups = parent.getWarps()[index] / kWarpgroupWarps;
    if (groups != before.getNumParts())
      return fail("as many parts as warpgroups, got " +
                  Twine(before.getNumParts()) + " and " + Twine(groups));
    return Owner::kOwnPart;
  }
  if (!name)
    return fail("a part of channel '" + channel.getName() + "', got none");
  for (auto [index, part] : llvm::enumerate(before.getParts()))
    if (part.getValue() == *name)
      return index;
  return fail("a part of channel '" + channel.getName() + "', got '" + *name +
              "'");
}

/// For an acquire or a release: its owner, if it stands where the role runs.
FailureOr<Owner> ChannelAnalysis::checkPlace(ChannelUserOpInterface op) {
  FailureOr<Owner> owner = getOwner(op, op.getUsedChannel(), op.getUsedRole());
  if (failed(owner))
    return failure();
  RoleAttr role = owner->channel.getRole(owner->role);
  auto [parent, index] = getPartition(op);
  if (parent &&
      role.hasPartition(cast<StringAttr>(parent.getNames()[index]).getValue()))
    return owner;
  InFlightDiagnostic diag = op->emitOpError("expected to stand in partition ");
  llvm::interleave(role.getPartitions(), diag, " or ");
  diag << " of role '" << role.getName() << "', got ";
  if (parent)
    diag << "partition " << parent.getNames()[index];
  else
    diag << "no partition";
  return diag;
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
      owner->parts = owner->channel.getRoleBefore(owner->role).getParts();
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

/// What splits and joins make.
LogicalResult ChannelAnalysis::setParts(ChannelUserOpInterface op,
                                        Owner owner) {
  owner.parts = {};
  owner.part = 0;
  if (op.getChannelUse() == ChannelUse::Join)
    return setOwner(op.getMadeHandle(), owner, op);
  owner.parts = owner.channel.getRole(owner.role).getParts();
  for (auto [index, token] : llvm::enumerate(op->getResults())) {
    owner.part = index;
    if (failed(setOwner(token, owner, op)))
      return failure();
  }
  return success();
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
      if (user &&
          (user.getChannelUse() == ChannelUse::Split ||
           user.getChannelUse() == ChannelUse::Join) &&
          failed(setParts(user, owner)))
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
  auto leader = op->getParentOfType<ClusterLeaderOp>();
  uint32_t bits = 0;
  if (leader && cluster > 1) {
    bits = leader.getRankBits().value_or(~uint32_t(0));
    // Bits that no rank of the cluster has say nothing.
    uint32_t ranks = cluster - 1;
    if (llvm::isPowerOf2_64(cluster))
      bits = (bits & ranks) == ranks ? ~uint32_t(0) : bits & ranks;
  }
  if (role.place && role.leaderBits != bits) {
    InFlightDiagnostic diag =
        op->emitOpError("expected all acquires and "
                        "releases of ")
        << describe(owner) << " in an attn.cluster_leader or none, got one "
        << (!bits             ? "outside"
            : role.isLeader() ? "inside of one of other bits"
                              : "inside");
    diag.attachNote(role.place->getLoc()) << "the other one is here";
    return diag;
  }
  role.place = op;
  role.leaderBits = bits;
  return success();
}

/// What fills slots goes to roles whose signal counts bytes.
LogicalResult ChannelAnalysis::checkFill(ChannelUserOpInterface op) {
  auto found = owners.find(op.getUsedHandle()->get());
  if (found == owners.end())
    return op->emitOpError(
        "expected a token of a channel of the kernel, got one from outside");
  Owner owner = found->second;
  if (owner.getSignal().countsBytes) {
    if (!op.canFillAtLeader())
      channels.find(owner.channel)->second.roles[owner.role].ownFill = op;
    return countCTAs(op);
  }
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
  RoleAttr role = owner->channel.getRole(owner->role);
  owner->parts = role.getParts();
  if (auto found = owners.find(token); found != owners.end()) {
    owner->part = found->second.part;
    if (found->second.parts != owner->parts) {
      InFlightDiagnostic diag = op->emitOpError("expected a token of ");
      if (owner->parts.empty())
        diag << "a whole slot, as role '" << role.getName()
             << "' hands it on, got one of a part";
      else
        diag << "a part in which role '" << role.getName()
             << "' hands a slot on, got one of "
             << (found->second.parts.empty() ? "a whole slot" : "another part");
      diag.attachNote(owner->channel.getLoc())
          << "the channel's roles are here";
      return diag;
    }
  }
  if (failed(checkOwner(op, token, *owner)) || failed(checkLeader(op, *owner)))
    return failure();
  if (owner->getSignal().awaitsProducts && failed(checkCommit(op)))
    return failure();
  if (auto elect = op->getParentOfType<ElectOp>();
      elect && owner->getSignal().awaitsCopies) {
    InFlightDiagnostic diag = op->emitOpError("expected all threads of ")
                              << describe(*owner)
                              << ", each of which signals for its own copies, "
                              << "got one";
    diag.attachNote(elect.getLoc()) << "it stands in this attn.elect";
    return diag;
  }
  return countRelease(op);
}

LogicalResult ChannelAnalysis::checkSplit(ChannelUserOpInterface op) {
  FailureOr<Owner> owner = checkPlace(op);
  if (failed(owner))
    return failure();
  RoleAttr role = owner->channel.getRole(owner->role);
  if (op->getNumResults() != role.getParts().size())
    return op->emitOpError("expected a result for each of ")
           << role.getParts().size() << " parts of role '" << role.getName()
           << "', got " << op->getNumResults();
  return checkOwner(op, op.getUsedHandle()->get(), *owner);
}

/// All parts in which the slot was acquired, each once.
LogicalResult ChannelAnalysis::checkJoin(ChannelUserOpInterface op) {
  FailureOr<Owner> owner = checkPlace(op);
  if (failed(owner))
    return failure();
  owner->parts = owner->channel.getRoleBefore(owner->role).getParts();
  llvm::SmallBitVector joined(owner->parts.size());
  unsigned count = 0;
  for (Value token : op->getOperands()) {
    if (!isHandle(token.getType()))
      continue;
    ++count;
    auto found = owners.find(token);
    owner->part = found == owners.end() ? 0 : found->second.part;
    if (failed(checkOwner(op, token, *owner)))
      return failure();
    if (owner->part != Owner::kOwnPart && !owner->parts.empty())
      joined.set(owner->part);
  }
  if (count == owner->parts.size() && joined.all())
    return success();
  return op->emitOpError("expected each of ")
         << owner->parts.size() << " parts once, got " << joined.count()
         << " of them in " << count << " tokens";
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
    channels.find(owner.channel)->second.roles[owner.role].isAcquired = true;
    owner.parts = {};
    owner.part = 0;
    return checkOwner(op, op.getUsedHandle()->get(), owner);
  }
  case ChannelUse::Split:
    return checkSplit(op);
  case ChannelUse::Join:
    return checkJoin(op);
  case ChannelUse::Release:
    return checkRelease(op);
  case ChannelUse::Fill:
    return checkFill(op);
  }
  llvm_unreachable("covered switch");
}

//===----------------------------------------------------------------------===//
// The whole kernel
//===----------------------------------------------------------------------===//

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
    cluster = countLaunched(*size);
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

std::optional<int64_t> ChannelAnalysis::getBytes(Operation *acquire) const {
  auto found = announced.find(acquire);
  if (found == announced.end())
    return std::nullopt;
  return found->second;
}
