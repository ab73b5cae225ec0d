//===- Pipe.h - A role's end of a channel -----------------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_KERNEL_PIPE_H
#define ATTN_LIB_SCHEDULE_KERNEL_PIPE_H

#include "Control.h"

namespace mlir::attn {

/// A slot of a channel that a role has acquired.
class Slot {
public:
  Slot() = default;
  explicit operator bool() const { return b; }

  /// Hands the slot to the next role.
  void release();
  Value getToken() const { return token; }
  /// Returns the slot's place in its ring.
  Value getIndex() const { return index; }
  /// Returns the slot's part of `ring`, whose slots are of type `type`.
  Value in(Value ring, BufferType type) const;

private:
  friend class Pipe;

  ImplicitLocOpBuilder *b = nullptr;
  Value channel, index, token;
  StringRef role;
};

/// A role's end of a channel. It owns the role's cursor.
class Pipe {
public:
  /// Opens the channel's end of `role` at its first slot.
  Pipe(Control &control, Value channel, StringRef role);

  /// Waits until the role before has handed over the slot at the cursor.
  Slot acquire();
  /// Does so for each warpgroup's part of the slot, whose warpgroup alone waits
  /// for it and hands it on.
  Slot acquireParts();
  /// Moves the cursor to the next slot.
  void advance();

private:
  Slot acquire(bool eachWarpgroup);

  Control *control;
  Value channel;
  StringRef role;
  Var cursor;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_KERNEL_PIPE_H
