//===- ShadowStates.cpp - States that cells of a shadow share -------------===//

#include "ShadowStates.h"

using namespace mlir::attn::sim;

uint32_t ReaderLists::copy(uint32_t list) {
  uint32_t own;
  if (free.empty()) {
    lists.emplace_back();
    own = lists.size();
  } else {
    own = free.back();
    free.pop_back();
  }
  List &to = lists[own - 1];
  if (list == None)
    to.readers.clear();
  else
    to.readers = lists[list - 1].readers;
  to.states = 1;
  return own;
}

llvm::SmallVectorImpl<Stamp> &ShadowStates::changeReaders(ShadowCell cell,
                                                          ShadowState &state) {
  bool isOwn = state.more != ReaderLists::None && !lists.isShared(state.more) &&
               entries[cell.getState()].cells == 1;
  if (!isOwn)
    state.more = lists.copy(state.more);
  return lists.getOwn(state.more);
}

uint32_t ShadowStates::find(const Entry &entry, uint32_t own) const {
  if (own && areIdentical(entries[own], entry))
    return own;
  for (unsigned i = 0; i < NumRecent; ++i) {
    uint32_t state = recent[(newest - i) % NumRecent];
    if (entries[state].cells && areIdentical(entries[state], entry))
      return state;
  }
  return 0;
}

uint32_t ShadowStates::add(const Entry &entry) {
  uint32_t state;
  if (free.empty()) {
    state = entries.size();
    assert(state < 1u << ShadowCell::StateBits && "more states than cells");
    entries.push_back(entry);
  } else {
    state = free.back();
    free.pop_back();
    entries[state] = entry;
  }
  recent[++newest % NumRecent] = state;
  return state;
}

ShadowCell ShadowStates::change(ShadowCell cell, const ShadowState &to) {
  ++version;
  Entry entry{to.write, to.read, to.more};
  entry.write.lane = entry.read.lane = Stamp::AllLanes;
  // Its list is new, or the one of the state before.
  uint32_t before = cell.getState();
  bool isNew = entry.more != entries[before].more;
  uint32_t after = find(entry, before);
  if (!after) {
    if (!isNew)
      lists.retain(entry.more);
    after = add(entry);
  } else if (isNew) {
    lists.release(entry.more);
  }
  move(before, after, 1);
  return ShadowCell(after, to.write.epoch ? to.write.lane : 0,
                    to.read.epoch ? to.read.lane : 0);
}
