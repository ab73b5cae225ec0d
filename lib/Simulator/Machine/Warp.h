//===- Warp.h - A warp and what it has in flight ----------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_MACHINE_WARP_H
#define ATTN_LIB_SIMULATOR_MACHINE_WARP_H

#include "../Clocks/Clock.h"
#include "llvm/ADT/bit.h"
#include <deque>
#include <memory>
#include <vector>

namespace mlir::attn::sim {

struct Cta;
struct Exec;

/// Scopes; wider ones count as that of the GPU.
enum class SyncScope : uint8_t { Cta, Cluster, Gpu };

/// Why a split does not run.
enum class BlockKind : uint8_t {
  None,
  Converge,     ///< waits for other lanes of the warp at the same place
  WarpSync,     ///< bar.warp.sync, lanes may wait at different places
  NamedBarrier, ///< id in arg
  ClusterBarrier,
  Mbarrier,  ///< blocked in a potentially suspending wait
  Registers, ///< setmaxnreg.inc
  TensorAlloc,
  AsyncWait, ///< waits for its own asynchronous operations
};

/// An instruction that a warp of a cluster has executed.
struct WarpEvent {
  uint32_t warp = 0; ///< index in the cluster
  uint32_t epoch = 0;
  uint32_t inst = 0;
};

/// Lanes of a warp that share a program counter.
struct Split {
  uint32_t pc = 0;
  uint32_t mask = 0;
  BlockKind block = BlockKind::None;
  bool resumed = false; ///< the instruction at pc has started already
  uint64_t arg = 0;     ///< barrier id or address
  uint64_t generation = 0;
  /// Value of Cluster::progress at the last failing poll: nothing has happened
  /// since that could make it succeed while the two are equal.
  uint64_t pollProgress = 0;
  uint64_t pollAddress = 0;
};

/// A cp.async instruction of one warp in flight.
struct CpAsyncOp {
  uint32_t inst = 0;
  bool arrives = false;     ///< cp.async.mbarrier.arrive: dst are mbarriers
  uint32_t mask = 0;        ///< lanes not yet complete
  uint32_t uncommitted = 0; ///< lanes not yet in a group
  uint32_t epoch = 0;       ///< of the warp's cp.async actor
  uint8_t cpBytes = 0;
  bool dataRead = false;
  bool dataWritten = false;
  std::array<uint32_t, 32> group;
  std::array<uint64_t, 32> dst, src; ///< resolved addresses
  std::array<uint8_t, 32> srcBytes;
  std::array<std::array<uint8_t, 16>, 32> data;
  std::array<uint16_t, 32> valid; ///< bit i: byte i is initialised
  Clock control; ///< arrives: what the warp had seen when it issued
};

/// One warp's part of a wgmma in flight.
struct WarpProduct {
  virtual ~WarpProduct() = default;
  /// True if it accumulates into the register.
  virtual bool writes(uint32_t meta) const = 0;
  /// Writes the accumulator now; may fault.
  virtual void finish(Exec &x) = 0;
};

/// The registers of a warp, placed as operands say. Words and halves are parts
/// of Cta::registers.
struct RegisterFile {
  uint32_t *words = nullptr;
  /// Lanes that hold an undefined value, and where it comes from.
  std::vector<uint32_t> poison;
  std::vector<uint32_t> origin;
  /// Poison of the quarters of registers that were put together, two entries a
  /// register: compilers pad with undefined parts and drop them (PartPoison.h).
  std::array<uint32_t, 2> *halves = nullptr;
};

/// Local memory of a warp's threads, one after the other.
struct LocalMemory {
  std::vector<uint8_t> bytes, valid;
};

/// An actor whose operations are in order, and how many it has started.
struct Stream {
  uint16_t actor = 0;
  uint32_t epoch = 0;
};

/// What some lanes of a warp have published and others have acquired.
struct LaneExchange {
  /// Accesses of the lanes `from` up to this epoch.
  uint32_t epoch = 0;
  uint32_t from = 0, to = 0;
  bool covers(uint32_t at, unsigned lane, unsigned observer) const {
    return at <= epoch && lane < 32 && observer < 32 && (from >> lane & 1) &&
           (to >> observer & 1);
  }
};

/// Accesses of a warp that signals to other CTAs do not order: loads whose
/// registers nothing has used, stores that nothing has released (A4).
struct OpenAccesses {
  /// The first epoch with a store since the last release, 0: none.
  uint32_t storesFrom = 0;
  llvm::SmallVector<UnusedLoad, 0> unused;
  /// The load whose value a register holds, + 1, by number of the register.
  std::vector<uint32_t> loadOf;
};

/// What a warp's accesses are ordered after.
struct WarpOrder {
  uint16_t actor = 0;
  uint32_t epoch = 1;
  Knowledge know;
  OpenAccesses open;
  /// The last exchange by way of an mbarrier.
  LaneExchange exchanged;
  /// By SyncScope. At the last fence of the scope or a wider one: later strong
  /// writes publish it.
  std::array<Knowledge, 3> fenceRelease;
  /// From relaxed strong reads, joined at a fence of the scope or a wider one.
  std::array<Knowledge, 3> pendingAcquire;
};

/// What a warp does with mbarriers.
struct MbarrierUse {
  Stream stream;
  /// Completed phases at this warp's last wait, by the actor of the mbarrier.
  std::map<uint16_t, uint64_t> waitedPhases;
  /// Actors of those that this warp initialised, and the part of them that a
  /// fence.mbarrier_init has covered.
  std::vector<uint16_t> initialised, fencedInits;
  std::map<uint32_t, uint32_t> commits; ///< sent to each CTA, by rank
};

/// cp.async of a warp.
struct CpAsyncState {
  Stream stream;
  std::deque<CpAsyncOp> ops;
  std::array<uint32_t, 32> committed{}; ///< groups committed by each lane
};

/// Bulk groups of a warp's threads (BulkCopy.cpp).
struct BulkState {
  uint16_t actor = 0, writeActor = 0; ///< of reads, of writes
  uint32_t epoch = 0;
  std::array<uint32_t, 32> committed{};
};

/// A warp at the cluster barrier.
struct ClusterArrival {
  uint32_t arrived = 0;    ///< lanes
  uint32_t owed = 0;       ///< lanes that have not waited since
  uint64_t generation = 0; ///< in which the last ones arrived
  uint32_t earlier = 0;    ///< lanes that owe a wait for one that is over
};

/// Who wrote a register, and how many times wgmma.fence had come until then.
struct RegisterWrite {
  uint32_t fences = ~0u, inst = 0;
};

/// wgmma of a warp, in order.
struct WgmmaState {
  std::deque<std::shared_ptr<WarpProduct>> products;
  uint32_t groups = 0;
  bool isFenced = false; ///< a wgmma.fence has been executed
  uint32_t fences = 0;   ///< times that it has been
  /// By register: the last write of what feeds a product; empty without one.
  std::vector<RegisterWrite> written;
  uint32_t steps = 0; ///< instructions of the warpgroup so far
};

/// tcgen05 of a warp's threads.
struct Tcgen05State {
  /// What the newest operation was issued after: its completion publishes that
  /// too.
  Knowledge issuedAfter;
  /// Lanes that have started products, copies or shifts.
  uint32_t issuers = 0;
  Stream loads, stores;
  /// Without assumption A5: what waits have told about tensor memory since the
  /// last fence::after_thread_sync, and the own loads and stores that the last
  /// fence::before_thread_sync covers.
  Clock acquired;
  uint32_t fencedLoads = 0, fencedStores = 0;
  /// Without assumption A1: what each operation is, by epoch. Above the other
  /// kinds: what a product accumulates into.
  enum : uint64_t { CopyPipeline, RefreshPipeline, ShiftPipeline };
  std::vector<uint64_t> pipelines;
  struct PendingLoad {
    uint32_t pc, epoch, registers;
  };
  std::deque<PendingLoad> pendingLoads;
  /// Without assumption A3: the instructions of loads that no wait::ld has
  /// waited for.
  llvm::SmallVector<uint32_t, 4> loading;
};

/// Where a warp has been (LoopWatch.h).
struct WarpMark {
  llvm::SmallVector<Split, 4> splits;
  std::pair<uint64_t, uint64_t> state; ///< hash of the registers
  uint32_t turns = 0;
  bool repeats = false; ///< has been there again
};

struct Warp {
  Cta *cta = nullptr;
  uint32_t id = 0;    ///< in the CTA
  uint32_t index = 0; ///< in the cluster
  uint32_t live = 0;  ///< lanes that have not exited
  uint32_t initial = 0;
  llvm::SmallVector<Split, 4> splits;
  uint32_t quantumCount = 0;
  RegisterFile file;
  LocalMemory local;
  std::vector<uint32_t> returnPC; ///< slot-major, 32 lanes
  /// setmaxnreg: registers a thread, 0 when the launch states no bound.
  uint32_t registers = 0;

  WarpOrder order;
  MbarrierUse mbarriers;
  ClusterArrival clusterBarrier;
  CpAsyncState cpAsync;
  BulkState bulk;
  Stream mma; ///< wgmma, or tcgen05 operations of this warp
  WgmmaState wgmma;
  Tcgen05State tcgen05;
  WarpMark mark;
  /// Lanes that came to an instruction, and those that passed its guard, by its
  /// slot (DroppedLoads.h); empty where nobody asks.
  std::vector<uint32_t> visits;

  bool done() const { return splits.empty(); }
};

/// Iterates over set bits.
template <typename Fn>
inline void forLanes(uint32_t mask, Fn &&fn) {
  while (mask) {
    unsigned lane = llvm::countr_zero(mask);
    mask &= mask - 1;
    fn(lane);
  }
}

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_MACHINE_WARP_H
