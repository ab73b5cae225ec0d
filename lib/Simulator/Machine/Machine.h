//===- Machine.h - State of a running launch -----------------------*- C++
//-*-===//
//
// A Machine runs one launch. It creates clusters, each with its CTAs and warps,
// and advances them by a schedule. Clusters that cannot talk to each other run
// on several host threads; everything inside a cluster is single-threaded and
// depends on the seed only.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_MACHINE_MACHINE_H
#define ATTN_LIB_SIMULATOR_MACHINE_MACHINE_H

#include "../Clocks/Shadow.h"
#include "../PTX/ProgramImpl.h"
#include "TraceRecorder.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"
#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

namespace mlir::attn::sim {

class Machine;
struct Cluster;
struct Cta;
struct Warp;

/// First byte of user shared memory in the shared window, as on hardware.
constexpr uint32_t SharedBase = 0x400;
/// Generic windows.
constexpr uint64_t SharedWindow = 0x00007f0000000000ull;
constexpr uint64_t LocalWindow = 0x00007e0000000000ull;
constexpr uint64_t ParamWindow = 0x00007d0000000000ull;
constexpr uint64_t WindowSize = uint64_t(1) << 32;

enum class Space : uint8_t { Generic, Global, Shared, Local, Param, Tensor };

/// A resolved range of bytes.
struct MemRef {
  Space space = Space::Global;
  uint8_t *data = nullptr;
  uint8_t *valid = nullptr; ///< null: always initialised
  Cta *cta = nullptr;       ///< Shared: the owner
  Allocation *allocation = nullptr;
  uint64_t offset = 0; ///< in the space or allocation
  uint64_t address = 0;
};

struct WgmmaOp;
struct TensorMemory;

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

struct Warp {
  Cta *cta = nullptr;
  uint32_t id = 0;    ///< in the CTA
  uint32_t index = 0; ///< in the cluster
  uint32_t live = 0;  ///< lanes that have not exited
  uint32_t initial = 0;
  std::vector<uint32_t> regs;
  std::vector<uint32_t> poison;
  std::vector<uint32_t> origin;
  /// Poison of the quarters of registers that were put together, two entries a
  /// register: compilers pad with undefined parts and drop them (PartPoison.h).
  std::vector<std::array<uint32_t, 2>> halves;
  std::vector<uint8_t> local, localValid; ///< lane-major
  std::vector<uint32_t> returnPC;         ///< slot-major, 32 lanes
  llvm::SmallVector<Split, 4> splits;
  uint32_t quantumCount = 0;

  // Sanitizer.
  uint16_t actor = 0, cpActor = 0, bulkActor = 0, bulkWriteActor = 0;
  /// Completed phases at this warp's last wait, by the actor of the mbarrier.
  std::map<uint16_t, uint64_t> waitedPhases;
  uint16_t mbarrierActor = 0; ///< operations on mbarriers
  uint32_t mbarrierEpoch = 0;
  uint16_t mmaActor = 0; ///< wgmma, or tcgen05 operations of this warp
  uint32_t epoch = 1;
  Knowledge know;
  /// By SyncScope. At the last fence of the scope or a wider one: later strong
  /// writes publish it.
  std::array<Knowledge, 3> fenceRelease;
  /// From relaxed strong reads, joined at a fence of the scope or a wider one.
  std::array<Knowledge, 3> pendingAcquire;

  // cp.async.
  std::deque<CpAsyncOp> cpOps;
  uint32_t cpEpoch = 0;
  std::array<uint32_t, 32> cpCommitted{}; ///< groups committed by each lane

  // Bulk groups: see BulkCopy.cpp.
  uint32_t bulkEpoch = 0;
  std::array<uint32_t, 32> bulkCommitted{};

  std::map<uint32_t, uint32_t> commits; ///< sent to each CTA, by rank

  // Cluster barrier.
  uint32_t clusterArrived = 0;    ///< lanes
  uint32_t clusterOwed = 0;       ///< lanes that have not waited since
  uint64_t clusterGeneration = 0; ///< in which they arrived
  /// Actors of mbarriers that this warp initialised, and the part of them that
  /// a fence.mbarrier_init has covered.
  std::vector<uint16_t> initialised, fencedInits;

  // wgmma: in order, and tcgen05 operations of this warp's threads.
  std::deque<std::shared_ptr<WgmmaOp>> wgmmas;
  uint32_t wgmmaGroups = 0;
  bool wgmmaFenced = false; ///< a wgmma.fence has been executed
  uint32_t wgmmaSteps = 0;  ///< instructions of the warpgroup so far
  uint32_t mmaEpoch = 0;

  /// What the newest tcgen05 operation was issued after: its completion
  /// publishes that too.
  Knowledge issuedAfter;

  // Tensor memory.
  uint16_t tmemLdActor = 0, tmemStActor = 0;
  uint32_t tmemLdEpoch = 0, tmemStEpoch = 0;
  /// Without assumption A5: what waits have told about tensor memory since the
  /// last fence::after_thread_sync, and the own loads and stores that the last
  /// fence::before_thread_sync covers.
  Clock tensorAcquired;
  uint32_t fencedLoads = 0, fencedStores = 0;
  /// Without assumption A1: what each tcgen05 operation is, by epoch. Above
  /// the other kinds: what a product accumulates into.
  enum : uint64_t { CopyPipeline, RefreshPipeline, ShiftPipeline };
  std::vector<uint64_t> pipelines;
  struct PendingLoad {
    uint32_t pc, epoch;
  };
  std::deque<PendingLoad> pendingLoads;

  // setmaxnreg: registers a thread, 0 when the launch states no bound.
  uint32_t registers = 0;

  bool done() const { return splits.empty(); }
};

/// Who arrives at a CTA or cluster barrier: the last arrival of each warp in
/// the open generation and in the one before.
struct BarrierArrivals {
  struct Arrival {
    uint32_t warp, epoch, inst;
  };
  llvm::SmallVector<Arrival, 0> open, previous;

  void complete() {
    previous = std::move(open);
    open.clear();
  }
};

struct NamedBarrier {
  uint32_t arrived = 0;  ///< threads
  uint32_t expected = 0; ///< 0: nobody arrived in this generation
  uint64_t generation = 0;
  bool countGiven = false;
  Knowledge gathering, published;
  /// Lanes of each warp that have arrived while others of it have not.
  std::array<uint32_t, 32> partial{};
  uint32_t votes = 0, trues = 0;
  uint32_t resultVotes = 0, resultTrues = 0;
  uint32_t firstInst = 0;
  BarrierArrivals arrivals;
};

/// A wait or a signal at an mbarrier.
struct PhaseEvent {
  enum Kind : uint8_t { Arrive, Commit, Copy };
  Kind kind = Arrive;
  bool fromOther = false; ///< signals: from another CTA
  uint32_t warp = 0;      ///< index in the cluster
  uint32_t epoch = 0;
  uint32_t inst = 0;
  int64_t phase = 0; ///< that the wait was for, or the signal counted in
};

struct Mbarrier {
  uint64_t phase = 0; ///< number of completed phases
  int32_t pending = 0, expected = 0;
  int64_t tx = 0;
  uint16_t actor = 0; ///< stamps the operations that signal here
  /// The same for operations that other CTAs issue: without assumption A4
  /// only waits of cluster scope learn of them.
  uint16_t remoteActor = 0;
  Knowledge gathering, published;
  /// From signals of cluster scope by other CTAs (unused under A4).
  Knowledge remoteGathering, remotePublished;
  uint32_t phaseIndex = 0; ///< in control clocks
  /// The last wait of each warp; signals of this phase and of the one before.
  llvm::SmallVector<PhaseEvent, 4> waits, signals, previous;
  uint32_t initInst = 0;
};

struct ClusterBarrier {
  uint64_t generation = 0;
  Knowledge gathering, published;
  BarrierArrivals arrivals;
};

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
  /// This, if it is a bulk operation.
  virtual EngineOp *dynamicBulk() { return nullptr; }
  /// This, if it is a bulk store that a thread of the warp issued.
  EngineOp *asBulkStore(const Warp *warp);
};

struct Cta {
  Cluster *cluster = nullptr;
  uint32_t rank = 0;   ///< in the cluster
  uint32_t linear = 0; ///< in the grid
  std::array<uint32_t, 3> id{};
  std::vector<uint8_t> shared, sharedValid;
  Shadow shadow;
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
  std::mt19937_64 rng;
  Counters counters;
  std::vector<uint64_t> execCount; ///< by instruction
  uint64_t reportedStores = 0;     ///< bytes, in Machine::storedBytes
  /// Of a cluster that is traced.
  std::unique_ptr<TraceRecorder> recorder;
  uint64_t laneCount = 0;
  uint64_t steps = 0;
  size_t nextWarp = 0;
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

/// Set in Warp::origin for registers that an operation in flight will write.
constexpr uint32_t InFlightOrigin = 0x80000000;

/// What an instruction asks of the main loop.
enum class Action : uint8_t {
  None,
  Branch,
  Indirect,
  Block,
  Exit,
  Fault,
  Yield
};

/// Context in which decoded instructions run.
struct Exec {
  Machine &machine;
  Cluster &cluster;
  Cta *cta = nullptr;
  Warp *warp = nullptr;
  uint32_t *regs = nullptr;
  uint32_t *poison = nullptr;
  uint32_t *origin = nullptr;
  uint32_t active = 0;    ///< lanes that pass the guard
  uint32_t splitMask = 0; ///< lanes at this place
  uint32_t pc = 0;
  bool resumed = false;
  Action action = Action::None;
  uint32_t branchTarget = 0;
  const uint32_t *laneTargets = nullptr;
  Split *split = nullptr;
  Allocation *lastAllocation = nullptr;

  Exec(Machine &m, Cluster &c) : machine(m), cluster(c) {}

  // Register access.
  uint32_t *r32(const Operand &o) const { return regs + o.off; }
  uint64_t *r64(const Operand &o) const {
    return reinterpret_cast<uint64_t *>(regs + o.off);
  }
  /// A predicate as a mask of lanes, negation applied.
  uint32_t pred(const Operand &o) const {
    return o.negated ? ~regs[o.off] : regs[o.off];
  }
  void setPred(const Operand &o, uint32_t value) {
    if (o.cls == RegClass::Sink)
      return;
    regs[o.off] = (regs[o.off] & ~active) | (value & active);
  }
  uint64_t read(const Operand &o, unsigned lane) const {
    return o.cls == RegClass::R64 ? r64(o)[lane] : r32(o)[lane];
  }
  void write(const Operand &o, unsigned lane, uint64_t v) const {
    if (o.cls == RegClass::R64)
      r64(o)[lane] = v;
    else if (o.cls == RegClass::R32)
      r32(o)[lane] = v;
  }

  // Poison: lanes whose register holds an undefined value.
  uint32_t poisonOf(const Operand &o) const { return poison[o.meta] & active; }
  void setPoison(const Operand &d, uint32_t lanes, uint32_t from = 0) {
    poison[d.meta] = (poison[d.meta] & ~active) | lanes;
    if (lanes)
      origin[d.meta] = from;
  }
  template <unsigned N>
  void propagate(const Inst &I) {
    uint32_t p = 0;
    for (unsigned i = 1; i <= N; ++i)
      p |= poison[I.ops[i].meta];
    p &= active;
    const Operand &d = I.ops[0];
    poison[d.meta] = (poison[d.meta] & ~active) | p;
    if (p)
      propagateOrigin(I, N);
  }
  void propagateOrigin(const Inst &I, unsigned n);

  // Memory.
  bool resolve(Space space, uint64_t address, uint64_t bytes, unsigned align,
               bool write, int lane, MemRef &ref);
  /// Checks for races; `flags` are Stamp flags.
  void track(const MemRef &ref, uint64_t bytes, bool write, uint8_t flags,
             int lane);

  /// The same for any actor and clock.
  void trackAs(const Stamp &stamp, const Clock &clock, const MemRef &ref,
               uint64_t bytes, bool write);
  /// The same for what the warp does through the async proxy.
  void trackAsync(const Stamp &stamp, const MemRef &ref, uint64_t bytes,
                  bool write);
  void reportRace(const Stamp &earlier, bool wasWrite, const Stamp &stamp,
                  bool write, const Clock &clock, const MemRef &ref,
                  uint64_t at, uint64_t bytes);

  /// Whether the manual orders two tcgen05 operations of one thread.
  bool pipelined(const Stamp &earlier, const Stamp &stamp) const;

  /// A stamp of the executing warp.
  Stamp stampHere(int lane) const;

  // Findings.
  Site siteOf(uint32_t inst, const Cta *cta, int warp, int lane) const;
  Site here(int lane = -1) const { return siteOf(pc, cta, warp->id, lane); }
  Site siteOf(const Stamp &stamp) const;
  void report(FindingKind kind, Severity severity, const llvm::Twine &message,
              int lane = -1, llvm::StringRef hint = "");
  void report(Finding finding);
  /// Reports an error and stops the launch.
  void fault(FindingKind kind, const llvm::Twine &message, int lane = -1);
  void fault(Finding finding);
  /// A value that steers the program comes from memory that nobody wrote.
  void checkPoison(const Operand &o, llvm::StringRef what);

  /// Counts a wait of a kind of WaitCounts.
  void countWait(const char *kind, bool stalled) {
    WaitCounts &c = cluster.counters.waits[kind];
    ++c.waits;
    c.stalled += stalled;
  }
  // Blocking.
  void block(BlockKind kind, uint64_t arg = 0, uint64_t generation = 0) {
    action = Action::Block;
    split->block = kind;
    split->arg = arg;
    split->generation = generation;
  }
  /// True when `need` lanes are here; else blocks until they arrive.
  bool converge(uint32_t need);

  // Clocks (Sanitizer.cpp).
  bool sanitizing() const;
  /// What the active lanes publish now; starts a new epoch.
  Knowledge release();
  /// The same for a relaxed signal: only what has been executed.
  Knowledge releaseControl();
  void acquire(const Knowledge &from);
  /// All lanes of the warp have synchronised with each other.
  void warpSynchronised();
  /// Value of an operand that all active lanes have to agree on.
  uint64_t uniform(const Operand &o, llvm::StringRef what);
};

/// One launch.
class Machine {
public:
  Machine(const ProgramImpl &program, Memory &memory,
          const LaunchConfig &config, const KernelInfo &kernel)
      : program(program), memory(memory), config(config), kernel(kernel) {}
  RunReport run();

  const ProgramImpl &program;
  Memory &memory;
  const LaunchConfig &config;
  const KernelInfo &kernel;
  uint32_t entry = 0;
  std::array<uint32_t, 3> clusters{};
  uint32_t threadsPerCta = 0, warpsPerCta = 0;
  uint64_t memoryLimit = 0;              ///< bytes of host memory
  std::vector<uint64_t> globalAddresses; ///< of module variables
  std::vector<uint8_t> params;
  GlobalShadow globalShadow;
  std::atomic<bool> stop{false};
  /// Clusters run on several host threads: the first thing that is found ends
  /// that, since what is found next would depend on the host's timing.
  bool parallel = false;
  std::atomic<bool> repeat{false};

  /// Executions by instruction, of all clusters.
  std::vector<uint64_t> execCount;

  /// Synchronisation variables in memory: what was published to an address for
  /// one CTA, cluster or GPU.
  std::mutex syncMutex;
  std::map<std::pair<uint64_t, uint64_t>, Knowledge> syncVariables;

  uint32_t nextCluster = 0; ///< of interleaved launches

  void report(Finding finding);
  RunReport result;

  std::unique_ptr<Cluster> createCluster(uint32_t linear);
  /// Takes the next cluster that has not been launched, if there is one.
  bool claimCluster(std::array<uint32_t, 3> &id);
  /// Advances one warp or engine operation; false when all is done.
  bool step(Cluster &cluster);
  void reportDeadlock(Cluster &cluster);
  void finishCluster(Cluster &cluster);

private:
  /// Looks whether the launch is to stop, and says how far it is.
  void tick(Cluster &cluster);
  double getFraction() const;
  std::thread::id caller = std::this_thread::get_id();
  std::atomic<uint64_t> storedBytes{0};
  std::atomic<uint64_t> finishedClusters{0};
  void runParallel(uint32_t total, unsigned threads);
  void runInOrder(uint32_t total);
  void runInterleaved(uint32_t total);
  std::mutex reportMutex;
  std::map<std::string, size_t> seen;
  void initWarp(Warp &warp, Cta &cta, uint32_t id);
  void runWarp(Exec &x, Warp &warp, uint32_t quantum);
  void exitLanes(Exec &x, Split &split, uint32_t lanes);
  unsigned pickSplit(Warp &warp, bool rotate);
  void runSplits(Exec &x, Warp &warp, uint32_t quantum);
};

/// Releases what waits on the barrier when its count is reached. Called after
/// arrivals and after threads have exited.
void completeNamedBarrier(Cta &cta, unsigned id);
void completeClusterBarrier(Cluster &cluster);
/// Accounts for lanes that have exited while others of their warp wait.
void exitAtBarriers(Warp &warp);
/// Marks splits as runnable whose wait is over.
void wake(Cluster &cluster, Cta *cta, BlockKind kind, uint64_t arg,
          uint64_t generation);
/// Retires tensor-memory loads whose registers have been used (A3).
void retireUsedLoads(Exec &x);
/// A move reads a register that a wgmma in flight accumulates into: under
/// assumption A11 the products up to it end now.
void takeInFlight(Exec &x, uint32_t meta);
/// Joins what a warp learns, whoever runs.
void acquireInto(Warp &warp, const Knowledge &from);
void synchroniseLanes(Warp &warp);
/// Finishes cp.async operations of the lanes up to a group.
void completeCpAsync(Exec &x, Warp &warp, CpAsyncOp &op);

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

#endif // ATTN_LIB_SIMULATOR_MACHINE_MACHINE_H
