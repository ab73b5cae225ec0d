//===- ChannelOps.cpp - Hand-over between partitions ----------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// Signals
//===----------------------------------------------------------------------===//

const ChannelSignal &attn::getChannelSignal(SignalKind kind) {
  static const ChannelSignal arrive = {
      /*minimumSM=*/80,
      /*arrivals=*/0,
      /*warpArrivals=*/1,
      /*countsBytes=*/false,
      /*awaitsProducts=*/false,
      /*awaitsCopies=*/false,
      [](OpBuilder &builder, Location loc, Value barriers, Value index,
         IntegerAttr ctas, bool leader, IntegerAttr bits, bool /*pair*/) {
        MBarrierArriveOp::create(builder, loc, barriers, index, ctas, leader,
                                 bits);
      }};
  // The thread that announces the bytes arrives.
  static const ChannelSignal tx = {
      /*minimumSM=*/90,       /*arrivals=*/1,
      /*warpArrivals=*/0,
      /*countsBytes=*/true,   /*awaitsProducts=*/false,
      /*awaitsCopies=*/false,
      /*emitRelease=*/nullptr};
  static const ChannelSignal commit = {
      /*minimumSM=*/100,
      /*arrivals=*/1,
      /*warpArrivals=*/0,
      /*countsBytes=*/false,
      /*awaitsProducts=*/true,
      /*awaitsCopies=*/false,
      [](OpBuilder &builder, Location loc, Value barriers, Value index,
         IntegerAttr ctas, bool leader, IntegerAttr bits, bool pair) {
        assert(!leader && "refused by the analysis of channels");
        Tcgen05CommitOp::create(builder, loc, barriers, index, ctas, pair,
                                bits);
      }};
  // Each thread arrives for its own copies.
  static const ChannelSignal copies = {
      /*minimumSM=*/80,
      /*arrivals=*/0,
      /*warpArrivals=*/32,
      /*countsBytes=*/false,
      /*awaitsProducts=*/false,
      /*awaitsCopies=*/true,
      [](OpBuilder &builder, Location loc, Value barriers, Value index,
         IntegerAttr ctas, bool leader, IntegerAttr /*bits*/, bool /*pair*/) {
        assert(!ctas && !leader && "refused by the analysis of channels");
        CpAsyncArriveOp::create(builder, loc, barriers, index);
      }};
  switch (kind) {
  case SignalKind::Copies:
    return copies;
  case SignalKind::Arrive:
    return arrive;
  case SignalKind::Tx:
    return tx;
  case SignalKind::Commit:
    return commit;
  }
  llvm_unreachable("covered switch");
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

int ChannelCreateOp::getMinimumSM() {
  int least = 80;
  for (auto role : getRoles().getAsRange<RoleAttr>())
    least = std::max(least, getChannelSignal(role.getSignal()).minimumSM);
  return least;
}

LogicalResult ChannelCreateOp::verify() {
  if (getRoles().size() < 2)
    return emitOpError("expected at least 2 roles, got ") << getRoles().size();
  for (auto [index, role] : llvm::enumerate(getRoles().getAsRange<RoleAttr>()))
    for (unsigned earlier = 0; earlier < index; ++earlier)
      if (getRole(earlier).getName() == role.getName())
        return emitOpError(
                   "expected roles of different names, got two called '")
               << role.getName() << "'";
  return success();
}

LogicalResult ChannelAcquireOp::verify() {
  if (getPart() && getEachWarpgroup())
    return emitOpError("expected a part or 'each_warpgroup', got both");
  return success();
}

std::optional<unsigned> ChannelCreateOp::findRole(StringRef name) {
  for (auto [index, role] : llvm::enumerate(getRoles().getAsRange<RoleAttr>()))
    if (role.getName() == name)
      return index;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Names in printed IR
//===----------------------------------------------------------------------===//

/// Names `value` after a channel, where it is known which one.
static void nameAfter(Value channel, StringRef suffix, Value value,
                      OpAsmSetValueNameFn setName) {
  if (auto create = channel.getDefiningOp<ChannelCreateOp>())
    setName(value, (create.getName() + suffix).str());
  else
    setName(value, suffix.drop_front());
}

void ChannelCreateOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), (getName() + "_channel").str());
}

void CursorStartOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  nameAfter(getChannel(), "_cursor", getResult(), setName);
}

void CursorAdvanceOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  nameAfter(getChannel(), "_next", getResult(), setName);
}

void ChannelAcquireOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  nameAfter(getChannel(), "_index", getIndex(), setName);
  nameAfter(getChannel(), "_token", getToken(), setName);
}
