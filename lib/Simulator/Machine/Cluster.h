//===- Cluster.h - CTAs, clusters, and operations in flight -----*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_MACHINE_CLUSTER_H
#define ATTN_LIB_SIMULATOR_MACHINE_CLUSTER_H

#include "../Clocks/Shadow.h"
#include "BarrierState.h"
#include "TensorPair.h"
#include "Warp.h"
#include "attn/Simulator/Machine/Report.h"
#include "attn/Simulator/Machine/Trace.h"
#include <random>

namespace mlir::attn::sim {

class Machine;
struct Cluster;
class DroppedLoads;
class TraceRecorder;
struct TensorMemory;

/// An asynchronous operation of an engine (bulk copies, wgmma, tcgen05).
struct EngineOp {
  virtual ~EngineOp() = default;
  uint32_t inst = 0;
  Warp *issuer = nullptr;
  /// Later operations of the same stream wait for this one; 0 is unordered.
  uint64_t stream = 0;
  /// Delivered only when nothing else can advance.
  bool deferred = false;
  /// What the issuer had seen.
  std::shared_ptr<const Clock> control;
  /// Runs to its end: reads operands that were not read yet, writes, signals.
  virtual void complete(Cluster &cluster) = 0;
  virtual std::string describe() const = 0;
  /// Still reads, writes or signals memory of the CTA.
  virtual bool touches(const Cta *cta) const = 0;
  /// What a recording says of it.
  virtual TraceWork getWork() const { return TraceWork(); }
  /// This, if it is a bulk operation.
  virtual EngineOp *dynamicBulk() { return nullptr; }
  /// This, if it is a bulk store that a thread of the warp issued.
  EngineOp *asBulkStore(const Warp *warp) {
    EngineOp *bulk = dynamicBulk();
    return bulk && issuer == warp ? bulk : nullptr;
  }
};

struct Cta {
  Cluster *cluster = nullptr;
  uint32_t rank = 0;   ///< in the cluster
  uint32_t linear = 0; ///< in the grid
  std::array<uint32_t, 3> id{};
  std::vector<uint8_t> shared, sharedValid;
  Shadow shadow;
  /// Of all warps.
  ZeroPages<uint32_t> registers;
  std::vector<std::unique_ptr<Warp>> warps;
  std::array<NamedBarrier, 16> barriers;
  /// The wgmma instructions of each warpgroup in order, by the warp that came
  /// first.
  std::array<std::vector<uint32_t>, 8> wgmmaSteps;
  std::map<uint32_t, Mbarrier> mbarriers; ///< by offset
  /// Invalidated mbarriers, by offset: the instruction.
  std::map<uint32_t, uint32_t> invalidated;
  uint32_t liveThreads = 0;
  uint32_t freeRegisters = 0;
  bool exited = false;
  /// What the warps that have exited had seen.
  Clock exitControl;
  /// The last access of shared memory by a warp of another CTA: epoch,
  /// instruction.
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> remoteTouches;
  /// The last tensor operation by a warp of another CTA that uses this one's
  /// memory, by index of the warp. Its epoch is that of the operations.
  std::map<uint32_t, WarpEvent> remoteProducts;
  std::shared_ptr<TensorMemory> tmem;
};

struct Cluster {
  Machine *machine = nullptr;
  uint32_t linear = 0;
  std::array<uint32_t, 3> id{};
  std::vector<std::unique_ptr<Cta>> ctas;
  std::vector<Warp *> warps;
  uint32_t nextActor = 0;
  std::vector<std::unique_ptr<EngineOp>> engine;
  ClusterBarrier barrier;
  std::vector<TensorPair> tensorPairs; ///< by rank / 2
  TensorPair &pairOf(const Cta &cta) { return tensorPairs[cta.rank / 2]; }
  /// Returns the other CTA of a pair; null where the cluster ends.
  Cta *peerOf(const Cta &cta) {
    uint32_t rank = cta.rank ^ 1;
    return rank < ctas.size() ? ctas[rank].get() : nullptr;
  }
  /// Has the first query of each warp that said that there is no further CTA.
  std::map<uint32_t, WarpEvent> denials;
  std::mt19937_64 rng;
  Counters counters;
  bool hasWaited = false;          ///< by griddepcontrol.wait
  std::vector<uint64_t> execCount; ///< by instruction
  uint64_t reportedStores = 0;     ///< bytes, in Machine::storedBytes
  /// What its threads have printed, and bytes that are not kept.
  std::string printed;
  uint64_t printedDropped = 0;
  void print(llvm::StringRef text) {
    size_t kept =
        std::min<uint64_t>(text.size(), kMostPrinted - printed.size());
    printed += text.take_front(kept);
    printedDropped += text.size() - kept;
  }
  /// Takes races of loads; null: all are reported at once.
  DroppedLoads *droppedLoads = nullptr;
  /// Of a cluster that is traced.
  std::shared_ptr<TraceRecorder> recorder;
  uint64_t laneCount = 0;
  uint64_t steps = 0;
  /// Stores and atomics that have changed memory.
  uint64_t writes = 0;
  size_t nextWarp = 0;
  size_t replayed = 0; ///< turns of LaunchConfig::replay that are over
  /// Counts events that a waiting thread could wait for.
  uint64_t progress = 1;
  /// Times that every thread has polled in vain since the last progress.
  uint64_t idleRounds = 0;
  void advance() {
    ++progress;
    idleRounds = 0;
  }

  uint16_t newActor() { return nextActor++; }
  uint32_t nextPhaseIndex = 0;
  uint32_t newPhaseIndex();
  bool done() const;
};

/// Marks splits as runnable whose wait is over.
void wake(Cluster &cluster, Cta *cta, BlockKind kind, uint64_t arg,
          uint64_t generation);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_MACHINE_CLUSTER_H
