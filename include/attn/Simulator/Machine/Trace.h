//===- Trace.h - What warps did, in their order -----------------*- C++ -*-===//
//
// A recording of some CTAs of a launch: the instructions of each warp, and
// which signals its waits need. It has no times; Timeline.h gives it some.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SIMULATOR_MACHINE_TRACE_H
#define ATTN_SIMULATOR_MACHINE_TRACE_H

#include "attn/Support/SyncStep.h"
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace mlir::attn::sim {

/// One instruction of the program.
struct TraceInstruction {
  unsigned line = 0; ///< of the PTX
  std::string text;
  std::string cls; ///< as Counters::classes names it
  /// Registers that it reads and writes, as small numbers.
  std::vector<uint32_t> reads, writes;
};

/// One step of a warp.
struct TraceEvent {
  enum Kind : uint8_t {
    Execute, ///< an instruction
    Start,   ///< the instruction starts an engine operation
    Signal,  ///< towards a token
    Wait,    ///< until all signals of a token have come
  };
  Kind kind = Execute;
  /// Shared wavefronts or global sectors of an instruction.
  uint16_t traffic = 0;
  /// Instruction, operation or token.
  uint32_t index = 0;
  /// FLOP of an instruction, bytes of an operation.
  uint32_t amount = 0;
};

struct WarpTrace {
  std::vector<TraceEvent> events;
  /// With LaunchConfig::notesSync, in place of events.
  std::vector<SyncStep> syncs;
};

struct CtaTrace {
  std::array<uint32_t, 3> id = {0, 0, 0};
  uint32_t cluster = 0; ///< CTAs of one cluster have the same number
  std::vector<WarpTrace> warps;
};

/// What an operation that runs beside the warps does.
struct TraceWork {
  enum Kind : uint8_t {
    Other,
    Copy,    ///< to or from shared memory
    Product, ///< of the tensor core
    Commit,  ///< signals when the products before it have ended
  };
  Kind kind = Other;
  /// Ranks in the cluster of the CTAs whose shared memory or tensor core it
  /// uses; the issuer's alone when empty.
  std::vector<uint32_t> ranks;
  /// Bytes of shared memory of each of these CTAs that it reads or writes.
  uint32_t sharedBytes = 0;
  /// Of a product: rows of A on each SM, columns of D.
  uint32_t rows = 0, columns = 0;
  /// Bytes of A that each SM reads from shared memory; 0 when A is in tensor
  /// memory.
  uint32_t bytesOfA = 0;
};

/// A bulk copy or tensor-core operation that runs beside the warps.
struct TraceOperation {
  uint32_t instruction = 0;
  uint32_t cta = 0; ///< index in Trace::ctas of the issuer
  TraceWork work;
  /// Tokens that its completion signals.
  std::vector<uint32_t> tokens;
};

/// A phase of a barrier.
struct TraceToken {
  std::string name;     ///< such as "barrier 1" or "mbarrier 64"
  uint32_t signals = 0; ///< that were recorded
  /// Index in Trace::ctas of the CTA that has the barrier; -1 is the cluster's.
  int64_t cta = -1;
};

/// The recording.
struct Trace {
  std::vector<TraceInstruction> instructions;
  std::vector<CtaTrace> ctas;
  std::vector<TraceOperation> operations;
  std::vector<TraceToken> tokens;
  /// Steps that were not recorded any more because there were too many.
  uint64_t dropped = 0;

  /// CTAs of a cluster; all have as many.
  size_t getClusterSize() const {
    size_t size = 0;
    while (size < ctas.size() && ctas[size].cluster == ctas.front().cluster)
      ++size;
    return size ? size : 1;
  }
};

} // namespace mlir::attn::sim

#endif // ATTN_SIMULATOR_MACHINE_TRACE_H
