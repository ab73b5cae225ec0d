//===- DeviceMemory.h - Memory that programs and kernels share --*- C++ -*-===//
//
// Device memory is memory of the process: a kernel's address is the host's. It
// comes from a range that is reserved once, in pages that cost nothing until
// they are touched, and a place that was freed is used again as late as
// possible. Memory of the host is known once it is registered.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DEVICE_DEVICEMEMORY_H
#define ATTN_DEVICE_DEVICEMEMORY_H

#include "attn/Device/Status.h"
#include "attn/Simulator/Machine/GlobalMemory.h"
#include <deque>
#include <map>

namespace mlir::attn::device {

/// Where an address points.
enum class MemoryKind {
  Unknown,    ///< nobody has told
  Device,     ///< allocated
  Host,       ///< allocated for the host, pinned
  Registered, ///< of the host, registered
};

class DeviceMemory {
public:
  explicit DeviceMemory(uint64_t capacity);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  /// Reserves bytes that nobody has written. `name` is what reports call them.
  llvm::Expected<uint64_t> allocate(uint64_t bytes, llvm::StringRef name,
                                    MemoryKind kind = MemoryKind::Device);
  /// Frees what starts at `address`; `where` says who does it.
  llvm::Error free(uint64_t address, MemoryKind kind, llvm::StringRef where);
  /// Lets kernels use memory of the host, where it is, until it has been
  /// unregistered as often as registered. Ranges may overlap: they are one
  /// memory then.
  llvm::Error registerHost(uint64_t address, uint64_t bytes,
                           llvm::StringRef name);
  llvm::Error unregisterHost(uint64_t address);

  /// Returns what the address is in, and the bounds of that.
  MemoryKind classify(uint64_t address) const;
  const sim::Allocation *find(uint64_t address, uint64_t bytes = 1) const {
    return memory.find(address, bytes);
  }

  /// Copies bytes, and whether they have been written. Memory of the host that
  /// nobody has registered is as good as registered.
  llvm::Error copy(uint64_t to, uint64_t from, uint64_t bytes);
  /// Repeats a pattern of 1, 2 or 4 bytes `count` times.
  llvm::Error fill(uint64_t to, uint32_t pattern, unsigned width,
                   uint64_t count);

  sim::Memory &getMemory() { return memory; }
  uint64_t getCapacity() const { return capacity; }
  uint64_t getUsed() const { return used; }

private:
  /// One allocation of the range, with the red zone behind it.
  struct Block {
    uint64_t bytes = 0, extent = 0;
    MemoryKind kind = MemoryKind::Device;
  };
  /// A range of the host.
  struct Registration {
    uint64_t bytes = 0;
    std::string name;
  };
  /// Takes a place of the range; 0 where there is none.
  uint64_t takePlace(uint64_t extent);
  bool isReserved(uint64_t address) const;
  /// Makes allocations of the registered ranges that touch [begin, end) anew.
  llvm::Error rebuild(uint64_t begin, uint64_t end);
  llvm::Error checkRange(uint64_t address, uint64_t bytes,
                         llvm::StringRef what) const;

  sim::Memory memory;
  uint64_t capacity, used = 0;
  /// The range: bytes, and one byte for each that says whether it was written.
  uint8_t *bytes = nullptr, *valid = nullptr;
  uint64_t reserved = 0, next = 0;
  std::map<uint64_t, Block> blocks;
  /// Freed places, by size; the oldest comes first.
  std::map<uint64_t, std::deque<uint64_t>> freed;
  std::multimap<uint64_t, Registration> registered;
  /// Starts and ends of what kernels see of them.
  std::map<uint64_t, uint64_t> visible;
};

} // namespace mlir::attn::device

#endif // ATTN_DEVICE_DEVICEMEMORY_H
