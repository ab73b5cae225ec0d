//===- Abi.h - Types of the driver's C interface ----------------*- C++ -*-===//
//
// As far as the stand-in reads and writes them: handles are opaque, and numbers
// are those that programs are compiled with.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_CUDA_DRIVER_ABI_H
#define ATTN_TOOLS_CUDA_DRIVER_ABI_H

#include <cstddef>
#include <cstdint>

/// Each is a number that HandleTable gave out.
using Handle = void *;
using Pointer = uint64_t; ///< CUdeviceptr

/// CUlaunchAttribute.
struct LaunchAttribute {
  uint32_t id;
  uint32_t unused;
  uint32_t value[16];
};
/// The attributes that change what a launch does.
enum LaunchAttributeId : uint32_t {
  AttributeCooperative = 2,
  AttributeClusterDimension = 4,
  AttributeProgrammaticSerialization = 6,
};

/// CUlaunchConfig.
struct LaunchConfigC {
  uint32_t grid[3], block[3];
  uint32_t sharedBytes;
  Handle stream;
  const LaunchAttribute *attributes;
  uint32_t attributeCount;
};

/// CUDA_MEMCPY2D.
struct Copy2D {
  size_t sourceX, sourceY;
  uint32_t sourceKind;
  const void *sourceHost;
  Pointer source;
  Handle sourceArray;
  size_t sourcePitch;
  size_t targetX, targetY;
  uint32_t targetKind;
  void *targetHost;
  Pointer target;
  Handle targetArray;
  size_t targetPitch;
  size_t width, height;
};
/// CUmemorytype.
enum MemoryTypeC : uint32_t {
  HostMemory = 1,
  DeviceMemoryC = 2,
  UnifiedMemory = 4
};

/// Streams that programs name without making them.
constexpr uintptr_t kLegacyStream = 1, kPerThreadStream = 2;

/// Keys of the `extra` argument of cuLaunchKernel.
enum LaunchExtra : uintptr_t { ExtraEnd = 0, ExtraBuffer = 1, ExtraSize = 2 };

#define ATTN_API extern "C" __attribute__((visibility("default")))

#endif // ATTN_TOOLS_CUDA_DRIVER_ABI_H
