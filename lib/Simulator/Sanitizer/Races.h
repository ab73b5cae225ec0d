//===- Races.h - Accesses that nothing orders -------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_SANITIZER_RACES_H
#define ATTN_LIB_SIMULATOR_SANITIZER_RACES_H

#include "../Machine/Exec.h"

namespace mlir::attn::sim {

/// Checks accesses of one instruction for races, area by area. Areas in the
/// same state are decided once.
class Tracker {
public:
  Tracker(Exec &x, const Stamp &stamp, const Clock &clock, bool write,
          ShadowDecision *last = nullptr)
      : x(x), clock(clock), access(stamp, write, clock, last) {}
  void touch(const MemRef &ref, uint64_t bytes);

private:
  Exec &x;
  const Clock &clock;
  ShadowAccess access;
};

/// The same for what the warp does through the async proxy, in the shared
/// memory of a CTA or, without one, in global memory.
class AsyncTracker {
public:
  AsyncTracker(Exec &x, const Stamp &stamp, Cta *cta, bool write)
      : cta(cta),
        tracker(x, stamp,
                x.warp->order.know.getAsync(cta, cta ? cta->rank : 0, space),
                write) {}
  void touch(const MemRef &ref, uint64_t bytes) { tracker.touch(ref, bytes); }
  /// Bytes of the CTA's shared memory; nothing where they leave it.
  void touchShared(uint64_t offset, uint64_t bytes);

private:
  Cta *cta;
  /// What orders the accesses, where it is made from several clocks.
  Clock space;
  Tracker tracker;
};

/// Checks an access of the executing warp for races; `flags` are Stamp flags.
/// With `last`, as a ShadowAccess has it, lanes decide alike.
void track(Exec &x, const MemRef &ref, uint64_t bytes, bool write,
           uint16_t flags, int lane, ShadowDecision *last = nullptr);
/// The same for several areas, of all lanes together.
void trackAll(Exec &x, llvm::ArrayRef<MemRef> refs, uint64_t bytes, bool write);
/// The same for any actor and clock.
void trackAs(Exec &x, const Stamp &stamp, const Clock &clock, const MemRef &ref,
             uint64_t bytes, bool write, ShadowDecision *last = nullptr);
/// Reports two accesses that `clock` does not order, unless an assumption or
/// the pipeline of tcgen05 operations does.
void reportRace(Exec &x, const Stamp &earlier, bool wasWrite,
                const Stamp &stamp, bool write, const Clock &clock,
                const MemRef &ref, uint64_t at, uint64_t bytes);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_SANITIZER_RACES_H
