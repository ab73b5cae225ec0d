//===- TraceRecorder.h - Records one cluster --------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_MACHINE_TRACERECORDER_H
#define ATTN_LIB_SIMULATOR_MACHINE_TRACERECORDER_H

#include "../PTX/ProgramImpl.h"
#include "attn/Simulator/Machine/Trace.h"
#include "llvm/ADT/DenseMap.h"
#include <map>
#include <tuple>

namespace mlir::attn::sim {

struct Cluster;
struct EngineOp;
struct Exec;
struct Mbarrier;
struct Warp;

/// Lists the instructions of a program for a trace.
void describeInstructions(const ProgramImpl &program, Trace &trace);

/// Appends what one cluster does to a trace.
class TraceRecorder {
public:
  TraceRecorder(Trace &trace, const Cluster &cluster, bool notesSync);

  /// Counters before an instruction, whose growth says what it moved.
  struct Before {
    uint64_t wavefronts = 0, sectors = 0, bytes = 0, flops = 0, lanes = 0;
    size_t operations = 0;
  };
  Before look(const Cluster &cluster) const;
  /// An instruction has run to its end.
  void executed(const Exec &x, const Before &before);
  /// No lane passed the guard.
  void skipped(const Exec &x);

  /// Arrivals and waits at a named barrier's or the cluster barrier's
  /// generation.
  void arrive(const Warp &warp, int barrier, uint64_t generation);
  void wait(const Warp &warp, int barrier, uint64_t generation);
  /// A signal to the current phase of an mbarrier: of the operation that
  /// completes, else of the warp.
  void signal(const Mbarrier &b, const Warp *warp);
  /// A try_wait on an mbarrier that has succeeded, or not.
  void polled(const Exec &x, const Mbarrier &b, bool succeeded);
  /// What completes until `ended` is this operation.
  void begins(const EngineOp &op);
  void ended(const EngineOp &op, const Cluster &cluster, size_t before);

  /// A generic access to shared memory of the warp's CTA by a lane, or by all
  /// active ones together.
  void noteAccess(const Exec &x, uint64_t offset, uint64_t bytes, bool write,
                  int lane);

private:
  std::vector<SyncStep> &syncsOf(const Warp &warp);
  void noteSync(const Exec &x, uint64_t bulkBytes);
  using Key = std::tuple<int, uint64_t, uint64_t>;
  uint32_t getToken(const Key &key, const std::string &name, int64_t cta);
  std::vector<TraceEvent> &eventsOf(const Warp &warp);
  void add(const Warp &warp, TraceEvent event);
  /// An instruction of the executing lanes, which may be polling.
  void addStep(const Exec &x, TraceEvent event);
  void dropPolls(const Warp &warp, uint32_t pc);

  Trace &trace;
  bool notesSync;
  size_t firstCta;
  std::map<Key, uint32_t> tokens;
  llvm::DenseMap<const EngineOp *, uint32_t> operations;
  int64_t current = -1;
  /// A series of failing polls of some lanes of a warp, while the others may go
  /// on: the places of what these lanes execute among the warp's events.
  struct Poll {
    uint32_t lanes = 0;
    std::vector<size_t> steps;
  };
  /// By warp and instruction.
  std::vector<std::map<uint32_t, Poll>> polls;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_MACHINE_TRACERECORDER_H
