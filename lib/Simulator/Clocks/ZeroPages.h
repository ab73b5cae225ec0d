//===- ZeroPages.h - Memory that costs what is touched of it ----*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_CLOCKS_ZEROPAGES_H
#define ATTN_LIB_SIMULATOR_CLOCKS_ZEROPAGES_H

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Memory.h"
#include <algorithm>
#include <cstdlib>
#include <utility>

namespace mlir::attn::sim {

/// An array of zeros. A large one has pages of its own, of which only what is
/// touched costs anything: the registers and shadows of a CTA take megabytes,
/// and CTAs without work use a few pages of them. (calloc clears what it was
/// given back.)
template <typename T>
class ZeroPages {
public:
  ZeroPages() = default;
  explicit ZeroPages(size_t count) {
    size_t bytes = std::max<size_t>(count, 1) * sizeof(T);
    if (bytes < MappedBytes) {
      small = std::calloc(1, bytes);
    } else {
      std::error_code error;
      block = llvm::sys::Memory::allocateMappedMemory(
          bytes, nullptr,
          llvm::sys::Memory::MF_READ | llvm::sys::Memory::MF_WRITE, error);
    }
    if (!data())
      llvm::report_bad_alloc_error("no memory for a simulated CTA");
  }
  ZeroPages(ZeroPages &&o) { *this = std::move(o); }
  ZeroPages &operator=(ZeroPages &&o) {
    std::swap(small, o.small);
    std::swap(block, o.block);
    return *this;
  }
  ~ZeroPages() {
    std::free(small);
    if (block.base())
      llvm::sys::Memory::releaseMappedMemory(block);
  }

  explicit operator bool() const { return data(); }
  T *data() const { return static_cast<T *>(small ? small : block.base()); }
  T &operator[](size_t i) const { return data()[i]; }

private:
  /// A mapping takes a system call, and processes have at most 65,530.
  static constexpr size_t MappedBytes = 4 << 20;

  void *small = nullptr;
  llvm::sys::MemoryBlock block;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_CLOCKS_ZEROPAGES_H
