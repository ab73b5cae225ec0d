//===- MemoryUndo.cpp - Pages before they were written --------------------===//

#include "MemoryUndo.h"
#include <algorithm>
#include <cstring>

using namespace mlir::attn::sim;

UndoPages::UndoPages(Allocation &allocation)
    : allocation(allocation), outer(allocation.undo) {
  allocation.undo = this;
}

UndoPages::~UndoPages() { allocation.undo = outer; }

void UndoPages::keepPage(uint64_t page) {
  std::lock_guard<std::mutex> lock(mutex);
  if (isKept[page].load(std::memory_order_relaxed))
    return;
  uint64_t begin = page * PageBytes;
  uint64_t end = std::min(begin + PageBytes, allocation.size());
  Page kept{begin, {}, {}};
  kept.bytes.assign(allocation.storage.bytes + begin,
                    allocation.storage.bytes + end);
  if (const uint8_t *valid = allocation.validAt(begin))
    kept.valid.assign(valid, valid + (end - begin));
  pages.push_back(std::move(kept));
  // Others that write to the page go on behind this.
  isKept[page].store(1, std::memory_order_release);
}

void UndoPages::keep(uint64_t offset, uint64_t bytes) {
  if (!bytes)
    return;
  std::call_once(isMade, [&] {
    isKept = std::make_unique<std::atomic<uint8_t>[]>(
        (allocation.size() + PageBytes - 1) / PageBytes);
  });
  for (uint64_t page = offset / PageBytes,
                last = (offset + bytes - 1) / PageBytes;
       page <= last; ++page)
    if (!isKept[page].load(std::memory_order_acquire))
      keepPage(page);
  if (outer)
    outer->keep(offset, bytes);
}

void UndoPages::restore() {
  for (const Page &page : pages) {
    std::copy(page.bytes.begin(), page.bytes.end(),
              allocation.storage.bytes + page.offset);
    if (uint8_t *valid = allocation.validAt(page.offset))
      std::copy(page.valid.begin(), page.valid.end(), valid);
    isKept[page.offset / PageBytes] = 0;
  }
  pages.clear();
}

uint64_t UndoPages::countKept() const {
  uint64_t sum = 0;
  for (const Page &page : pages)
    sum += page.bytes.size();
  return sum;
}

uint8_t *Allocation::startWrite(uint64_t offset, uint64_t bytes) {
  if (undo)
    undo->keep(offset, bytes);
  return storage.bytes + offset;
}

MemoryUndo::MemoryUndo(Memory &memory) : memory(memory), outer(memory.undo) {
  memory.undo = this;
  for (auto &[address, allocation] : memory.allocations)
    if (allocation->access != Access::Read)
      pages[address] = std::make_unique<UndoPages>(*allocation);
}

MemoryUndo::~MemoryUndo() { memory.undo = outer; }

void MemoryUndo::restore() {
  for (auto &[address, each] : pages)
    each->restore();
}

uint64_t MemoryUndo::countKept() const {
  uint64_t sum = 0;
  for (const auto &[address, each] : pages)
    sum += each->countKept();
  return sum;
}
