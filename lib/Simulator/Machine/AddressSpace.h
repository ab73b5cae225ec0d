//===- AddressSpace.h - Where bytes of a launch are -------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_MACHINE_ADDRESSSPACE_H
#define ATTN_LIB_SIMULATOR_MACHINE_ADDRESSSPACE_H

#include <cstdint>

namespace mlir::attn::sim {

struct Allocation;
struct Cta;

/// First byte of user shared memory in the shared window, as on hardware.
constexpr uint32_t SharedBase = 0x400;
/// Generic windows, where no address of a process of the host can be.
constexpr uint64_t SharedWindow = 0x00017f0000000000ull;
constexpr uint64_t LocalWindow = 0x00017e0000000000ull;
constexpr uint64_t ParamWindow = 0x00017d0000000000ull;
constexpr uint64_t WindowSize = uint64_t(1) << 32;

enum class Space : uint8_t { Generic, Global, Shared, Local, Param, Tensor };

/// A resolved range of bytes.
struct MemRef {
  Space space = Space::Global;
  uint8_t *data = nullptr;
  uint8_t *valid = nullptr; ///< null: always initialised
  Cta *cta = nullptr;       ///< Shared: the owner
  Allocation *allocation = nullptr;
  uint64_t offset = 0; ///< in the space or allocation
  uint64_t address = 0;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_MACHINE_ADDRESSSPACE_H
