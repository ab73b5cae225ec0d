//===- Placement.h - Who lies where in a memory -----------------*- C++ -*-===//
//
// First fit: items that are live at the same time get disjoint ranges of a
// memory, whatever its unit is (bytes of shared memory, columns of tensor
// memory).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_MEMORY_PLACEMENT_H
#define ATTN_ANALYSIS_MEMORY_PLACEMENT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>
#include <optional>

namespace mlir::attn {

/// Something that takes `size` units from a multiple of `alignment` on.
struct PlacedItem {
  int64_t size = 0;
  int64_t alignment = 1;
  std::optional<int64_t> offset;

  int64_t end() const { return *offset + size; }
};

/// True if two items, by their index, are live at the same time.
using LiveTogether = llvm::function_ref<bool(size_t, size_t)>;

/// Gives the items that have no offset the lowest ones that are free: the
/// largest first, or those of the largest alignment, which leaves no gaps
/// between items that are live together, where that takes less. Items of one
/// size keep their order.
void placeItems(llvm::MutableArrayRef<PlacedItem *> items,
                LiveTogether liveTogether);

/// The first of the items before `index` that has units of it and is live at
/// the same time. All of them have offsets.
std::optional<size_t> findOverlap(llvm::ArrayRef<PlacedItem *> items,
                                  size_t index, LiveTogether liveTogether);

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_MEMORY_PLACEMENT_H
