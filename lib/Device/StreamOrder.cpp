//===- StreamOrder.cpp - What orders work of host and streams -------------===//

#include "attn/Device/StreamOrder.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::attn::device;
namespace sim = mlir::attn::sim;

void OrderClock::raise(uint32_t actor, uint32_t epoch) {
  if (actor >= epochs.size())
    epochs.resize(actor + 1);
  epochs[actor] = std::max(epochs[actor], epoch);
}

void OrderClock::join(const OrderClock &other) {
  for (auto [actor, epoch] : llvm::enumerate(other.epochs))
    raise(actor, epoch);
}

void AccessMap::split(uint64_t at) {
  auto it = cells.upper_bound(at);
  if (it == cells.begin())
    return;
  auto &[begin, cell] = *std::prev(it);
  if (begin == at || cell.end <= at)
    return;
  Cell rest = cell;
  cell.end = at;
  cells[at] = std::move(rest);
}

void AccessMap::access(const TurnRef &turn, const sim::TouchedRange &range,
                       Conflict conflict) {
  auto [begin, end, kind] = range;
  if (begin >= end)
    return;
  bool isWrite = kind != sim::TouchedRange::Read;
  bool isAtomic = kind == sim::TouchedRange::Atomic;
  split(begin);
  split(end);
  auto isUnordered = [&](const Turn &earlier) {
    return !turn->clock.covers(earlier.actor, earlier.epoch);
  };
  uint64_t next = begin;
  for (auto it = cells.lower_bound(begin); it != cells.end() && it->first < end;
       ++it) {
    Cell &cell = it->second;
    if (cell.write && !(isAtomic && cell.isAtomic) && isUnordered(*cell.write))
      conflict(*cell.write, /*wrote=*/true, it->first, cell.end);
    if (isWrite) {
      for (const auto &read : cell.reads)
        if (isUnordered(*read))
          conflict(*read, /*wrote=*/false, it->first, cell.end);
      continue;
    }
    if (it->first > next)
      cells[next] = {it->first, nullptr, false, {turn}};
    next = cell.end;
    // A later read of the same actor stands for its earlier ones.
    llvm::erase_if(cell.reads, [&](const auto &read) {
      return read->actor == turn->actor || !isUnordered(*read);
    });
    cell.reads.push_back(turn);
  }
  if (isWrite) {
    cells.erase(cells.lower_bound(begin), cells.lower_bound(end));
    cells[begin] = {end, turn, isAtomic, {}};
  } else if (next < end) {
    cells[next] = {end, nullptr, false, {turn}};
  }
}

void AccessMap::forget(uint64_t begin, uint64_t end) {
  split(begin);
  split(end);
  cells.erase(cells.lower_bound(begin), cells.lower_bound(end));
}

StreamOrder::StreamOrder() {
  actors.resize(1);
  actors[Host].isUsed = true;
}

uint32_t StreamOrder::addStream(StreamKind kind, const OrderClock &before) {
  uint32_t unused = 0;
  while (unused < actors.size() &&
         (actors[unused].isUsed || actors[unused].kind != kind ||
          !before.covers(unused, actors[unused].epoch)))
    ++unused;
  if (unused == actors.size())
    actors.emplace_back();
  actors[unused].kind = kind;
  actors[unused].isUsed = true;
  return unused;
}

void StreamOrder::dropStream(uint32_t actor) { actors[actor].isUsed = false; }

TurnRef StreamOrder::begin(uint32_t actor, Operation operation) {
  Actor &own = actors[actor];
  own.clock.join(actors[Host].clock);
  if (actor != Host && own.kind != StreamKind::NonBlocking)
    for (const Actor &other : llvm::drop_begin(actors))
      if (other.kind != StreamKind::NonBlocking &&
          (other.kind == StreamKind::Default ||
           own.kind == StreamKind::Default))
        own.clock.join(other.clock);
  own.clock.raise(actor, ++own.epoch);
  return std::make_shared<const Turn>(
      Turn{actor, own.epoch, own.clock, std::move(operation)});
}

OrderClock StreamOrder::record(uint32_t actor) const {
  OrderClock clock = actors[actor].clock;
  clock.join(actors[Host].clock);
  // Work of the default stream ends before later work of blocking ones.
  if (actors[actor].kind == StreamKind::Default)
    for (const Actor &other : llvm::drop_begin(actors))
      if (other.kind == StreamKind::Blocking)
        clock.join(other.clock);
  return clock;
}

void StreamOrder::wait(uint32_t actor, const OrderClock &clock) {
  actors[actor].clock.join(clock);
}

void StreamOrder::synchronise(uint32_t actor) {
  actors[Host].clock.join(record(actor));
}

void StreamOrder::synchroniseAll() {
  for (const Actor &actor : actors)
    actors[Host].clock.join(actor.clock);
}

void StreamOrder::access(const TurnRef &turn, const sim::TouchedRange &range,
                         std::vector<OrderRace> &races) {
  bool isWrite = range.kind != sim::TouchedRange::Read;
  accesses.access(
      turn, range,
      [&](const Turn &earlier, bool wrote, uint64_t first, uint64_t last) {
        races.push_back({earlier.operation, turn->operation, wrote, isWrite,
                         std::max(first, range.begin),
                         std::min(last, range.end)});
      });
}
