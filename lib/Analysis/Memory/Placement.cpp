//===- Placement.cpp - Who lies where in a memory -------------------------===//

#include "attn/Analysis/Memory/Placement.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::MutableArrayRef;
using llvm::SmallVector;

/// Gives each item in `order` the lowest offset that is free. Returns the end
/// of the last one.
static int64_t placeInOrder(MutableArrayRef<PlacedItem *> items,
                            ArrayRef<size_t> order, LiveTogether liveTogether) {
  int64_t end = 0;
  for (size_t index : order)
    items[index]->offset.reset();
  for (size_t index : order) {
    PlacedItem &item = *items[index];
    SmallVector<const PlacedItem *> neighbours;
    for (auto [other, neighbour] : llvm::enumerate(items))
      if (neighbour->offset && liveTogether(index, other))
        neighbours.push_back(neighbour);
    llvm::sort(neighbours, [](const PlacedItem *a, const PlacedItem *b) {
      return *a->offset < *b->offset;
    });
    int64_t offset = 0;
    for (const PlacedItem *other : neighbours) {
      if (offset + item.size <= *other->offset)
        break;
      offset = std::max<int64_t>(offset,
                                 llvm::alignTo(other->end(), item.alignment));
    }
    item.offset = offset;
    end = std::max(end, item.end());
  }
  return end;
}

void mlir::attn::placeItems(MutableArrayRef<PlacedItem *> items,
                            LiveTogether liveTogether) {
  SmallVector<size_t> bySize;
  for (auto [index, item] : llvm::enumerate(items))
    if (!item->offset)
      bySize.push_back(index);
  llvm::stable_sort(bySize, [&](size_t a, size_t b) {
    return items[a]->size > items[b]->size;
  });
  SmallVector<size_t> byAlignment = bySize;
  llvm::stable_sort(byAlignment, [&](size_t a, size_t b) {
    return items[a]->alignment > items[b]->alignment;
  });
  int64_t end = placeInOrder(items, bySize, liveTogether);
  if (byAlignment != bySize &&
      placeInOrder(items, byAlignment, liveTogether) >= end)
    placeInOrder(items, bySize, liveTogether);
}

std::optional<size_t> mlir::attn::findOverlap(ArrayRef<PlacedItem *> items,
                                              size_t index,
                                              LiveTogether liveTogether) {
  for (size_t other = 0; other < index; ++other) {
    bool apart = items[other]->end() <= *items[index]->offset ||
                 items[index]->end() <= *items[other]->offset;
    if (!apart && liveTogether(index, other))
      return other;
  }
  return std::nullopt;
}
