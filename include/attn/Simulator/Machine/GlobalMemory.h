//===- GlobalMemory.h - Simulated global memory -----------------*- C++ -*-===//
//
// Allocations of simulated global memory with bounds and a byte beside each
// byte that says whether it has been written. A memory makes storage and
// addresses that look like a GPU's, or takes storage of others at the address
// that a program knows it by. What launches change can be undone; that costs as
// much as they write.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SIMULATOR_MACHINE_GLOBALMEMORY_H
#define ATTN_SIMULATOR_MACHINE_GLOBALMEMORY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mlir::attn::sim {

class MemoryUndo;
class UndoPages;

/// What a kernel may do with an allocation.
enum class Access { Read, ReadWrite };

/// Points to bytes that an allocation does not own. They have to live as long
/// as the allocation does.
struct Storage {
  uint8_t *bytes = nullptr;
  /// One byte each: 1 where it has been written. Null: all of them are.
  uint8_t *valid = nullptr;
  uint64_t size = 0;
};

/// One allocation.
struct Allocation {
  std::string name;
  uint64_t address = 0;
  Access access = Access::ReadWrite;
  Storage storage;
  /// Holds the bytes of an allocation that owns them.
  std::vector<uint8_t> ownBytes, ownValid;
  /// Keeps bytes that writes replace, the newest first; null: nothing does.
  UndoPages *undo = nullptr;

  uint64_t size() const { return storage.size; }
  /// Returns whether it holds [at, at + bytes).
  bool contains(uint64_t at, uint64_t bytes) const {
    uint64_t offset = at - address;
    return offset <= storage.size && bytes <= storage.size - offset;
  }
  llvm::ArrayRef<uint8_t> getBytes() const {
    return {storage.bytes, size_t(storage.size)};
  }
  /// Returns whether the byte has been written.
  bool isValid(uint64_t offset) const {
    return !storage.valid || storage.valid[offset];
  }
  /// Returns what says of bytes from `offset` on whether they have been
  /// written; null where all are.
  uint8_t *validAt(uint64_t offset) const {
    return storage.valid ? storage.valid + offset : nullptr;
  }
  /// Returns the bytes from `offset` on, to be written now.
  uint8_t *startWrite(uint64_t offset, uint64_t bytes);
};

/// An allocation that is no more.
struct FreedAllocation {
  std::string name;
  uint64_t address = 0, size = 0;
  std::string where; ///< that freed it, may be empty
};

/// Simulated global memory. Contents survive between launches, so several
/// kernels can work on the same tensors. Not for concurrent use by two runs.
class Memory {
public:
  /// Reserves `bytes` bytes, uninitialised (filled with 0xCB), at an address
  /// that is a multiple of `align` (a power of two, at least 256 is used).
  /// Guard gaps keep neighbours apart. Zero bytes are allowed.
  uint64_t allocate(uint64_t bytes, llvm::StringRef name, uint64_t align = 256);

  /// Takes storage of others at an address of the caller's choice; nothing is
  /// copied. An error where it meets another allocation.
  llvm::Expected<Allocation *> adopt(uint64_t address, const Storage &storage,
                                     llvm::StringRef name);

  /// Declares what kernels may do with the allocation that holds `address`.
  llvm::Error setAccess(uint64_t address, Access access);

  /// Copies host bytes in and marks them initialised.
  llvm::Error write(uint64_t address, llvm::ArrayRef<uint8_t> data);
  /// Copies bytes out, initialised or not.
  llvm::Error read(uint64_t address, llvm::MutableArrayRef<uint8_t> data) const;
  /// Sets bytes to one value and marks them initialised.
  llvm::Error fill(uint64_t address, uint64_t bytes, uint8_t value);
  /// Number of bytes in the range that were never written.
  llvm::Expected<uint64_t> countUninitialised(uint64_t address,
                                              uint64_t bytes) const;

  /// The allocation that holds [address, address + bytes), or null.
  Allocation *find(uint64_t address, uint64_t bytes = 1);
  const Allocation *find(uint64_t address, uint64_t bytes = 1) const;
  /// The allocation that lies next below or around the address, or null: for
  /// messages about accesses out of bounds.
  const Allocation *findNear(uint64_t address) const;
  /// Returns what was freed last around the address, or null.
  const FreedAllocation *findFreed(uint64_t address) const;

  /// Removes the allocation that starts at `address`. Its place is kept in mind
  /// until another one takes it; `where` says who frees it.
  llvm::Error release(uint64_t address, llvm::StringRef where = "");
  /// Removes it as if it had never been.
  llvm::Error forget(uint64_t address);

private:
  friend class MemoryUndo;
  llvm::Expected<std::unique_ptr<Allocation>> take(uint64_t address);

  std::map<uint64_t, std::unique_ptr<Allocation>> allocations;
  std::map<uint64_t, FreedAllocation> freed;
  /// The newest one.
  MemoryUndo *undo = nullptr;
  uint64_t next = 0x0000000700000000;
};

/// Keeps what is written from its making on, in pages as they are written
/// first, to put it back. Several nest: the newest one goes first. Allocations
/// that are made meanwhile are not undone.
class MemoryUndo {
public:
  explicit MemoryUndo(Memory &memory);
  ~MemoryUndo();
  MemoryUndo(const MemoryUndo &) = delete;
  MemoryUndo &operator=(const MemoryUndo &) = delete;

  /// Puts back what there was, in allocations that are there still, and begins
  /// anew.
  void restore();
  /// Returns the bytes that are kept.
  uint64_t countKept() const;

private:
  friend class Memory;
  Memory &memory;
  MemoryUndo *outer;
  std::map<uint64_t, std::unique_ptr<UndoPages>> pages;
};

} // namespace mlir::attn::sim

#endif // ATTN_SIMULATOR_MACHINE_GLOBALMEMORY_H
