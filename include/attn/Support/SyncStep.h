//===- SyncStep.h - What a warp does about synchronisation ------*- C++ -*-===//

#ifndef ATTN_SUPPORT_SYNCSTEP_H
#define ATTN_SUPPORT_SYNCSTEP_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mlir::attn {

/// One step of a warp's synchronisation, as the proof has it or as the PTX does
/// it. Offsets are bytes from the start of dynamic shared memory.
struct SyncStep {
  enum Kind : uint8_t {
    /// A signal, a wait, a barrier, a group's end: such as "wait +1024 1".
    Event,
    /// A fence or a barrier of a warp's threads: more of them do no harm.
    Order,
    /// Starts asynchronous accesses, such as "load +1024" of `amount` bytes.
    Work,
    /// Generic accesses to `bytes` of shared memory.
    Access,
    /// What stands up to the end may be left out.
    RareBegin,
    RareEnd
  };
  Kind kind = Event;
  /// Threads of the warp that take it: bit n is thread n. The elected one is
  /// the first.
  uint32_t threads = ~0u;
  std::string text;
  int64_t amount = 0;
  /// Ranges [begin, end).
  std::vector<std::pair<int64_t, int64_t>> bytes;
  /// Number of the op among the proof's sites, or line of the PTX.
  uint32_t place = 0;
};

} // namespace mlir::attn

#endif // ATTN_SUPPORT_SYNCSTEP_H
