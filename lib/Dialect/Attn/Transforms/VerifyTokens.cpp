//===- VerifyTokens.cpp - Handles are used once on each path --------------===//
//
// A handle is a bundle of rights: a token or an accumulator in flight may be
// used once; a position in a channel, or each part of it, may be acquired
// once and advanced from once. From the op that makes a handle its uses are
// followed in the order of the block, each taking a right away; where a branch
// is, both sides have to leave the same rights behind. Passing a handle on
// gives the rights that are left to the block argument or result that receives
// it, which is followed on its own: first until it is known what each one has,
// then with diagnostics.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Flow/HandleFlow.h"
#include "attn/Analysis/Flow/RegionPaths.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNVERIFYTOKENSPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

using Rights = unsigned;
constexpr Rights kNone = 0;
/// Of tokens and accumulators.
constexpr Rights kUse = 1;
/// Of cursors.
constexpr Rights kAdvance = 2;
/// To acquire the first part, or a slot without parts; the bits above it are
/// for the other ones.
constexpr Rights kAcquire = 4;
constexpr Rights kAcquireAll = ~(kAcquire - 1);

/// Follows the handles of a module.
class HandleVerifier {
public:
  explicit HandleVerifier(Operation *root) : root(root) {}
  LogicalResult verify();

private:
  LogicalResult follow(Value handle);
  FailureOr<Rights> follow(Block *block, Rights left);
  FailureOr<Rights> followBranch(const UseGroup &group, Rights left,
                                 Rights otherwise);
  FailureOr<Rights> use(OpOperand &operand, Rights left);
  void passOn(OpOperand &operand, Rights left);
  /// Reports a mistake in the second round, and goes on in the first one.
  LogicalResult fail(Operation *op, StringRef message, Operation *second = {},
                     StringRef note = {});

  Operation *root;
  HandleFlow flow;
  llvm::MapVector<Value, Rights> rights;
  llvm::SetVector<Value> worklist;
  bool isReporting = false;
  /// The handle that is being followed, and the last op that used it.
  Value handle;
  Operation *user = nullptr;
};

struct AttnVerifyTokensPass
    : attn::impl::AttnVerifyTokensPassBase<AttnVerifyTokensPass> {
  using Base::Base;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(HandleVerifier(getOperation()).verify()))
      signalPassFailure();
  }
};

} // namespace

static bool isCursor(Value handle) { return isa<CursorType>(handle.getType()); }

/// The rights to acquire all parts of a slot, and those that an op takes.
static std::pair<Rights, Rights> getParts(ChannelUserOpInterface acquire) {
  auto channel = acquire.getUsedChannel().getDefiningOp<ChannelCreateOp>();
  std::optional<unsigned> role;
  if (channel)
    role = channel.findRole(acquire.getUsedRole());
  if (!role)
    return {kAcquire, kAcquire};
  RoleAttr before = channel.getRoleBefore(*role);
  Rights all = ((Rights(1) << before.getNumParts()) - 1) * kAcquire;
  for (auto [index, part] : llvm::enumerate(before.getParts()))
    if (part.getValue() == acquire.getUsedPart())
      return {all, kAcquire << index};
  return {all, all};
}

/// True for a token that an op hands to one of its regions and releases itself
/// when it is lowered.
static bool isReleasedByParent(Value handle) {
  auto argument = dyn_cast<BlockArgument>(handle);
  auto parent = dyn_cast_or_null<ChannelUserOpInterface>(
      argument ? argument.getOwner()->getParentOp() : nullptr);
  return parent && parent.getChannelUse() == ChannelUse::Later &&
         isa<TokenType>(handle.getType());
}

static std::string getKind(Value handle) {
  if (isCursor(handle))
    return "cursor";
  return isa<TokenType>(handle.getType()) ? "token" : "accumulator in flight";
}

LogicalResult HandleVerifier::fail(Operation *op, StringRef message,
                                   Operation *second, StringRef note) {
  if (!isReporting)
    return success();
  InFlightDiagnostic diag = op->emitOpError() << message;
  diag.attachNote(handle.getLoc())
      << "the " << getKind(handle) << " is made here";
  if (second)
    diag.attachNote(second->getLoc()) << note;
  return diag;
}

void HandleVerifier::passOn(OpOperand &operand, Rights left) {
  for (Value target : flow.lookup(&operand)) {
    Rights &known = rights.find(target)->second;
    if ((known & left) == known)
      continue;
    known &= left;
    worklist.insert(target);
  }
}

FailureOr<Rights> HandleVerifier::use(OpOperand &operand, Rights left) {
  Operation *op = operand.getOwner();
  auto take = [&](Rights right, StringRef message) -> FailureOr<Rights> {
    if (!(left & right) && failed(fail(op, message, user, "it is used here")))
      return failure();
    user = op;
    return left & ~right;
  };
  if (isa<arith::SelectOp>(op)) {
    if (failed(fail(op, "expected the " + getKind(handle) +
                            " to follow control flow, got a select, which "
                            "loses one of two")))
      return failure();
    return left;
  }
  auto onChannel = dyn_cast<ChannelUserOpInterface>(op);
  ChannelUse channelUse =
      onChannel ? onChannel.getChannelUse() : ChannelUse::None;
  if (channelUse == ChannelUse::Fill) {
    if (!(left & kUse) &&
        failed(fail(op, "expected loads with a token before its release", user,
                    "it is used here")))
      return failure();
    return left;
  }
  if (channelUse == ChannelUse::Acquire) {
    auto [all, wanted] = getParts(onChannel);
    left &= all | ~kAcquireAll;
    if ((left & wanted) != wanted &&
        failed(fail(op, "expected one acquire of a position, got another one",
                    user, "it is used here")))
      return failure();
    user = op;
    return left & ~wanted;
  }
  if (channelUse == ChannelUse::Advance)
    return take(kAdvance, "expected one advance from a position, got another "
                          "one");
  passOn(operand, left);
  if (isCursor(handle)) {
    user = op;
    return kNone;
  }
  return take(kUse, "expected one use of the " + getKind(handle) +
                        " on each path, got another one");
}

/// Uses in the regions of an op. On a way around the regions `otherwise` is
/// what is left.
FailureOr<Rights> HandleVerifier::followBranch(const UseGroup &group,
                                               Rights left, Rights otherwise) {
  if (!isBranch(group.op)) {
    if (failed(fail(group.nested.front()->getOwner(),
                    "expected the region to make or carry the " +
                        getKind(handle) + ", got one from outside",
                    group.op, "the region is here")))
      return failure();
    return left;
  }
  std::optional<Rights> merged;
  if (maySkipRegions(group.op))
    merged = otherwise;
  for (Region &region : group.op->getRegions()) {
    if (region.empty())
      continue;
    FailureOr<Rights> end = follow(&region.front(), left);
    if (failed(end))
      return failure();
    if (merged && *merged != *end &&
        failed(fail(group.op, "expected the same uses of the " +
                                  getKind(handle) + " on both paths")))
      return failure();
    merged = merged.value_or(*end) & *end;
  }
  return *merged;
}

FailureOr<Rights> HandleVerifier::follow(Block *block, Rights left) {
  for (const UseGroup &group : groupUses(handle, block)) {
    Rights before = left;
    for (OpOperand *operand : group.direct) {
      FailureOr<Rights> next = use(*operand, left);
      if (failed(next))
        return failure();
      left = *next;
    }
    // What a branch passes on around its regions and a use in one of them are
    // on different paths.
    bool skips = isBranch(group.op) && maySkipRegions(group.op);
    bool usedAround = skips && !isCursor(handle) && before != left;
    if (group.nested.empty() && !usedAround)
      continue;
    FailureOr<Rights> next = followBranch(group, skips ? before : left, left);
    if (failed(next))
      return failure();
    left = *next;
  }
  return left;
}

LogicalResult HandleVerifier::follow(Value value) {
  handle = value;
  user = nullptr;
  FailureOr<Rights> left =
      follow(handle.getParentBlock(), rights.find(handle)->second);
  if (failed(left))
    return failure();
  if (!isReporting)
    return success();
  if ((*left & kUse) && !isReleasedByParent(handle))
    return emitError(handle.getLoc())
           << "expected a use of the " << getKind(handle)
           << " on each path, got none";
  // The position behind the last acquire is neither acquired nor left.
  if ((*left & kAcquireAll) && !(*left & kAdvance))
    return emitError(handle.getLoc())
           << "expected an acquire of each position that is advanced from, got "
              "none of this cursor's";
  return success();
}

LogicalResult HandleVerifier::verify() {
  auto add = [&](ValueRange values) {
    for (Value value : values)
      if (isHandle(value.getType()))
        rights[value] = isCursor(value) ? kAcquireAll | kAdvance : kUse;
  };
  root->walk([&](Operation *op) {
    add(op->getResults());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        add(block.getArguments());
  });
  if (rights.empty())
    return success();
  flow = collectHandleFlow(root);
  for (const auto &[value, known] : rights)
    worklist.insert(value);
  while (!worklist.empty())
    if (failed(follow(worklist.pop_back_val())))
      return failure();
  isReporting = true;
  for (const auto &[value, known] : rights)
    if (failed(follow(value)))
      return failure();
  return success();
}
