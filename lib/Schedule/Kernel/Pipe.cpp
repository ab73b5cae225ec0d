//===- Pipe.cpp - A role's end of a channel -------------------------------===//

#include "Pipe.h"

using namespace mlir;
using namespace mlir::attn;

void Slot::release() { ChannelReleaseOp::create(*b, channel, token, role); }

Value Slot::in(Value ring, BufferType type) const {
  return SlotOp::create(*b, type, ring, index, /*distance=*/IntegerAttr());
}

Pipe::Pipe(Control &control, Value channel, StringRef role)
    : control(&control), channel(channel), role(role),
      cursor(control, CursorStartOp::create(control.b, channel, role)) {}

Slot Pipe::acquire(bool eachWarpgroup) {
  auto op = ChannelAcquireOp::create(control->b, channel, cursor.get(), role,
                                     /*part=*/StringAttr(), eachWarpgroup);
  Slot slot;
  slot.b = &control->b;
  slot.channel = channel;
  slot.index = op.getIndex();
  slot.token = op.getToken();
  slot.role = role;
  return slot;
}

Slot Pipe::acquire() { return acquire(/*eachWarpgroup=*/false); }

Slot Pipe::acquireParts() { return acquire(/*eachWarpgroup=*/true); }

void Pipe::advance() {
  cursor = CursorAdvanceOp::create(control->b, cursor.get(), channel);
}
