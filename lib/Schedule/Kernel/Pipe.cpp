//===- Pipe.cpp - A role's end of a channel -------------------------------===//

#include "Pipe.h"

using namespace mlir;
using namespace mlir::attn;

void Slot::release() {
  ChannelReleaseOp::create(*b, acquired.getChannel(), acquired.getToken(),
                           acquired.getRole());
}

Value Slot::in(Value ring, BufferType type) const {
  return SlotOp::create(*b, type, ring, getIndex(), /*distance=*/IntegerAttr());
}

Pipe::Pipe(Control &control, Value channel, StringRef role)
    : control(&control), channel(channel), role(role),
      cursor(control, CursorStartOp::create(control.b, channel, role)) {}

Slot Pipe::acquire() {
  ImplicitLocOpBuilder &b = control->b;
  return {b, ChannelAcquireOp::create(b, channel, cursor.get(), role)};
}

Slot Pipe::acquireParts() {
  ImplicitLocOpBuilder &b = control->b;
  return {b, ChannelAcquireOp::create(b, channel, cursor.get(), role,
                                      /*part=*/StringAttr(),
                                      /*each_warpgroup=*/true)};
}

void Pipe::advance() {
  cursor = CursorAdvanceOp::create(control->b, cursor.get(), channel);
}
