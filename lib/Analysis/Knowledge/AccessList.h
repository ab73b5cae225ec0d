//===- AccessList.h - The accesses that matter ------------------*- C++ -*-===//
//
// Each new access is held against all others, of which few touch its bytes.
// Their bounds stand beside them, close together, so that those that may are
// marked fast, and the others are passed over eight at a time.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_KNOWLEDGE_ACCESSLIST_H
#define ATTN_LIB_ANALYSIS_KNOWLEDGE_ACCESSLIST_H

#include "attn/Analysis/Memory/Footprint.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Endian.h"
#include <cstdint>
#include <vector>

namespace mlir::attn::barriers {

/// An access whose order matters.
struct Access {
  uint32_t event = 0;
  uint32_t step = 0; ///< of the program
  uint32_t info = 0; ///< in the program's accesses
  uint16_t warp = 0; ///< of the cluster
  uint16_t part = 0; ///< of the footprint
  uint8_t cta = 0;   ///< whose memory
  bool isWrite = false;
  bool isAsync = false;  ///< through the async proxy
  bool isTensor = false; ///< to tensor memory
  /// A late load whose registers were loaded again before anything used them.
  bool isLost = false;
  int64_t base = 0; ///< bytes from the start of shared memory
  ByteRange hull;   ///< all bytes of it, from there too
  uint64_t instance = 0;
};

class AccessList {
public:
  size_t size() const { return accesses.size(); }
  const Access &operator[](size_t index) const { return accesses[index]; }
  const Access &back() const { return accesses.back(); }
  /// Takes for lost what was loaded before to the same registers.
  void loseLoads(uint32_t info, uint16_t warp) {
    for (Access &access : accesses)
      access.isLost |= access.info == info && access.warp == warp;
  }
  auto begin() const { return accesses.begin(); }
  auto end() const { return accesses.end(); }

  void push_back(const Access &access) {
    accesses.push_back(access);
    Bounds bounds = getBounds(access);
    begins.push_back(bounds.begin);
    ends.push_back(bounds.end);
    isNear.push_back(false);
  }
  /// Puts the last one in the place of one that matters no more.
  void replaceByLast(size_t index) {
    accesses[index] = accesses.back();
    begins[index] = begins.back();
    ends[index] = ends.back();
    isNear[index] = isNear.back();
    resize(size() - 1);
  }
  /// Drops those that are not kept.
  void keep(const std::vector<bool> &kept) {
    size_t count = 0;
    for (size_t index = 0; index < accesses.size(); ++index) {
      if (!kept[index])
        continue;
      accesses[count] = accesses[index];
      begins[count] = begins[index];
      ends[count++] = ends[index];
    }
    resize(count);
  }
  /// Notes down which of them may touch bytes of another one.
  void markNear(const Access &access) {
    Bounds near = getBounds(access);
    // The compiler compares several at once: marks, which are bytes, could
    // stand for anything that is not a local variable.
    const int32_t *first = begins.data(), *last = ends.data();
    uint8_t *mark = isNear.data();
    for (size_t index = 0, count = size(); index != count; ++index)
      mark[index] = (first[index] < near.end) & (last[index] > near.begin);
  }
  /// The first one from `index` on that is marked, or the number of accesses.
  size_t findNear(size_t index) const {
    for (; index + sizeof(uint64_t) <= size(); index += sizeof(uint64_t))
      if (uint64_t some = llvm::support::endian::read64le(&isNear[index]))
        return index + llvm::countr_zero(some) / 8;
    while (index < size() && !isNear[index])
      ++index;
    return index;
  }

private:
  void resize(size_t count) {
    accesses.resize(count);
    begins.resize(count);
    ends.resize(count);
    isNear.resize(count);
  }
  /// First and last bytes in one row of numbers for the memories of all CTAs.
  struct Bounds {
    int32_t begin, end;
  };

  /// More bytes than a memory has. What lies beyond them may be anywhere there.
  static constexpr int64_t kMemoryBytes = int64_t(1) << 20;

  static Bounds getBounds(const Access &access) {
    int64_t first = (2 * int64_t(access.cta) + access.isTensor) * kMemoryBytes;
    ByteRange hull = access.hull;
    if (access.isTensor)
      hull = {hull.begin - kTensorStart, hull.end - kTensorStart};
    if (hull.begin < 0 || hull.end > kMemoryBytes)
      hull = {0, kMemoryBytes};
    return {int32_t(first + hull.begin), int32_t(first + hull.end)};
  }

  std::vector<Access> accesses;
  std::vector<int32_t> begins, ends;
  /// A byte each, of the access that was marked for last.
  std::vector<uint8_t> isNear;
};

} // namespace mlir::attn::barriers

#endif // ATTN_LIB_ANALYSIS_KNOWLEDGE_ACCESSLIST_H
