//===- GlobalMemory.h - Simulated global memory -----------------*- C++ -*-===//
//
// Allocations of simulated global memory with bounds, an initialised bit for
// each byte, and 64-bit device addresses that look like a GPU's.
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

/// What a kernel may do with an allocation.
enum class Access { Read, ReadWrite };

/// One allocation. `valid[i]` is 1 where byte i has been initialised.
struct Allocation {
  std::string name;
  uint64_t address = 0;
  Access access = Access::ReadWrite;
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> valid;
};

/// Simulated global memory. Contents survive between launches, so several
/// kernels can work on the same tensors. Not for concurrent use by two runs.
class Memory {
public:
  /// Reserves `bytes` bytes, uninitialised (filled with 0xCB), at an address
  /// that is a multiple of `align` (a power of two, at least 256 is used).
  /// Guard gaps keep neighbours apart. Zero bytes are allowed.
  uint64_t allocate(uint64_t bytes, llvm::StringRef name, uint64_t align = 256);

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
  /// What kernels may write, to undo a launch with.
  using Snapshot = std::vector<Allocation>;
  Snapshot save() const;
  /// Puts back what save() kept; the allocations must still be there.
  void restore(const Snapshot &snapshot);
  /// Removes the allocation that starts at `address`.
  llvm::Error release(uint64_t address);

private:
  std::map<uint64_t, std::unique_ptr<Allocation>> allocations;
  uint64_t next = 0x0000000700000000;
};

} // namespace mlir::attn::sim

#endif // ATTN_SIMULATOR_MACHINE_GLOBALMEMORY_H
