//===- HostMemory.h - What fits into this machine ---------------*- C++ -*-===//

#ifndef ATTN_SUPPORT_HOSTMEMORY_H
#define ATTN_SUPPORT_HOSTMEMORY_H

#include <cstdint>
#include <string>

namespace mlir::attn {

/// Bytes of memory that this process can have at most: the machine's, or less
/// where a control group or a resource limit says so. At least 1 GiB.
uint64_t getHostMemory();

/// "1.5 GiB", "300 bytes".
std::string formatBytes(uint64_t bytes);

} // namespace mlir::attn

#endif // ATTN_SUPPORT_HOSTMEMORY_H
