//===- VerifyTokens.cpp - Handles are used once on each path --------------===//
//
// Each cursor, token and accumulator in flight has a state: fresh, acquired
// (cursors only), spent. From the op that makes it, its uses are followed in
// the order of the block; where a branch is, both sides have to leave the same
// state behind. Passing a handle on spends it, and the block argument or result
// that receives it is followed on its own.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/HandleFlow.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNVERIFYTOKENSPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

enum class State { Fresh, Acquired, Spent };

/// Follows one handle.
class HandleVerifier {
public:
  explicit HandleVerifier(Value handle) : handle(handle) {}
  LogicalResult verify();

private:
  FailureOr<State> follow(Block *block, State state);
  FailureOr<State> followBranch(UseGroup &group, State state);
  FailureOr<State> use(OpOperand &operand, State state);
  InFlightDiagnostic emitError(Operation *op);
  LogicalResult spend(Operation *op, State state);

  Value handle;
  /// The last op that spent it, for notes.
  Operation *spender = nullptr;
};

struct AttnVerifyTokensPass
    : attn::impl::AttnVerifyTokensPassBase<AttnVerifyTokensPass> {
  using Base::Base;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    auto check = [](ValueRange values) {
      for (Value value : values)
        if (isHandle(value.getType()) && failed(HandleVerifier(value).verify()))
          return failure();
      return success();
    };
    WalkResult walk = getOperation().walk([&](Operation *op) -> WalkResult {
      if (failed(check(op->getResults())))
        return failure();
      for (Region &region : op->getRegions())
        for (Block &block : region)
          if (failed(check(block.getArguments())))
            return failure();
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

static StringRef getKind(Value handle) {
  if (isa<CursorType>(handle.getType()))
    return "cursor";
  return isa<TokenType>(handle.getType()) ? "token" : "accumulator in flight";
}

InFlightDiagnostic HandleVerifier::emitError(Operation *op) {
  InFlightDiagnostic diag = op->emitOpError();
  diag.attachNote(handle.getLoc())
      << "the " << getKind(handle) << " is made here";
  return diag;
}

LogicalResult HandleVerifier::spend(Operation *op, State state) {
  if (state == State::Spent) {
    InFlightDiagnostic diag = emitError(op);
    diag << "expected one use of the " << getKind(handle)
         << " on each path, got another one";
    if (spender)
      diag.attachNote(spender->getLoc()) << "it is used up here";
    return diag;
  }
  spender = op;
  return success();
}

FailureOr<State> HandleVerifier::use(OpOperand &operand, State state) {
  Operation *op = operand.getOwner();
  if (isa<arith::SelectOp>(op)) {
    InFlightDiagnostic diag = emitError(op);
    diag << "expected the " << getKind(handle)
         << " to follow control flow, got a select, which loses one of two";
    return diag;
  }
  if (isa<TmaLoadOp>(op)) {
    if (state == State::Fresh)
      return state;
    InFlightDiagnostic diag = emitError(op);
    diag << "expected loads with a token before its release";
    if (spender)
      diag.attachNote(spender->getLoc()) << "it is used up here";
    return diag;
  }
  if (isa<ChannelAcquireOp>(op)) {
    if (state == State::Fresh)
      return State::Acquired;
    InFlightDiagnostic diag = emitError(op);
    diag << "expected one acquire of a cursor before it is advanced, got "
         << (state == State::Acquired ? "another one"
                                      : "one behind its last use");
    return diag;
  }
  bool isAdvance = isa<CursorAdvanceOp>(op);
  if (isAdvance && state == State::Fresh) {
    InFlightDiagnostic diag = emitError(op);
    diag << "expected an acquire at a cursor before it is advanced, got none";
    return diag;
  }
  if (!isAdvance && state == State::Acquired) {
    InFlightDiagnostic diag = emitError(op);
    diag << "expected an acquired cursor to be advanced, got one that is "
            "passed on";
    return diag;
  }
  if (failed(spend(op, state)))
    return failure();
  return State::Spent;
}

/// Uses in the regions of an op.
FailureOr<State> HandleVerifier::followBranch(UseGroup &group, State state) {
  if (!isa<scf::IfOp, RareOp, ElectOp>(group.op)) {
    InFlightDiagnostic diag = emitError(group.nested.front()->getOwner());
    diag << "expected the region to make or carry the " << getKind(handle)
         << ", got one from outside";
    diag.attachNote(group.op->getLoc()) << "the region is here";
    return diag;
  }
  std::optional<State> merged;
  // Without an else region, or on the way that is not rare, nothing happens.
  if (isa<RareOp>(group.op))
    merged = state;
  for (Region &region : group.op->getRegions()) {
    FailureOr<State> end = state;
    if (!region.empty())
      end = follow(&region.front(), state);
    if (failed(end))
      return failure();
    if (merged && *merged != *end) {
      InFlightDiagnostic diag = emitError(group.op);
      diag << "expected the same uses of the " << getKind(handle)
           << " on both paths";
      return diag;
    }
    merged = *end;
  }
  return *merged;
}

FailureOr<State> HandleVerifier::follow(Block *block, State state) {
  for (UseGroup &group : groupUses(handle, block)) {
    for (OpOperand *operand : group.direct) {
      FailureOr<State> next = use(*operand, state);
      if (failed(next))
        return failure();
      state = *next;
    }
    if (group.nested.empty())
      continue;
    FailureOr<State> next = followBranch(group, state);
    if (failed(next))
      return failure();
    state = *next;
  }
  return state;
}

LogicalResult HandleVerifier::verify() {
  FailureOr<State> end = follow(handle.getParentBlock(), State::Fresh);
  if (failed(end))
    return failure();
  // The position after the last acquire stays unused.
  if (*end == State::Spent || isa<CursorType>(handle.getType()))
    return success();
  InFlightDiagnostic diag = mlir::emitError(handle.getLoc());
  diag << "expected a use of the " << getKind(handle)
       << " on each path, got none";
  return diag;
}
