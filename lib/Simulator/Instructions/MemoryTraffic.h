//===- MemoryTraffic.h - What memory instructions share ---------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_INSTRUCTIONS_MEMORYTRAFFIC_H
#define ATTN_LIB_SIMULATOR_INSTRUCTIONS_MEMORYTRAFFIC_H

#include "../Machine/Exec.h"
#include "../PTX/Decoder.h"

namespace mlir::attn::sim {

/// `.relaxed`, `.acquire` and so on. Strong accesses synchronise.
struct MemorySemantics {
  bool strong = false, acquire = false, release = false;
  SyncScope scope = SyncScope::Gpu;

  /// Flags of the access's stamp.
  uint16_t getFlags() const {
    if (!strong)
      return 0;
    return Stamp::Strong | (scope == SyncScope::Cta ? Stamp::OfCta : 0);
  }
};
/// The first scope that is kept: where every one is that of the GPU, the
/// narrower ones are not.
unsigned firstScope(const Exec &x);
/// Takes a scope; `otherwise` when there is none.
SyncScope takeScope(Decoding &c, SyncScope otherwise);
/// A fence of the scope: what later strong writes publish, of shared memory
/// alone when it is restricted.
void releaseAtFence(Exec &x, SyncScope scope, bool isRestricted = false);
/// Takes the semantics and the scope.
llvm::Error takeSemantics(Decoding &c, MemorySemantics &s);

/// A strong read of the location.
void observeStrong(Exec &x, const MemorySemantics &s, const MemRef &ref);
/// A strong write to the location.
void publishStrong(Exec &x, const MemorySemantics &s, const MemRef &ref);
/// Reports a store into a live mbarrier.
void checkMbarrierOverlap(Exec &x, const MemRef &ref, uint64_t bytes, int lane);

/// Gathers the addresses of one warp instruction for the counters.
class TrafficCounter {
public:
  explicit TrafficCounter(unsigned bytes) : bytes(bytes) {}
  void add(const MemRef &ref, unsigned lane);
  void shared(Exec &x, const char *name);
  void finishLoad(Exec &x, Space space, const char *name);
  void finishStore(Exec &x, Space space, const char *name);
  /// Different sectors of 32 bytes.
  unsigned sectors() const;
  unsigned getCount() const { return count; }

private:
  unsigned bytes;
  unsigned count = 0;
  std::array<uint64_t, 32> addresses;
  std::array<uint8_t, 32> lanes;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_INSTRUCTIONS_MEMORYTRAFFIC_H
