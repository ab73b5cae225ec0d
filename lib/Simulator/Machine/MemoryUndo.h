//===- MemoryUndo.h - Pages before they were written ------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_MACHINE_MEMORYUNDO_H
#define ATTN_LIB_SIMULATOR_MACHINE_MEMORYUNDO_H

#include "attn/Simulator/Machine/GlobalMemory.h"
#include <atomic>
#include <mutex>

namespace mlir::attn::sim {

/// Keeps what a MemoryUndo puts back of one allocation.
class UndoPages {
public:
  explicit UndoPages(Allocation &allocation);
  ~UndoPages();

  /// Keeps what is about to be written, here and in older ones. Usable from
  /// several host threads.
  void keep(uint64_t offset, uint64_t bytes);
  /// Puts it back, and begins anew.
  void restore();
  /// Returns the bytes that are kept.
  uint64_t countKept() const;

private:
  static constexpr uint64_t PageBytes = 4096;
  /// A page as it was. Without bytes that say what has been written: all were.
  struct Page {
    uint64_t offset;
    std::vector<uint8_t> bytes, valid;
  };

  Allocation &allocation;
  UndoPages *outer;
  /// One byte a page, 1 where it is kept; made when something is written.
  std::unique_ptr<std::atomic<uint8_t>[]> isKept;
  std::once_flag isMade;
  std::mutex mutex;
  std::vector<Page> pages;

  void keepPage(uint64_t page);
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_MACHINE_MEMORYUNDO_H
