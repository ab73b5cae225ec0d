//===- Pipe.h - A role's end of a channel -----------------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_KERNEL_PIPE_H
#define ATTN_LIB_SCHEDULE_KERNEL_PIPE_H

#include "attn/Schedule/Kernel/Control.h"
#include <array>

namespace mlir::attn {

/// A slot of a channel that a role has acquired.
class Slot {
public:
  Slot() = default;
  explicit operator bool() const { return b; }

  /// Hands the slot to the next role.
  void release();
  /// Divides the slot into the `N` parts in which its role hands it on, in the
  /// order in which the channel names them. Each is released by itself.
  template <size_t N>
  std::array<Slot, N> split() const {
    std::array<Slot, N> parts;
    splitInto(parts);
    return parts;
  }
  /// Makes a whole slot of all its parts, which were acquired one by one.
  static Slot join(ArrayRef<Slot> parts);
  Value getToken() const { return token; }
  /// Returns the slot's place in its ring.
  Value getIndex() const { return index; }
  /// Returns the slot's part of `ring`, whose slots are of type `type`.
  Value in(Value ring, BufferType type) const;

private:
  friend class Pipe;
  friend class HeldSlot;

  void splitInto(MutableArrayRef<Slot> parts) const;

  ImplicitLocOpBuilder *b = nullptr;
  Value channel, index, token;
  StringRef role;
};

/// A slot that another iteration of a loop releases than acquired it, so that
/// the loop carries the right to it.
class HeldSlot {
public:
  HeldSlot(Control &control, Slot slot)
      : slot(slot), token(control, slot.getToken()) {}

  /// Holds another slot of the channel; the one before has been released.
  HeldSlot &operator=(Slot next);
  /// Hands the slot to the next role.
  void release();

private:
  Slot slot;
  Var token;
};

/// A role's end of a channel. It owns the role's cursor.
class Pipe {
public:
  /// Opens the channel's end of `role` at its first slot.
  Pipe(Control &control, Value channel, StringRef role);

  /// Waits until the role before has handed over the slot at the cursor.
  Slot acquire();
  /// Waits for that slot and moves the cursor to the next one.
  Slot take();
  /// Waits for the part `part` of that slot, which the role before hands over
  /// by itself.
  Slot acquire(StringRef part);
  /// Waits in each warpgroup for the part of the warpgroup's number, which it
  /// hands on by itself.
  Slot acquireParts();
  /// Moves the cursor to the next slot.
  void advance();

private:
  Slot acquire(StringAttr part, bool eachWarpgroup);

  Control *control;
  Value channel;
  StringRef role;
  Var cursor;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_KERNEL_PIPE_H
