//===- Shadow.cpp - Cells with several readers ----------------------------===//

#include "Shadow.h"

using namespace mlir::attn::sim;

void Shadow::addReader(uint64_t i, Cell &cell, const Stamp &stamp,
                       Observer &observer, unsigned maxReaders) {
  // Whoever is ordered after this read is ordered after that one too.
  auto isCovered = [&](const Stamp &r) {
    return !(r.flags & (Stamp::Async | Stamp::Strong)) && observer.knows(r);
  };
  if (!heads)
    heads.reset(static_cast<uint32_t *>(std::calloc(count, sizeof(uint32_t))));
  unsigned readers = 1;
  uint32_t covered = 0, foreign = 0;
  for (uint32_t n = heads[i]; n; n = pool[n].next) {
    Stamp &r = pool[n].stamp;
    if (isSame(r, stamp))
      return update(r, stamp);
    if (!covered && isCovered(r))
      covered = n;
    if (r.cluster != cell.read.cluster)
      foreign = n;
    ++readers;
  }
  if (isCovered(cell.read)) {
    uint8_t keep = cell.read.flags & HasMore;
    cell.read = stamp;
    cell.read.flags |= keep;
    return;
  }
  if (covered) {
    pool[covered].stamp = stamp;
    return;
  }
  if (readers >= maxReaders) {
    // Two clusters stay among the readers, if two have read: then no write can
    // come from the only one, and a conflict between clusters is not lost.
    if (stamp.cluster != cell.read.cluster && !foreign)
      pool[heads[i]].stamp = stamp;
    return;
  }
  uint32_t n = freeList;
  if (n) {
    freeList = pool[n].next;
  } else {
    n = pool.size();
    pool.emplace_back();
  }
  pool[n].stamp = stamp;
  pool[n].next = heads[i];
  heads[i] = n;
  cell.read.flags |= HasMore;
}
