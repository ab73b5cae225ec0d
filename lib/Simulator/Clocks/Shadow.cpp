//===- Shadow.cpp - Cells with several readers ----------------------------===//

#include "Shadow.h"

using namespace mlir::attn::sim;

uint32_t ReaderLists::makeOwn(uint32_t list) {
  if (list != None && lists[list].cells == 1)
    return list;
  uint32_t own;
  if (free.empty()) {
    own = lists.size();
    lists.emplace_back();
  } else {
    own = free.back();
    free.pop_back();
  }
  lists[own].readers = lists[list].readers;
  lists[own].cells = 1;
  release(list);
  return own;
}

Shadow Shadow::clone() const {
  Shadow copy;
  copy.init(count * granule, granule);
  std::memcpy(copy.cells.data(), cells.data(), count * sizeof(ShadowCell));
  copy.lists = lists;
  return copy;
}

void Shadow::addReader(ShadowCell &cell, ShadowAccess &access) {
  const Stamp &stamp = access.stamp;
  // Whoever is ordered after this read is ordered after that one too. Of an
  // asynchronous one that is not so: its end says nothing of what came before.
  constexpr uint8_t apart = Stamp::Async | Stamp::Strong;
  auto isCovered = [&](const Stamp &r) {
    return !((r.flags | stamp.flags) & apart) &&
           !(r.flags & ~stamp.flags & Stamp::ReadOnly) &&
           access.observer.knowsForAll(r);
  };
  auto change = [&]() -> llvm::SmallVectorImpl<Stamp> & {
    uint32_t own = lists.makeOwn(cell.more);
    // What is only this cell's is in the state of no other one.
    access.repeats &= own != cell.more;
    cell.more = own;
    return lists.getOwn(own);
  };
  llvm::ArrayRef<Stamp> more = lists.get(cell.more);
  int covered = -1;
  bool foreign = false;
  for (int i = more.size(); i-- > 0;) {
    const Stamp &r = more[i];
    if (isSame(r, stamp))
      return update(change()[i], stamp);
    if (covered < 0 && isCovered(r))
      covered = i;
    foreign |= r.cluster != cell.read.cluster;
  }
  if (isCovered(cell.read)) {
    cell.read = stamp;
    return;
  }
  if (covered >= 0) {
    change()[covered] = stamp;
    return;
  }
  if (more.size() + 1 >= access.maxReaders) {
    // Two clusters stay among the readers, if two have read: then no write can
    // come from the only one, and a conflict between clusters is not lost.
    if (stamp.cluster != cell.read.cluster && !foreign)
      change().back() = stamp;
    return;
  }
  change().push_back(stamp);
}

void Shadow::seed(uint64_t offset, uint64_t bytes, const TouchedRange &range) {
  Stamp stamp;
  stamp.epoch = 1;
  stamp.inst = 0;
  stamp.cluster = Stamp::EarlierLaunch;
  if (range.kind == TouchedRange::Atomic)
    stamp.flags = Stamp::Strong;
  uint64_t end = std::min(count, (offset + bytes + granule - 1) / granule);
  for (uint64_t i = offset / granule; i < end; ++i)
    (range.kind == TouchedRange::Read ? cells[i].read : cells[i].write) = stamp;
}

void GlobalShadow::make(Shadow &shadow, uint64_t page) const {
  shadow.init(PageBytes, granule);
  uint64_t begin = page * PageBytes, end = begin + PageBytes;
  const auto *it = llvm::partition_point(
      seeds, [&](const TouchedRange &range) { return range.end <= begin; });
  for (; it != seeds.end() && it->begin < end; ++it) {
    uint64_t from = std::max(it->begin, begin);
    shadow.seed(from - begin, std::min(it->end, end) - from, *it);
  }
}
