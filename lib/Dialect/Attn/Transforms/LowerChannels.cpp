//===- LowerChannels.cpp - Channels become mbarriers ----------------------===//
//
// A channel of depth d with n roles becomes n arrays of d mbarriers: array r is
// signalled by the releases of role r and awaited by the acquires of the role
// after it. A cursor becomes an i32, the slot in bits 0 to 15 and the parity of
// the phase that the role waits for in bit 16. Role 0 waits first for the phase
// before phase 0, which an initialised mbarrier counts as complete. The array
// of a role that hands slots on in p parts has p times d mbarriers, the d of a
// part in a row. Tokens of parts are positions like those of whole slots.
//
// First everything is checked and counted, then everything is rewritten.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Channels/ChannelAnalysis.h"
#include "attn/Dialect/Attn/IR/TensorProducts.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Remarks.h"

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

/// Rewrites one kernel as the analysis says.
class ChannelRewriter {
public:
  explicit ChannelRewriter(const ChannelAnalysis &analysis)
      : analysis(analysis) {}
  void run();

private:
  void makeBarriers();
  void addClusterBarriers(ImplicitLocOpBuilder &b);
  /// True if loads go to other CTAs.
  bool copiesToOtherPairs() const {
    return llvm::any_of(analysis.getChannels(), [](const auto &entry) {
      return llvm::any_of(entry.second.roles, [](const RoleInfo &role) {
        return role.multicastBits != 0;
      });
    });
  }
  void initialize();
  void rewriteFill(ChannelUserOpInterface op);
  void rewriteStart(ChannelUserOpInterface op);
  void rewriteAdvance(ChannelUserOpInterface op);
  void rewriteAcquire(ChannelUserOpInterface op);
  void rewriteRelease(ChannelUserOpInterface op);
  void addTail(Value last, Owner owner);

  Owner ownerOf(Value handle) {
    return analysis.getOwners().find(handle)->second;
  }
  const ChannelInfo &infoOf(Owner owner) {
    return analysis.getChannels().find(owner.channel)->second;
  }
  Value barriersOf(Owner owner) { return barriers[owner.channel][owner.role]; }
  SignalMask getTarget(Owner owner) {
    return infoOf(owner).getTarget(owner.role);
  }
  /// How many CTAs of the cluster the role signals to if they are several, else
  /// null.
  IntegerAttr getCTAs(Builder &b, Owner owner);
  /// The bits in which their ranks, or that of a leader to which it signals,
  /// differ from this CTA's; null if it is any.
  IntegerAttr getRankBits(Builder &b, Owner owner);
  Value makeSlot(ImplicitLocOpBuilder &b, Value position, Owner owner);
  Value makeIndex(ImplicitLocOpBuilder &b, Value slot, Owner owner);

  const ChannelAnalysis &analysis;
  /// The array of each role.
  llvm::MapVector<ChannelCreateOp, SmallVector<Value, 2>> barriers;
  /// What releases belong to, whose tokens become positions before them.
  DenseMap<Operation *, Owner> releases;
};

/// Returns where the cursor that begins as `cursor` ends, in the same block:
/// the last of its role that an op there makes. Branches and loops that advance
/// it yield it.
Value findLastCursor(Value cursor,
                     const llvm::MapVector<Value, Owner> &owners) {
  Owner owner = owners.find(cursor)->second;
  Value last = cursor;
  for (Operation &op : llvm::make_range(cursor.getDefiningOp()->getIterator(),
                                        cursor.getParentBlock()->end()))
    for (Value result : op.getResults()) {
      auto found = isa<CursorType>(result.getType()) ? owners.find(result)
                                                     : owners.end();
      if (found != owners.end() && found->second == owner)
        last = result;
    }
  return last;
}

/// What becomes acquires and releases has become them.
LogicalResult checkLowered(gpu::GPUFuncOp kernel) {
  WalkResult walk = kernel.walk([](ChannelUserOpInterface op) -> WalkResult {
    if (op.getChannelUse() != ChannelUse::Later)
      return WalkResult::advance();
    return op->emitOpError("expected to be lowered before its channel");
  });
  return failure(walk.wasInterrupted());
}

struct AttnLowerChannelsPass
    : attn::impl::AttnLowerChannelsPassBase<AttnLowerChannelsPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
      ChannelAnalysis analysis(kernel);
      if (failed(checkLowered(kernel)) || failed(analysis.run()) ||
          failed(analysis.checkReleases()))
        return signalPassFailure();
      for (auto [channel, info] : analysis.getChannels())
        report(kernel, channel, info);
      ChannelRewriter(analysis).run();
    }
  }

  void report(gpu::GPUFuncOp kernel, ChannelCreateOp channel,
              const ChannelInfo &info);
};

} // namespace

//===----------------------------------------------------------------------===//
// mbarriers
//===----------------------------------------------------------------------===//

void ChannelRewriter::makeBarriers() {
  for (auto [key, info] : analysis.getChannels()) {
    if (!info.isUsed())
      continue;
    ChannelCreateOp channel = key;
    OpBuilder b(channel);
    for (auto role : channel.getRoles().getAsRange<RoleAttr>()) {
      auto type = MBarriersType::get(
          b.getContext(), channel.getType().getDepth() * role.getNumParts());
      std::string name = (channel.getName() + "." + role.getName()).str();
      barriers[channel].push_back(MBarrierAllocOp::create(
          b, channel.getLoc(), type, b.getStringAttr(name), IntegerAttr(),
          info.getBarrierCGA(barriers[channel].size(), b.getContext(),
                             usesPairs(analysis.getKernel()))));
    }
  }
}

/// Returns true for an op that makes a buffer in tensor memory out of nothing.
static bool makesTensorBuffer(Operation *op) {
  return op->getNumOperands() == 0 &&
         llvm::any_of(op->getResultTypes(), [](Type type) {
           auto buffer = dyn_cast<BufferType>(type);
           return buffer && buffer.isTmem();
         });
}

/// Moves the op that takes tensor memory behind `place`, and with it the
/// buffers there and views of them. Returns the last of them.
static Operation *moveBehind(Operation *reserve, Operation *place) {
  SmallVector<Operation *> moved = {reserve};
  for (Operation *op = reserve->getNextNode(); op && op != place;
       op = op->getNextNode())
    if (makesTensorBuffer(op) ||
        llvm::any_of(op->getOperands(), [&](Value operand) {
          return llvm::is_contained(moved, operand.getDefiningOp());
        }))
      moved.push_back(op);
  for (Operation *op : moved) {
    op->moveAfter(place);
    place = op;
  }
  return place;
}

/// Puts cluster barriers where CTAs begin to rely on each other, at `b`, and
/// where they end to: until their last release others signal to this one. A
/// pair takes tensor memory behind the first one, when both CTAs run, and gives
/// it back behind the last one, when neither uses it any more.
void ChannelRewriter::addClusterBarriers(ImplicitLocOpBuilder &b) {
  auto first = ClusterBarrierOp::create(b);
  gpu::GPUFuncOp kernel = analysis.getKernel();
  Operation *end = kernel.getBody().front().getTerminator();
  for (auto op : kernel.getBody().getOps<TensorGroupOpInterface>())
    if (op.isOfPair() && op.takesMemory()) {
      // Copies of other pairs may come to the bytes through which the address
      // goes.
      OpBuilder behind(b.getContext());
      behind.setInsertionPointAfter(moveBehind(op, first));
      if (copiesToOtherPairs())
        ClusterBarrierOp::create(behind, kernel.getLoc());
      break;
    }
  for (auto op : kernel.getBody().getOps<TensorGroupOpInterface>())
    if (op.isOfPair() && op.givesMemoryBack())
      end = op;
  OpBuilder last(end);
  ClusterBarrierOp::create(last, kernel.getLoc());
}

/// One thread initialises all mbarriers.
void ChannelRewriter::initialize() {
  WarpSpecializeOp partitions = analysis.getPartitions();
  ImplicitLocOpBuilder b(partitions.getLoc(), partitions);
  auto elect = ElectOp::create(b);
  if (analysis.crossesCTAs()) {
    addClusterBarriers(b);
  } else {
    gpu::BarrierOp::create(b);
  }
  b.createBlock(&elect.getBody());
  for (auto &[channel, arrays] : barriers) {
    const ChannelInfo &info = infoOf({channel});
    for (auto [role, array] : llvm::enumerate(arrays))
      MBarrierInitOp::create(b, channel->getLoc(), array, info.getCount(role));
  }
  MBarrierFenceInitOp::create(b);
  YieldOp::create(b, ValueRange());
}

//===----------------------------------------------------------------------===//
// Cursors, acquires and releases
//===----------------------------------------------------------------------===//

/// The slot of a cursor or a token, which may still have its type.
Value ChannelRewriter::makeSlot(ImplicitLocOpBuilder &b, Value position,
                                Owner owner) {
  if (owner.channel.getType().getDepth() == 1)
    return arith::ConstantIntOp::create(b, 0, 32);
  Value mask = arith::ConstantIntOp::create(b, kSlotMask, 32);
  return arith::AndIOp::create(b, b.getI32Type(), position, mask);
}

/// The mbarrier of a slot, or of the owner's part of it.
Value ChannelRewriter::makeIndex(ImplicitLocOpBuilder &b, Value slot,
                                 Owner owner) {
  int64_t depth = owner.channel.getType().getDepth();
  if (owner.part == 0)
    return slot;
  Value first;
  if (owner.part == Owner::kOwnPart)
    first = arith::MulIOp::create(b, WarpgroupIndexOp::create(b),
                                  arith::ConstantIntOp::create(b, depth, 32));
  else
    first = arith::ConstantIntOp::create(b, owner.part * depth, 32);
  return arith::AddIOp::create(b, slot, first);
}

IntegerAttr ChannelRewriter::getCTAs(Builder &b, Owner owner) {
  const ChannelInfo &info = infoOf(owner);
  uint32_t any = getTarget(owner).getAny();
  if (any == 0)
    return {};
  int64_t some = int64_t(1) << llvm::popcount(any & uint32_t(info.cluster - 1));
  return b.getI64IntegerAttr(any == ~0u ? info.cluster : some);
}

IntegerAttr ChannelRewriter::getRankBits(Builder &b, Owner owner) {
  SignalMask target = getTarget(owner);
  uint32_t bits = target.getAny() ? target.getAny() : target.getClear();
  uint32_t ranks = infoOf(owner).cluster - 1;
  if (bits == 0 || bits == ~0u || (bits & ranks) == ranks)
    return {};
  return b.getI64IntegerAttr(bits & ranks);
}

void ChannelRewriter::rewriteFill(ChannelUserOpInterface op) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Value token = op.getUsedHandle()->get();
  Owner owner = ownerOf(token);
  Value index = makeIndex(b, makeSlot(b, token, owner), owner);
  op.setFillBarrier(barriersOf(owner), index, getCTAs(b, owner));
  if (infoOf(owner).announcesAtLeader(owner.role))
    op.setFilledAtLeader();
}

void ChannelRewriter::rewriteStart(ChannelUserOpInterface op) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  int64_t first = ownerOf(op.getMadeHandle()).role == 0 ? kParityBit : 0;
  Value position = arith::ConstantIntOp::create(b, first, 32);
  op.getMadeHandle().replaceAllUsesWith(position);
}

/// The position behind one in a channel of `depth` slots.
static Value makeNext(ImplicitLocOpBuilder &b, Value position, int64_t depth) {
  Type i32 = b.getI32Type();
  auto constant = [&](int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  if (depth == 1)
    return arith::XOrIOp::create(b, i32, position, constant(kParityBit));
  // Past the last slot the slot's bits are those of the depth.
  Value next = arith::AddIOp::create(b, i32, position, constant(1));
  Value slot = arith::AndIOp::create(b, next, constant(kSlotMask));
  Value isLast =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, slot, constant(depth));
  Value wrapped = arith::XOrIOp::create(b, next, constant(kParityBit | depth));
  return arith::SelectOp::create(b, isLast, wrapped, next);
}

void ChannelRewriter::rewriteAdvance(ChannelUserOpInterface op) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  int64_t depth = cast<ChannelType>(op.getUsedChannel().getType()).getDepth();
  op.getMadeHandle().replaceAllUsesWith(
      makeNext(b, op.getUsedHandle()->get(), depth));
}

/// Returns the one of `count` roles that hands slots to the owner's.
static Owner getRoleBefore(Owner owner, unsigned count) {
  return {owner.channel, (owner.role + count - 1) % count};
}

/// Lets a role wait until all of its slots were handed back, at the end of the
/// block where its first cursor is made, and its last one, `position`.
void ChannelRewriter::addTail(Value position, Owner owner) {
  const ChannelInfo &info = infoOf(owner);
  ImplicitLocOpBuilder b(position.getLoc(),
                         position.getParentBlock()->getTerminator());
  Owner before = getRoleBefore(owner, info.roles.size());
  int64_t depth = owner.channel.getType().getDepth();
  int64_t parts = owner.channel.getRoleBefore(owner.role).getNumParts();
  for (int64_t slots = depth; slots > 0; --slots) {
    Value slot = makeSlot(b, position, owner);
    Value shift = arith::ConstantIntOp::create(b, kParityShift, 32);
    Value parity = arith::ShRUIOp::create(b, b.getI32Type(), position, shift);
    for (before.part = 0; before.part < parts; ++before.part)
      MBarrierWaitOp::create(b, barriersOf(before), makeIndex(b, slot, before),
                             parity, /*cluster=*/true);
    if (slots > 1)
      position = makeNext(b, position, depth);
  }
}

void ChannelRewriter::rewriteAcquire(ChannelUserOpInterface op) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Owner owner = ownerOf(op.getMadeHandle());
  const ChannelInfo &info = infoOf(owner);
  Owner before = getRoleBefore(owner, info.roles.size());
  Value cursor = op.getUsedHandle()->get();
  Value slot = makeSlot(b, cursor, owner);
  Value index = makeIndex(b, slot, owner);
  Value shift = arith::ConstantIntOp::create(b, kParityShift, 32);
  Value parity = arith::ShRUIOp::create(b, cursor, shift);
  MBarrierWaitOp::create(b, barriersOf(before), index, parity,
                         /*cluster=*/info.crossesCTAs());
  if (std::optional<int64_t> bytes = analysis.getBytes(op)) {
    OpBuilder::InsertionGuard guard(b);
    // One thread announces what all of them send, or one of each warpgroup.
    if (!op->getParentOfType<ElectOp>()) {
      auto elect =
          ElectOp::create(b, /*each_warpgroup=*/owner.part == Owner::kOwnPart);
      b.createBlock(&elect.getBody());
      b.setInsertionPoint(YieldOp::create(b, ValueRange()));
    }
    MBarrierExpectTxOp::create(
        b, barriersOf(owner), index,
        b.getI64IntegerAttr(info.getBytes(owner.role, *bytes)),
        getCTAs(b, owner),
        info.announcesAtLeader(owner.role) ? b.getUnitAttr() : UnitAttr(),
        getRankBits(b, owner));
  }
  op.getSlotIndex().replaceAllUsesWith(slot);
  op.getMadeHandle().replaceAllUsesWith(cursor);
}

void ChannelRewriter::rewriteRelease(ChannelUserOpInterface op) {
  Owner owner = releases.find(op)->second;
  auto emit = owner.getSignal().emitRelease;
  if (!emit)
    return;
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Value slot = makeSlot(b, op.getUsedHandle()->get(), owner);
  Value index = makeIndex(b, slot, owner);
  emit(b, op->getLoc(), barriersOf(owner), index, getCTAs(b, owner),
       getTarget(owner).getClear() != 0, getRankBits(b, owner),
       usesPairs(analysis.getKernel()));
}

void ChannelRewriter::run() {
  if (analysis.getChannels().empty())
    return;
  makeBarriers();
  if (!barriers.empty())
    initialize();
  // Fills first: they are found by their tokens.
  SmallVector<ChannelUserOpInterface> users;
  gpu::GPUFuncOp kernel = analysis.getKernel();
  kernel.walk([&](ChannelUserOpInterface op) {
    ChannelUse use = op.getChannelUse();
    if (use == ChannelUse::Fill)
      return rewriteFill(op);
    if (use == ChannelUse::Release)
      releases.insert({op, ownerOf(op.getUsedHandle()->get())});
    if (use != ChannelUse::None)
      users.push_back(op);
  });
  // Before cursors lose their type.
  SmallVector<std::pair<Value, Owner>> tails;
  for (ChannelUserOpInterface user : users) {
    if (user.getChannelUse() != ChannelUse::Start)
      continue;
    Owner owner = ownerOf(user.getMadeHandle());
    if (infoOf(owner).hasTail(owner.role, owner.channel))
      tails.push_back(
          {findLastCursor(user.getMadeHandle(), analysis.getOwners()), owner});
  }
  DenseSet<Value> made;
  for (ChannelUserOpInterface user : users)
    made.insert_range(user->getResults());
  Type i32 = IntegerType::get(kernel.getContext(), 32);
  for (auto [value, owner] : analysis.getOwners())
    if (!made.contains(value))
      value.setType(i32);
  for (auto [last, owner] : tails)
    addTail(last, owner);
  for (ChannelUserOpInterface user : users) {
    switch (user.getChannelUse()) {
    case ChannelUse::Start:
      rewriteStart(user);
      break;
    case ChannelUse::Advance:
      rewriteAdvance(user);
      break;
    case ChannelUse::Acquire:
      rewriteAcquire(user);
      break;
    case ChannelUse::Release:
      rewriteRelease(user);
      break;
    case ChannelUse::Split:
      for (Value part : user->getResults())
        part.replaceAllUsesWith(user.getUsedHandle()->get());
      break;
    case ChannelUse::Join:
      // All of them are the slot's position.
      user.getMadeHandle().replaceAllUsesWith(user->getOperands().back());
      break;
    default:
      llvm_unreachable("other users stay, or were refused");
    }
    user->erase();
  }
  for (auto [channel, info] : analysis.getChannels())
    channel->erase();
}

void AttnLowerChannelsPass::report(gpu::GPUFuncOp kernel,
                                   ChannelCreateOp channel,
                                   const ChannelInfo &info) {
  if (!info.isUsed()) {
    remark::passed(channel.getLoc(), remark::RemarkOpts::name("unused")
                                         .category("attn.lower-channels")
                                         .function(kernel.getName()))
        << remark::add("nobody acquires a slot of channel '{0}', which gets no "
                       "mbarriers",
                       channel.getName().str());
    return;
  }
  std::string counts, bytes;
  int64_t multicast = 1;
  for (auto [index, role] : llvm::enumerate(info.roles)) {
    counts +=
        llvm::formatv("{0}{1} {2}", counts.empty() ? "" : ", ",
                      channel.getRole(index).getName(), info.getCount(index));
    multicast = std::max(multicast, role.multicast);
    for (int64_t announced : role.bytes)
      bytes += llvm::formatv("{0}{1}", bytes.empty() ? "" : ", ",
                             info.getBytes(index, announced));
  }
  std::string masks = info.describeMasks(channel);
  int64_t depth = channel.getType().getDepth();
  int64_t parts = 1, count = 0;
  for (auto role : channel.getRoles().getAsRange<RoleAttr>()) {
    parts = std::max<int64_t>(parts, role.getNumParts());
    count += depth * role.getNumParts();
  }
  auto becomes =
      remark::passed(channel.getLoc(), remark::RemarkOpts::name("channel")
                                           .category("attn.lower-channels")
                                           .function(kernel.getName()));
  becomes << remark::add("channel '{0}' becomes mbarriers",
                         channel.getName().str())
          << remark::metric("barriers", count) << remark::metric("depth", depth)
          << remark::metric("counts", counts)
          << remark::metric("bytes", bytes.empty() ? "none" : bytes)
          << remark::metric("multicast", multicast)
          << remark::metric("parts", parts);
  std::string tails = info.describeTails(channel);
  if (!tails.empty())
    becomes << remark::metric("tails", tails);
  if (!masks.empty())
    becomes << remark::metric("masks", masks);
  ++numChannels;
  numBarriers += count;
}
