//===- Shadow.cpp - Cells with several readers ----------------------------===//

#include "Shadow.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::attn::sim;

void Shadow::addReader(uint64_t i, Cell &cell, const Stamp &stamp,
                       Observer &observer, unsigned maxReaders) {
  // Whoever is ordered after this read is ordered after that one too.
  auto isCovered = [&](const Stamp &r) {
    return !(r.flags & (Stamp::Async | Stamp::Strong)) && observer.knows(r);
  };
  llvm::SmallVector<Stamp, 4> *list = nullptr;
  if (cell.read.flags & HasMore) {
    list = &more[i];
    for (Stamp &r : *list)
      if (isSame(r, stamp))
        return update(r, stamp);
  }
  if (isCovered(cell.read)) {
    uint8_t keep = cell.read.flags & HasMore;
    cell.read = stamp;
    cell.read.flags |= keep;
    return;
  }
  if (!list) {
    list = &more[i];
    cell.read.flags |= HasMore;
  }
  for (Stamp &r : *list)
    if (isCovered(r)) {
      r = stamp;
      return;
    }
  if (list->size() + 1 < maxReaders) {
    list->push_back(stamp);
    return;
  }
  // Two clusters stay among the readers, if two have read: then no write can
  // come from the only one, and a conflict between clusters is not lost.
  if (stamp.cluster != cell.read.cluster &&
      llvm::all_of(*list, [&](const Stamp &r) {
        return r.cluster == cell.read.cluster;
      }))
    list->back() = stamp;
}
