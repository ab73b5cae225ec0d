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
    if (role.getSignal() == SignalKind::Tx)
      info.roles.back().count = 1;
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
FailureOr<int> ChannelAnalysis::getPart(ChannelAcquireOp op, Owner owner) {
  ChannelCreateOp channel = owner.channel;
  auto fail = [&](const Twine &expected) -> FailureOr<int> {
    InFlightDiagnostic diag = op.emitOpError("expected ") << expected;
    diag.attachNote(channel.getLoc()) << "the channel is here";
    return diag;
  };
  if (!channel.getParts()) {
    if (op.getPart() || op.getEachWarpgroup())
      return fail("no part of channel '" + channel.getName() +
                  "', which has none");
    return 0;
  }
  if (op.getEachWarpgroup()) {
    auto [parent, index] = getPartition(op);
    int64_t groups = parent.getWarps()[index] / 4;
    if (groups != channel.getNumParts())
      return fail("as many parts as warpgroups, got " +
                  Twine(channel.getNumParts()) + " and " + Twine(groups));
    return Owner::kOwnPart;
  }
  std::optional<StringRef> name = op.getPart();
  if (!name)
    return fail("a part of channel '" + channel.getName() + "', got none");
  if (std::optional<unsigned> part = channel.findPart(*name))
    return *part;
  return fail("a part of channel '" + channel.getName() + "', got '" + *name +
              "'");
}

/// For an acquire or a release: its owner, if it stands where the role runs.
FailureOr<Owner> ChannelAnalysis::checkPlace(Operation *op, Value channel,
                                             StringRef role) {
  FailureOr<Owner> owner = getOwner(op, channel, role);
  if (failed(owner))
    return failure();
  StringRef expected = ChannelCreateOp::getPartitionOf(role);
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

LogicalResult ChannelAnalysis::setOwner(Value value, Owner owner,
                                        Operation *op) {
  auto [entry, isNew] = owners.insert({value, owner});
  if (isNew || entry->second == owner)
    return success();
  return op->emitOpError(
             "expected cursors and tokens of one role to meet, got ")
         << describe(entry->second) << " and " << describe(owner);
}

/// From the ops that make cursors and tokens along control flow.
LogicalResult ChannelAnalysis::propagate() {
  WalkResult walk = kernel.walk([&](Operation *op) -> WalkResult {
    if (auto start = dyn_cast<CursorStartOp>(op)) {
      FailureOr<Owner> owner =
          getOwner(op, start.getChannel(), start.getRole());
      if (failed(owner))
        return failure();
      owners.insert({start.getResult(), *owner});
    }
    if (auto acquire = dyn_cast<ChannelAcquireOp>(op)) {
      FailureOr<Owner> owner =
          checkPlace(op, acquire.getChannel(), acquire.getRole());
      if (failed(owner))
        return failure();
      FailureOr<int> part = getPart(acquire, *owner);
      if (failed(part))
        return failure();
      owner->part = *part;
      owners.insert({acquire.getToken(), *owner});
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  HandleFlow flow = collectHandleFlow(kernel);
  // `owners` grows while it is walked.
  for (size_t next = 0; next < owners.size(); ++next) {
    auto [value, owner] = *(owners.begin() + next);
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      if (isa<CursorAdvanceOp, arith::SelectOp>(op) &&
          failed(setOwner(op->getResult(0), owner, op)))
        return failure();
      for (Value target : flow.lookup(&use))
        if (failed(setOwner(target, owner, op)))
          return failure();
    }
  }
  return success();
}

LogicalResult ChannelAnalysis::checkOwner(Operation *op, Value handle,
                                          Owner expected) {
  auto found = owners.find(handle);
  StringRef kind = isa<CursorType>(handle.getType()) ? "cursor" : "token";
  if (found == owners.end())
    return op->emitOpError("expected a ")
           << kind << " of " << describe(expected)
           << ", got one from outside the kernel";
  if (found->second == expected)
    return success();
  return op->emitOpError("expected a ")
         << kind << " of " << describe(expected) << ", got one of "
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

/// What fills slots and signals by tx.
LogicalResult ChannelAnalysis::checkFill(Operation *op, Value token) {
  auto found = owners.find(token);
  if (found == owners.end())
    return op->emitOpError(
        "expected a token of a channel of the kernel, got one from outside");
  Owner owner = found->second;
  SignalKind signal = owner.channel.getRole(owner.role).getSignal();
  if (signal == SignalKind::Tx)
    return success();
  InFlightDiagnostic diag = op->emitOpError("expected the token of a role "
                                            "that signals by tx, got ")
                            << describe(owner) << ", which signals by "
                            << stringifySignalKind(signal);
  diag.attachNote(owner.channel.getLoc()) << "the channel is here";
  return diag;
}

LogicalResult ChannelAnalysis::checkCursors() {
  WalkResult walk = kernel.walk([&](Operation *op) -> WalkResult {
    if (auto acquire = dyn_cast<ChannelAcquireOp>(op)) {
      Owner owner = owners.find(acquire.getToken())->second;
      if (failed(checkLeader(op, owner)))
        return failure();
      owner.part = 0;
      return checkOwner(op, acquire.getCursor(), owner);
    }
    if (auto advance = dyn_cast<CursorAdvanceOp>(op)) {
      // The role is the cursor's own.
      auto found = owners.find(advance.getCursor());
      unsigned role = found == owners.end() ? 0 : found->second.role;
      auto create = advance.getChannel().getDefiningOp<ChannelCreateOp>();
      if (!create)
        return WalkResult(op->emitOpError(
            "expected the result of an attn.channel.create as its channel"));
      return checkOwner(op, advance.getCursor(), Owner{create, role});
    }
    if (auto release = dyn_cast<ChannelReleaseOp>(op)) {
      FailureOr<Owner> owner =
          checkPlace(op, release.getChannel(), release.getRole());
      if (failed(owner))
        return failure();
      // The part is the token's own.
      if (auto found = owners.find(release.getToken()); found != owners.end())
        owner->part = found->second.part;
      if (failed(checkOwner(op, release.getToken(), *owner)) ||
          failed(checkLeader(op, *owner)))
        return failure();
      return countRelease(release);
    }
    if (auto send = dyn_cast<ScalarSendOp>(op); send && send.getToken())
      return checkFill(op, send.getToken());
    auto load = dyn_cast<TmaLoadOp>(op);
    if (!load || !load.getToken())
      return WalkResult::advance();
    if (failed(checkFill(op, load.getToken())))
      return failure();
    return countCTAs(load);
  });
  return failure(walk.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Counts and bytes
//===----------------------------------------------------------------------===//

/// Every warp that comes to an arrive arrives once, in an elect for those that
/// do not come to it.
LogicalResult ChannelAnalysis::countRelease(ChannelReleaseOp op) {
  Owner owner = owners.find(op.getToken())->second;
  RoleInfo &role = channels.find(owner.channel)->second.roles[owner.role];
  bool each = owner.part == Owner::kOwnPart;
  if (each)
    role.released.set();
  else
    role.released.set(owner.part);
  if (owner.channel.getRole(owner.role).getSignal() == SignalKind::Tx) {
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
        op.emitOpError("expected as many arrivals at each release, got ")
        << count << " here and " << role.count << " elsewhere";
    diag.attachNote(role.release.getLoc()) << "the other release is here";
    return diag;
  }
  role.count = count;
  role.release = op;
  return success();
}

/// All loads of a role go to as many CTAs.
LogicalResult ChannelAnalysis::countCTAs(TmaLoadOp op) {
  Owner owner = owners.find(op.getToken())->second;
  RoleInfo &role = channels.find(owner.channel)->second.roles[owner.role];
  if (role.isLeader)
    return op.emitOpError("expected a load in all CTAs of the cluster, got one "
                          "by ")
           << describe(owner) << ", which is the leader's";
  int64_t ctas = op.getMulticast().value_or(1);
  if (role.load && role.multicast != ctas) {
    InFlightDiagnostic diag = op.emitOpError("expected all loads of ")
                              << describe(owner)
                              << " to go to as many CTAs, got " << ctas
                              << " here and " << role.multicast << " elsewhere";
    diag.attachNote(role.load.getLoc()) << "the other load is here";
    return diag;
  }
  role.load = op;
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
            TmaLoadOp(role.load).emitOpError("expected a cluster of ")
            << role.multicast << " CTAs, got " << cluster;
        diag.attachNote(kernel.getLoc())
            << "the kernel's known_cluster_size says so";
        return diag;
      }
      // Bytes that CTAs copy for themselves cannot count in others.
      if (!role.isLeader && info.getTarget(index) != SignalTarget::Own &&
          ChannelCreateOp(channel).getRole(index).getSignal() == SignalKind::Tx)
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
      if (auto load = dyn_cast<TmaLoadOp>(group.op)) {
        BufferType type = load.getDest().getType();
        total += ShapedType::getNumElements(type.getShape()) *
                 type.getElementType().getIntOrFloatBitWidth() / 8;
      } else if (isa<ScalarSendOp>(group.op)) {
        total += 4;
      } else if (!isa<ChannelReleaseOp>(group.op)) {
        return group.op->emitOpError("expected the token of a tx role to be "
                                     "used by loads and its release only");
      }
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

LogicalResult ChannelAnalysis::countBytes(ChannelAcquireOp op) {
  Owner owner = owners.find(op.getToken())->second;
  RoleInfo &role = channels.find(owner.channel)->second.roles[owner.role];
  if (owner.channel.getRole(owner.role).getSignal() != SignalKind::Tx)
    return success();
  if (!op->getParentOfType<ElectOp>())
    return op.emitOpError("expected to stand in an attn.elect, since one "
                          "thread announces the bytes of a tx role");
  FailureOr<int64_t> bytes = sumBytes(op.getToken(), op->getBlock());
  if (failed(bytes))
    return failure();
  role.bytes.push_back(*bytes);
  announced[op] = *bytes;
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
  if (nested.wasInterrupted() || failed(propagate()) || failed(checkCursors()))
    return failure();
  WalkResult walk = kernel.walk(
      [&](ChannelAcquireOp op) { return WalkResult(countBytes(op)); });
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

std::optional<int64_t> ChannelAnalysis::getBytes(ChannelAcquireOp op) const {
  auto found = announced.find(op);
  if (found == announced.end())
    return std::nullopt;
  return found->second;
}
