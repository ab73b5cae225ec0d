//===- StreamOrder.h - What orders work of host and streams -----*- C++ -*-===//
//
// Host and streams are actors, as warps are inside of a launch (Clock.h): each
// counts its operations, and knows up to which of another's it comes after.
// Events carry that from stream to stream and to the host. Two operations on
// one place of memory, one of which writes, are a race where neither knows the
// other.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DEVICE_STREAMORDER_H
#define ATTN_DEVICE_STREAMORDER_H

#include "attn/Simulator/Machine/Report.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mlir::attn::device {

/// Something that host or stream does, for messages.
struct Operation {
  std::string what; ///< "kernel 'add' (launch 3)"
  std::string site; ///< the caller's line, if it has said so
};

/// Up to which operation of each actor something comes after.
class OrderClock {
public:
  bool covers(uint32_t actor, uint32_t epoch) const {
    return actor < epochs.size() && epochs[actor] >= epoch;
  }
  void raise(uint32_t actor, uint32_t epoch);
  void join(const OrderClock &other);

private:
  std::vector<uint32_t> epochs;
};

/// An operation that runs: who does it, and what it comes after.
struct Turn {
  uint32_t actor = 0, epoch = 0;
  OrderClock clock;
  Operation operation;
};

using TurnRef = std::shared_ptr<const Turn>;

/// Two operations that nothing orders.
struct OrderRace {
  Operation earlier, later;
  bool earlierWrites = false, laterWrites = false;
  uint64_t begin = 0, end = 0;
};

/// Remembers who read and wrote each part of memory last.
class AccessMap {
public:
  using Conflict = llvm::function_ref<void(const Turn &earlier, bool wrote,
                                           uint64_t begin, uint64_t end)>;
  /// Notes what an operation touches, and calls `conflict` for each earlier
  /// access that it does not come after. Atomics do not conflict with others.
  void access(const TurnRef &turn, const sim::TouchedRange &range,
              Conflict conflict);
  /// Forgets a part, as when memory gets a new owner.
  void forget(uint64_t begin, uint64_t end);
  size_t size() const { return cells.size(); }

private:
  struct Cell {
    uint64_t end = 0;
    TurnRef write;
    bool isAtomic = false; ///< the write
    llvm::SmallVector<TurnRef, 1> reads;
  };
  using Cells = std::map<uint64_t, Cell>;
  /// Makes `at` the border of two cells where it is inside of one.
  void split(uint64_t at);

  Cells cells;
};

/// How a stream goes with the default stream of its device.
enum class StreamKind {
  Default,     ///< it waits for all blocking ones, and they for it
  Blocking,    ///< made without a flag
  NonBlocking, ///< ordered by events alone
};

/// The happens-before relation of a device's host, streams and events.
class StreamOrder {
public:
  StreamOrder();

  /// Adds a stream that comes after what the host has waited for, or after
  /// what `before` knows, and returns its actor.
  uint32_t addStream(StreamKind kind) {
    return addStream(kind, actors[Host].clock);
  }
  uint32_t addStream(StreamKind kind, const OrderClock &before);
  /// Gives its actor to another stream of its kind that comes after it.
  void dropStream(uint32_t actor);

  /// Returns true once the host has waited for the operation.
  bool isOver(const Turn &turn) const {
    return actors[Host].clock.covers(turn.actor, turn.epoch);
  }

  /// Begins an operation of a stream, or of the host.
  TurnRef begin(uint32_t actor, Operation operation);
  static constexpr uint32_t Host = 0;

  /// Returns what comes before an event that is recorded in a stream now.
  OrderClock record(uint32_t actor) const;
  /// The actor comes after what `clock` knows, and nothing else.
  void reset(uint32_t actor, const OrderClock &clock) {
    actors[actor].clock = clock;
  }
  /// Later work of the actor comes after what `clock` knows.
  void wait(uint32_t actor, const OrderClock &clock);
  /// The host waits for a stream, or for all.
  void synchronise(uint32_t actor);
  void synchroniseAll();

  /// Notes that an operation touches memory; races are added to `races`.
  void access(const TurnRef &turn, const sim::TouchedRange &range,
              std::vector<OrderRace> &races);
  void forget(uint64_t begin, uint64_t end) { accesses.forget(begin, end); }

private:
  struct Actor {
    StreamKind kind = StreamKind::NonBlocking;
    bool isUsed = false;
    uint32_t epoch = 0;
    OrderClock clock;
  };
  std::vector<Actor> actors;
  AccessMap accesses;
};

} // namespace mlir::attn::device

#endif // ATTN_DEVICE_STREAMORDER_H
