//===- Shadow.cpp - Cells with several readers ----------------------------===//

#include "Shadow.h"

using namespace mlir::attn::sim;

Shadow Shadow::clone() const {
  Shadow copy;
  copy.init(count * granule, granule);
  std::memcpy(copy.cells.data(), cells.data(), count * sizeof(ShadowCell));
  copy.states = states;
  return copy;
}

void Shadow::addReader(ShadowCell cell, ShadowState &state,
                       ShadowAccess &access) {
  const Stamp &stamp = access.stamp;
  // Whoever is ordered after this read is ordered after that one too. Of an
  // asynchronous one that is not so: its end says nothing of what came before.
  constexpr uint16_t apart = Stamp::Async | Stamp::Strong | Stamp::Written;
  auto isCovered = [&](const Stamp &r) {
    return !((r.flags | stamp.flags) & apart) &&
           !(r.flags & ~stamp.flags & Stamp::ReadOnly) &&
           access.observer.knowsForAll(r);
  };
  auto change = [&]() -> llvm::SmallVectorImpl<Stamp> & {
    // The list says which lane it was.
    access.last.forLanes = false;
    return states.changeReaders(cell, state);
  };
  access.last.stays |= ShadowCell::ReadLane;
  llvm::ArrayRef<Stamp> more = states.getReaders(state);
  int covered = -1;
  bool foreign = false;
  for (int i = more.size(); i-- > 0;) {
    const Stamp &r = more[i];
    if (isSame(r, stamp))
      return update(change()[i], access);
    if (covered < 0 && isCovered(r))
      covered = i;
    foreign |= r.cluster != state.read.cluster;
  }
  if (isCovered(state.read)) {
    access.last.stays &= ~ShadowCell::ReadLane;
    state.read = stamp;
    return;
  }
  if (covered >= 0) {
    change()[covered] = stamp;
    return;
  }
  if (more.size() + 1 >= access.maxReaders) {
    // Two clusters stay among the readers, if two have read: then no write can
    // come from the only one, and a conflict between clusters is not lost.
    if (stamp.cluster != state.read.cluster && !foreign)
      change().back() = stamp;
    return;
  }
  change().push_back(stamp);
}

void Shadow::keepPlainWrite(ShadowCell cell, ShadowState &state,
                            const Stamp &before, ShadowAccess &access) {
  bool isStrong = access.stamp.flags & Stamp::Strong;
  bool hides = isStrong && before.epoch && !(before.flags & Stamp::Strong);
  llvm::ArrayRef<Stamp> readers = states.getReaders(state);
  const Stamp *kept = llvm::find_if(readers, isWritten);
  if (!hides && (!isStrong || kept == readers.end())) {
    state.more = ReaderLists::None;
    return;
  }
  if (!hides && readers.size() == 1)
    return;
  Stamp written = hides ? before : *kept;
  written.flags |= Stamp::Written;
  states.changeReaders(cell, state).assign(1, written);
  // The list says which lane it was.
  access.observer.usedLanes = true;
}

void Shadow::seed(uint64_t offset, uint64_t bytes, const TouchedRange &range,
                  uint32_t epoch) {
  Stamp stamp;
  stamp.epoch = epoch;
  stamp.inst = 0;
  stamp.cluster = Stamp::EarlierLaunch;
  if (range.kind == TouchedRange::Atomic)
    stamp.flags = Stamp::Strong;
  uint64_t end = std::min(count, (offset + bytes + granule - 1) / granule);
  for (uint64_t i = offset / granule; i < end; ++i) {
    ShadowState state = states.get(cells[i]);
    (range.kind == TouchedRange::Read ? state.read : state.write) = stamp;
    cells[i] = states.change(cells[i], state);
  }
}

void GlobalShadow::make(Shadow &shadow, uint64_t page) const {
  shadow.init(PageBytes, granule);
  uint64_t begin = page * PageBytes, end = begin + PageBytes;
  for (auto [index, ranges] : llvm::enumerate(seeds)) {
    const auto *it = llvm::partition_point(
        ranges, [&](const TouchedRange &range) { return range.end <= begin; });
    for (; it != ranges.end() && it->begin < end; ++it) {
      uint64_t from = std::max(it->begin, begin);
      shadow.seed(from - begin, std::min(it->end, end) - from, *it, index + 1);
    }
  }
}
