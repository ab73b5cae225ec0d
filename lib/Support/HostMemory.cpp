//===- HostMemory.cpp - What fits into this machine -----------------------===//

#include "attn/Support/HostMemory.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <sys/resource.h>
#include <unistd.h>

using namespace mlir::attn;

/// The number in a file of the control group, or all bytes there are.
static uint64_t readLimit(const char *path) {
  uint64_t limit = UINT64_MAX;
  if (auto file = llvm::MemoryBuffer::getFileAsStream(path))
    if ((*file)->getBuffer().trim().getAsInteger(10, limit))
      limit = UINT64_MAX;
  return limit;
}

static uint64_t findHostMemory() {
  uint64_t bytes = UINT64_MAX;
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0)
    bytes = uint64_t(pages) * uint64_t(page);
  bytes = std::min(bytes, readLimit("/sys/fs/cgroup/memory.max"));
  bytes = std::min(bytes,
                   readLimit("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min<uint64_t>(bytes, limit.rlim_cur);
  // Less is a mistake of whoever reports it.
  return std::max(bytes, uint64_t(1) << 30);
}

uint64_t mlir::attn::getHostMemory() {
  static const uint64_t bytes = findHostMemory();
  return bytes;
}

std::string mlir::attn::formatBytes(uint64_t bytes) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024)
    return llvm::formatv("{0} bytes", bytes);
  double value = double(bytes) / 1024;
  unsigned unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  return llvm::formatv("{0:f1} {1}", value, units[unit]);
}
