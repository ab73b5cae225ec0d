//===- Pipe.cpp - A role's end of a channel -------------------------------===//

#include "Pipe.h"

using namespace mlir;
using namespace mlir::attn;

void Slot::release() { ChannelReleaseOp::create(*b, channel, token, role); }

void Slot::splitInto(MutableArrayRef<Slot> parts) const {
  SmallVector<Type> types(parts.size(), token.getType());
  auto op = ChannelSplitOp::create(*b, types, channel, token, role);
  for (auto [part, right] : llvm::zip_equal(parts, op.getParts())) {
    part = *this;
    part.token = right;
  }
}

Slot Slot::join(ArrayRef<Slot> parts) {
  assert(!parts.empty() && "expected the parts of a slot");
  SmallVector<Value> tokens;
  for (const Slot &part : parts)
    tokens.push_back(part.token);
  Slot whole = parts.front();
  whole.token =
      ChannelJoinOp::create(*whole.b, whole.channel, tokens, whole.role);
  return whole;
}

Value Slot::in(Value ring, BufferType type) const {
  return SlotOp::create(*b, type, ring, index, /*distance=*/IntegerAttr());
}

HeldSlot &HeldSlot::operator=(Slot next) {
  token = next.getToken();
  return *this;
}

void HeldSlot::release() {
  Slot now = slot;
  now.token = token;
  now.release();
}

Pipe::Pipe(Control &control, Value channel, StringRef role)
    : control(&control), channel(channel), role(role),
      cursor(control, CursorStartOp::create(control.b, channel, role)) {}

Slot Pipe::acquire(StringAttr part, bool eachWarpgroup) {
  auto op = ChannelAcquireOp::create(control->b, channel, cursor.get(), role,
                                     part, eachWarpgroup);
  Slot slot;
  slot.b = &control->b;
  slot.channel = channel;
  slot.index = op.getIndex();
  slot.token = op.getToken();
  slot.role = role;
  return slot;
}

Slot Pipe::acquire() {
  return acquire(/*part=*/StringAttr(), /*eachWarpgroup=*/false);
}

Slot Pipe::take() {
  Slot slot = acquire();
  advance();
  return slot;
}

Slot Pipe::acquire(StringRef part) {
  return acquire(control->b.getStringAttr(part), /*eachWarpgroup=*/false);
}

Slot Pipe::acquireParts() {
  return acquire(/*part=*/StringAttr(), /*eachWarpgroup=*/true);
}

void Pipe::advance() {
  cursor = CursorAdvanceOp::create(control->b, cursor.get(), channel);
}
