//===- ChannelOps.cpp - Hand-over between partitions ----------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

/// A CTA has at most 16 warpgroups of which each may have a part.
static constexpr unsigned kMostParts = 16;

//===----------------------------------------------------------------------===//
// Signals
//===----------------------------------------------------------------------===//

const ChannelSignal &attn::getChannelSignal(SignalKind kind) {
  static const ChannelSignal arrive = {
      /*arrivals=*/0, /*countsBytes=*/false,
      [](OpBuilder &builder, Location loc, Value barriers, Value index,
         IntegerAttr ctas, bool leader) {
        MBarrierArriveOp::create(builder, loc, barriers, index, ctas, leader);
      }};
  // The thread that announces the bytes arrives.
  static const ChannelSignal tx = {/*arrivals=*/1, /*countsBytes=*/true,
                                   /*emitRelease=*/nullptr};
  switch (kind) {
  case SignalKind::Arrive:
    return arrive;
  case SignalKind::Tx:
    return tx;
  }
  llvm_unreachable("covered switch");
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

LogicalResult ChannelCreateOp::verify() {
  if (getRoles().size() < 2)
    return emitOpError("expected at least 2 roles, got ") << getRoles().size();
  for (auto [index, role] : llvm::enumerate(getRoles().getAsRange<RoleAttr>()))
    for (unsigned earlier = 0; earlier < index; ++earlier)
      if (getRole(earlier).getPartition() == role.getPartition())
        return emitOpError("expected one role for each partition, got two "
                           "for '")
               << role.getPartition() << "'";
  if (getParts() && (getNumParts() < 2 || getNumParts() > kMostParts))
    return emitOpError("expected from 2 to ")
           << kMostParts << " parts, got " << getNumParts();
  for (unsigned index = 0; getParts() && index < getNumParts(); ++index) {
    auto name = cast<StringAttr>((*getParts())[index]);
    if (*findPart(name) != index)
      return emitOpError("expected one part of each name, got two named ")
             << name;
  }
  return success();
}

std::optional<unsigned> ChannelCreateOp::findPart(StringRef name) {
  if (getParts())
    for (auto [index, part] :
         llvm::enumerate(getParts()->getAsRange<StringAttr>()))
      if (part.getValue() == name)
        return index;
  return std::nullopt;
}

LogicalResult ChannelAcquireOp::verify() {
  if (getPart() && getEachWarpgroup())
    return emitOpError("expected a part or 'each_warpgroup', got both");
  return success();
}

std::optional<unsigned> ChannelCreateOp::findRole(StringRef partition) {
  for (auto [index, role] : llvm::enumerate(getRoles().getAsRange<RoleAttr>()))
    if (role.getPartition() == partition)
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
