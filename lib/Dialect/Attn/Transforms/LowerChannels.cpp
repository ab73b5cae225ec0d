//===- LowerChannels.cpp - Channels become mbarriers ----------------------===//
//
// A channel of depth d with n roles becomes n arrays of d mbarriers: array r is
// signalled by the releases of role r and awaited by the acquires of the role
// after it. A cursor becomes an i32, the slot in bits 0 to 15 and the parity of
// the phase that the role waits for in bit 16. Role 0 waits first for the phase
// before phase 0, which an initialised mbarrier counts as complete.
//
// First everything is checked and counted, then everything is rewritten.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/HandleFlow.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNLOWERCHANNELSPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

constexpr int64_t kParityShift = 16;
constexpr int64_t kParityBit = 1 << kParityShift;
constexpr int64_t kSlotMask = kParityBit - 1;

/// One role of a channel.
struct RoleInfo {
  /// Arrivals that complete a phase; 0 until a release says.
  int64_t count = 0;
  /// A release from which `count` is derived.
  ChannelReleaseOp release;
  /// Bytes of a phase in the order of the text, one number for each acquire.
  SmallVector<int64_t> bytes;
  Value barriers;
};

struct ChannelInfo {
  SmallVector<RoleInfo, 2> roles;
};

/// A role's place in a channel: what a cursor or a token belongs to.
struct Owner {
  ChannelCreateOp channel;
  unsigned role = 0;

  bool operator==(const Owner &other) const {
    return channel == other.channel && role == other.role;
  }
  bool operator!=(const Owner &other) const { return !(*this == other); }
};

/// The channels of one kernel.
class ChannelLowering {
public:
  ChannelLowering(gpu::GPUFuncOp kernel) : kernel(kernel) {}

  /// Checks the kernel and counts arrivals and bytes.
  LogicalResult analyze();
  /// Replaces channels by mbarriers; returns the number of mbarriers.
  int64_t rewrite();
  void report();
  size_t getNumChannels() const { return channels.size(); }

private:
  LogicalResult addChannel(ChannelCreateOp op);
  FailureOr<Owner> getOwner(Operation *op, Value channel, StringRef role);
  FailureOr<Owner> checkPlace(Operation *op, Value channel, StringRef role);
  LogicalResult setOwner(Value value, Owner owner, Operation *op);
  LogicalResult propagate();
  LogicalResult checkOwner(Operation *op, Value handle, Owner expected);
  LogicalResult checkCursors();
  LogicalResult countRelease(ChannelReleaseOp op);
  LogicalResult countBytes(ChannelAcquireOp op);
  FailureOr<int64_t> sumBytes(Value token, Block *block);

  void initialize();
  void rewriteOp(Operation *op);
  Value makeIndex(ImplicitLocOpBuilder &b, Value position, Owner owner);

  gpu::GPUFuncOp kernel;
  WarpSpecializeOp partitions;
  llvm::MapVector<ChannelCreateOp, ChannelInfo> channels;
  /// For cursors and tokens.
  llvm::MapVector<Value, Owner> owners;
  DenseMap<ChannelAcquireOp, int64_t> announced;
};

struct AttnLowerChannelsPass
    : attn::impl::AttnLowerChannelsPassBase<AttnLowerChannelsPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
      ChannelLowering lowering(kernel);
      if (failed(lowering.analyze()))
        return signalPassFailure();
      lowering.report();
      numChannels += lowering.getNumChannels();
      numBarriers += lowering.rewrite();
    }
  }
};

} // namespace

static std::string describe(Owner owner) {
  return llvm::formatv("role '{0}' of channel '{1}'",
                       owner.channel.getRole(owner.role).getPartition(),
                       owner.channel.getName());
}

//===----------------------------------------------------------------------===//
// Channels and roles
//===----------------------------------------------------------------------===//

LogicalResult ChannelLowering::addChannel(ChannelCreateOp op) {
  if (!partitions || op->getBlock() != partitions->getBlock() ||
      !op->isBeforeInBlock(partitions)) {
    InFlightDiagnostic diag = op.emitOpError(
        "expected a channel made before the kernel's attn.warp_specialize");
    diag.attachNote(partitions ? partitions.getLoc() : kernel.getLoc())
        << (partitions ? "which is here" : "this kernel has none");
    return diag;
  }
  ChannelInfo info;
  for (auto role : op.getRoles().getAsRange<RoleAttr>()) {
    if (!partitions.findPartition(role.getPartition())) {
      InFlightDiagnostic diag =
          op.emitOpError("expected a partition for role '")
          << role.getPartition() << "', got none";
      diag.attachNote(partitions.getLoc()) << "the partitions are here";
      return diag;
    }
    info.roles.emplace_back();
    if (role.getSignal() == SignalKind::Tx)
      info.roles.back().count = 1;
  }
  channels.insert({op, std::move(info)});
  return success();
}

FailureOr<Owner> ChannelLowering::getOwner(Operation *op, Value channel,
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

/// For an acquire or a release: its owner, if it stands where the role runs.
FailureOr<Owner> ChannelLowering::checkPlace(Operation *op, Value channel,
                                             StringRef role) {
  FailureOr<Owner> owner = getOwner(op, channel, role);
  if (failed(owner))
    return failure();
  auto [parent, index] = getPartition(op);
  if (!parent)
    return op->emitOpError("expected to stand in partition '")
           << role << "', got no partition";
  auto name = cast<StringAttr>(parent.getNames()[index]);
  if (name.getValue() != role)
    return op->emitOpError("expected to stand in partition '")
           << role << "', got partition " << name;
  return owner;
}

//===----------------------------------------------------------------------===//
// Cursors and tokens
//===----------------------------------------------------------------------===//

LogicalResult ChannelLowering::setOwner(Value value, Owner owner,
                                        Operation *op) {
  auto [entry, isNew] = owners.insert({value, owner});
  if (isNew || entry->second == owner)
    return success();
  return op->emitOpError(
             "expected cursors and tokens of one role to meet, got ")
         << describe(entry->second) << " and " << describe(owner);
}

/// From the ops that make cursors and tokens along control flow.
LogicalResult ChannelLowering::propagate() {
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

LogicalResult ChannelLowering::checkOwner(Operation *op, Value handle,
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

LogicalResult ChannelLowering::checkCursors() {
  WalkResult walk = kernel.walk([&](Operation *op) -> WalkResult {
    if (auto acquire = dyn_cast<ChannelAcquireOp>(op))
      return checkOwner(op, acquire.getCursor(),
                        owners.find(acquire.getToken())->second);
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
      if (failed(owner) || failed(checkOwner(op, release.getToken(), *owner)))
        return failure();
      return countRelease(release);
    }
    auto load = dyn_cast<TmaLoadOp>(op);
    if (!load || !load.getToken())
      return WalkResult::advance();
    auto found = owners.find(load.getToken());
    if (found == owners.end())
      return WalkResult(op->emitOpError(
          "expected a token of a channel of the kernel, got one from outside"));
    Owner owner = found->second;
    SignalKind signal = owner.channel.getRole(owner.role).getSignal();
    if (signal == SignalKind::Tx)
      return WalkResult::advance();
    InFlightDiagnostic diag = op->emitOpError("expected the token of a role "
                                              "that signals by tx, got ")
                              << describe(owner) << ", which signals by "
                              << stringifySignalKind(signal);
    diag.attachNote(owner.channel.getLoc()) << "the channel is here";
    return WalkResult(diag);
  });
  return failure(walk.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Counts and bytes
//===----------------------------------------------------------------------===//

/// Every warp that comes to an arrive arrives once.
LogicalResult ChannelLowering::countRelease(ChannelReleaseOp op) {
  Owner owner = owners.find(op.getToken())->second;
  RoleInfo &role = channels.find(owner.channel)->second.roles[owner.role];
  if (owner.channel.getRole(owner.role).getSignal() == SignalKind::Tx) {
    role.release = op;
    return success();
  }
  auto [parent, index] = getPartition(op);
  int64_t count = op->getParentOfType<ElectOp>() ? 1 : parent.getWarps()[index];
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

/// Bytes of the loads with `token` in and below `block`.
FailureOr<int64_t> ChannelLowering::sumBytes(Value token, Block *block) {
  int64_t total = 0;
  for (UseGroup &group : groupUses(token, block)) {
    if (group.nested.empty()) {
      if (auto load = dyn_cast<TmaLoadOp>(group.op)) {
        BufferType type = load.getDest().getType();
        total += ShapedType::getNumElements(type.getShape()) *
                 type.getElementType().getIntOrFloatBitWidth() / 8;
      } else if (!isa<ChannelReleaseOp>(group.op)) {
        return group.op->emitOpError("expected the token of a tx role to be "
                                     "used by loads and its release only");
      }
      continue;
    }
    if (!isa<scf::IfOp, ElectOp>(group.op)) {
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

LogicalResult ChannelLowering::countBytes(ChannelAcquireOp op) {
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

LogicalResult ChannelLowering::analyze() {
  kernel.walk([&](WarpSpecializeOp op) { partitions = op; });
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
  if (walk.wasInterrupted())
    return failure();
  for (auto &[channel, info] : channels)
    for (auto [index, role] : llvm::enumerate(info.roles))
      if (!role.release) {
        InFlightDiagnostic diag = channel.emitOpError("expected a release by ")
                                  << describe({channel, unsigned(index)})
                                  << ", got none";
        diag.attachNote(partitions.getLoc())
            << "so the role after it would wait forever";
        return diag;
      }
  return success();
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

/// The mbarriers of all channels, initialised by one thread.
void ChannelLowering::initialize() {
  for (auto &[channel, info] : channels) {
    OpBuilder b(channel);
    auto type =
        MBarriersType::get(b.getContext(), channel.getType().getDepth());
    for (auto [index, role] : llvm::enumerate(info.roles)) {
      std::string name =
          (channel.getName() + "." + channel.getRole(index).getPartition())
              .str();
      role.barriers = MBarrierAllocOp::create(
          b, channel.getLoc(), type, b.getStringAttr(name), IntegerAttr());
    }
  }
  ImplicitLocOpBuilder b(partitions.getLoc(), partitions);
  auto elect = ElectOp::create(b);
  gpu::BarrierOp::create(b);
  b.createBlock(&elect.getBody());
  for (auto &[channel, info] : channels)
    for (RoleInfo &role : info.roles)
      MBarrierInitOp::create(b, channel.getLoc(), role.barriers, role.count);
  MBarrierFenceInitOp::create(b);
  YieldOp::create(b, ValueRange());
}

/// The slot of a cursor or a token.
Value ChannelLowering::makeIndex(ImplicitLocOpBuilder &b, Value position,
                                 Owner owner) {
  if (owner.channel.getType().getDepth() == 1)
    return arith::ConstantIntOp::create(b, 0, 32);
  Value mask = arith::ConstantIntOp::create(b, kSlotMask, 32);
  // The position may still have the type of a handle.
  return arith::AndIOp::create(b, b.getI32Type(), position, mask);
}

void ChannelLowering::rewriteOp(Operation *op) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  auto ownerOf = [&](Value handle) { return owners.find(handle)->second; };
  auto roleOf = [&](Owner owner) -> RoleInfo & {
    return channels.find(owner.channel)->second.roles[owner.role];
  };
  if (auto start = dyn_cast<CursorStartOp>(op)) {
    int64_t first = ownerOf(start.getResult()).role == 0 ? kParityBit : 0;
    Value position = arith::ConstantIntOp::create(b, first, 32);
    start.replaceAllUsesWith(position);
  } else if (auto advance = dyn_cast<CursorAdvanceOp>(op)) {
    int64_t depth = advance.getChannel().getType().getDepth();
    auto constant = [&](int64_t value) {
      return arith::ConstantIntOp::create(b, value, 32);
    };
    // Past the last slot the slot's bits are those of the depth.
    Value next =
        arith::AddIOp::create(b, advance.getCursorMutable().get(), constant(1));
    Value slot = arith::AndIOp::create(b, next, constant(kSlotMask));
    Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, slot,
                                         constant(depth));
    Value wrapped =
        arith::XOrIOp::create(b, next, constant(kParityBit | depth));
    Value position = arith::SelectOp::create(b, isLast, wrapped, next);
    advance.replaceAllUsesWith(position);
  } else if (auto acquire = dyn_cast<ChannelAcquireOp>(op)) {
    Owner owner = ownerOf(acquire.getToken());
    size_t count = owner.channel.getRoles().size();
    Owner before{owner.channel, unsigned((owner.role + count - 1) % count)};
    Value cursor = acquire.getCursorMutable().get();
    Value index = makeIndex(b, cursor, owner);
    Value shift = arith::ConstantIntOp::create(b, kParityShift, 32);
    Value parity = arith::ShRUIOp::create(b, cursor, shift);
    MBarrierWaitOp::create(b, roleOf(before).barriers, index, parity);
    if (auto bytes = announced.find(acquire); bytes != announced.end())
      MBarrierExpectTxOp::create(b, roleOf(owner).barriers, index,
                                 bytes->second);
    acquire.getIndex().replaceAllUsesWith(index);
    acquire.getToken().replaceAllUsesWith(cursor);
  } else if (auto release = dyn_cast<ChannelReleaseOp>(op)) {
    FailureOr<Owner> owner =
        getOwner(op, release.getChannel(), release.getRole());
    if (owner->channel.getRole(owner->role).getSignal() == SignalKind::Arrive)
      MBarrierArriveOp::create(
          b, roleOf(*owner).barriers,
          makeIndex(b, release.getTokenMutable().get(), *owner));
  }
  op->erase();
}

int64_t ChannelLowering::rewrite() {
  if (channels.empty())
    return 0;
  initialize();
  // Loads first: they are found by their tokens.
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) {
    auto load = dyn_cast<TmaLoadOp>(op);
    if (load && load.getToken()) {
      ImplicitLocOpBuilder b(op->getLoc(), op);
      Owner owner = owners.find(load.getToken())->second;
      RoleInfo &role = channels.find(owner.channel)->second.roles[owner.role];
      load.getBarriersMutable().assign(role.barriers);
      load.getIndexMutable().assign(makeIndex(b, load.getToken(), owner));
      load.getTokenMutable().clear();
    }
    if (isa<CursorStartOp, CursorAdvanceOp, ChannelAcquireOp, ChannelReleaseOp>(
            op))
      ops.push_back(op);
  });
  Type i32 = IntegerType::get(kernel.getContext(), 32);
  for (Value value : llvm::make_first_range(owners))
    if (!isa_and_nonnull<CursorStartOp, CursorAdvanceOp, ChannelAcquireOp>(
            value.getDefiningOp()))
      value.setType(i32);
  for (Operation *op : ops)
    rewriteOp(op);
  int64_t count = 0;
  for (auto &[channel, info] : channels) {
    count += channel.getType().getDepth() * int64_t(info.roles.size());
    ChannelCreateOp(channel).erase();
  }
  return count;
}

void ChannelLowering::report() {
  for (auto &[channel, info] : channels) {
    std::string counts, bytes;
    for (auto [index, role] : llvm::enumerate(info.roles)) {
      counts +=
          llvm::formatv("{0}{1} {2}", counts.empty() ? "" : ", ",
                        channel.getRole(index).getPartition(), role.count);
      for (int64_t announced : role.bytes)
        bytes += llvm::formatv("{0}{1}", bytes.empty() ? "" : ", ", announced);
    }
    int64_t depth = channel.getType().getDepth();
    remark::passed(channel.getLoc(), remark::RemarkOpts::name("channel")
                                         .category("attn.lower-channels")
                                         .function(kernel.getName()))
        << remark::add("channel '{0}' becomes mbarriers",
                       channel.getName().str())
        << remark::metric("barriers", depth * int64_t(info.roles.size()))
        << remark::metric("depth", depth) << remark::metric("counts", counts)
        << remark::metric("bytes", bytes.empty() ? "none" : bytes);
  }
}
