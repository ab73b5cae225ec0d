//===- RingPositions.cpp - Slots of rings from one iteration to the next --===//

#include "RingPositions.h"
#include "RingIndex.h"
#include "attn/Analysis/Flow/RegionPaths.h"

using namespace mlir;
using namespace mlir::attn;

Region &attn::getRingBody(LoopLikeOpInterface loop) {
  return *loop.getLoopRegions().front();
}

/// The innermost loop of one region around a slot: one that a ring is walked
/// by.
static LoopLikeOpInterface getRingLoop(SlotOp slot) {
  for (Operation *op = slot->getParentOp(); op; op = op->getParentOp())
    if (isSequentialLoop(op) && op->getNumRegions() == 1)
      return cast<LoopLikeOpInterface>(op);
  return {};
}

/// The one carried value of the enclosing loop from which the slot's index is
/// computed, or null.
Value RingPositions::getCursor(SlotOp slot) {
  LoopLikeOpInterface loop = getRingLoop(slot);
  if (!loop)
    return {};
  if (auto found = cursors.find(slot); found != cursors.end())
    return found->second;
  Value cursor;
  bool isUnique = true;
  SmallVector<Value> worklist = {slot.getIndex()};
  DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!seen.insert(value).second ||
        !getRingBody(loop).isAncestor(value.getParentRegion()))
      continue;
    if (Operation *def = value.getDefiningOp()) {
      llvm::append_range(worklist, def->getOperands());
      continue;
    }
    isUnique &= !cursor;
    cursor = value;
  }
  return cursors[slot] = isUnique ? cursor : Value();
}

/// Where a slot is, as its op or its index says.
RingPosition RingPositions::getPosition(SlotOp slot) {
  if (std::optional<uint64_t> distance = slot.getDistance()) {
    Value cursor = getCursor(slot);
    return cursor ? RingPosition{cursor, wrap(*distance, getDepth(slot))}
                  : RingPosition();
  }
  RingIndex index = getRingIndex(slot.getIndex(), getDepth(slot));
  // A constant index is told apart by its bytes.
  return index.base ? RingPosition{index.base, index.distance} : RingPosition();
}

/// The cursor of the ring's slots directly in `loop` that say their distance,
/// if there is just one.
Value RingPositions::getRingCursor(LoopLikeOpInterface loop, Value ring) {
  Value cursor;
  bool isUnique = true;
  loop->walk([&](SlotOp slot) {
    if (slot.getSource() != ring || !slot.getDistance() ||
        getRingLoop(slot) != loop)
      return;
    Value own = getCursor(slot);
    isUnique &= own && (!cursor || cursor == own);
    cursor = own;
  });
  return isUnique ? cursor : Value();
}

/// The cursor by which a slot of the ring in `loop` is found, a counter or a
/// carried value of it; null if there is none.
Value RingPositions::getRingBase(LoopLikeOpInterface loop, Value ring) {
  auto [entry, isNew] = bases.try_emplace({loop, ring});
  if (!isNew)
    return entry->second;
  Value found = getRingCursor(loop, ring);
  loop->walk([&](SlotOp slot) {
    Value base = found || slot.getSource() != ring || slot.getDistance()
                     ? Value()
                     : getPosition(slot).cursor;
    auto argument = dyn_cast_or_null<BlockArgument>(base);
    if (argument && argument.getOwner() == &getRingBody(loop).front())
      found = base;
  });
  return bases[{loop, ring}] = found;
}

RingPosition RingPositions::enter(LoopLikeOpInterface loop,
                                  const SharedAccess &access,
                                  RingPosition position) {
  SlotOp slot = access.slot;
  if (!slot)
    return position;
  Value cursor = getRingBase(loop, slot.getSource());
  int64_t depth = getDepth(slot);
  std::optional<RingIndex> first =
      cursor ? getFirstRingIndex(cursor, depth) : std::nullopt;
  if (!first)
    return position;
  if (position.cursor && position.cursor == first->base)
    return {cursor, wrap(position.distance - first->distance, depth)};
  if (!position.cursor && access.slotIndex && !first->base)
    return {cursor, wrap(*access.slotIndex - first->distance, depth)};
  return position;
}

RingPosition RingPositions::iterate(LoopLikeOpInterface loop,
                                    const SharedAccess &access,
                                    RingPosition position) {
  if (!position.cursor ||
      !getRingBody(loop).isAncestor(position.cursor.getParentRegion()))
    return position;
  SlotOp slot = access.slot;
  int64_t depth = getDepth(slot);
  Value own = getRingCursor(loop, slot.getSource());
  // By the meaning of `distance`.
  if (own == position.cursor)
    return {own, wrap(position.distance - 1, depth)};
  if (position.cursor == getCounter(loop)) {
    std::optional<int64_t> step = getCounterStep(loop);
    return step ? RingPosition{position.cursor,
                               wrap(position.distance - *step, depth)}
                : RingPosition();
  }
  // A cursor that is moved on, by this loop or by one inside, and carried.
  for (auto [argument, yielded] :
       llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues())) {
    RingIndex next = getRingIndex(yielded, depth);
    if (yielded == position.cursor || next.base == position.cursor)
      return {argument, yielded == position.cursor
                            ? position.distance
                            : wrap(position.distance - next.distance, depth)};
  }
  return {};
}

/// The slot's position behind the loop, where a counter is known.
RingPosition RingPositions::leave(LoopLikeOpInterface loop,
                                  SharedAccess &access, RingPosition position) {
  if (!position.cursor ||
      !getRingBody(loop).isAncestor(position.cursor.getParentRegion()))
    return position;
  auto argument = dyn_cast<BlockArgument>(position.cursor);
  if (argument && argument.getOwner() == &getRingBody(loop).front() &&
      loop.getTiedLoopInit(argument))
    return {loop.getTiedLoopResult(argument), position.distance};
  std::optional<int64_t> end = getCounterEnd(loop);
  if (position.cursor != getCounter(loop) || !end)
    return {};
  int64_t depth = getDepth(access.slot);
  int64_t index = wrap(*end + position.distance, depth);
  narrowToSlot(access, index);
  return {Value(), index};
}
