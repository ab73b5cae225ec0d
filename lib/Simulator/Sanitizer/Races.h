//===- Races.h - Accesses that nothing orders -------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_SANITIZER_RACES_H
#define ATTN_LIB_SIMULATOR_SANITIZER_RACES_H

#include "../Machine/Exec.h"

namespace mlir::attn::sim {

/// Checks an access of the executing warp for races; `flags` are Stamp flags.
void track(Exec &x, const MemRef &ref, uint64_t bytes, bool write,
           uint8_t flags, int lane);
/// The same for any actor and clock.
void trackAs(Exec &x, const Stamp &stamp, const Clock &clock, const MemRef &ref,
             uint64_t bytes, bool write);
/// The same for what the warp does through the async proxy.
void trackAsync(Exec &x, const Stamp &stamp, const MemRef &ref, uint64_t bytes,
                bool write);
/// Reports two accesses that `clock` does not order, unless an assumption or
/// the pipeline of tcgen05 operations does.
void reportRace(Exec &x, const Stamp &earlier, bool wasWrite,
                const Stamp &stamp, bool write, const Clock &clock,
                const MemRef &ref, uint64_t at, uint64_t bytes);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_SANITIZER_RACES_H
