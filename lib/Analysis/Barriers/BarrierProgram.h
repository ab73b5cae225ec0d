//===- BarrierProgram.h - Synchronisation as steps of a warp ----*- C++ -*-===//
//
// The part of a kernel at the barrier rung that decides who waits for whom and
// who touches which bytes: a list of steps that each warp walks through, with
// jumps. Of the values only those are kept that a condition, a slot, a parity
// or a handed-over word is computed from.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_BARRIERS_BARRIERPROGRAM_H
#define ATTN_LIB_ANALYSIS_BARRIERS_BARRIERPROGRAM_H

#include "../Flow/RegionArithmetic.h"
#include "../Knowledge/NumberList.h"
#include "attn/Analysis/Barriers/BarrierReport.h"
#include "attn/Analysis/Memory/Footprint.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::attn::barriers {

/// A place among the values of a warp.
using Slot = uint32_t;
inline constexpr Slot kNoSlot = ~0u;

enum class Code : uint8_t {
  Compute,   ///< dst = compute(args)
  Launch,    ///< dst = a number of the launch (`launch`)
  Copy,      ///< dst = args[0]
  Join,      ///< dst = the later group of args[0] and args[1]
  Jump,      ///< to `target`
  Branch,    ///< to `target` if args[0] is zero
  Count,     ///< dst = trips from args[0] to args[1] in steps of args[2]
  Elect,     ///< to `target` unless this warp holds the elected thread
  Leader,    ///< to `target` unless this CTA is the cluster's first
  Partition, ///< to the target of the warp's partition
  Teams,     ///< to `target` unless the team is one of [first, last)
  Tile,      ///< dst = the next tile, or to `target` if there is none
  TileTest,  ///< to `target` unless args[0] is a tile
  Init,
  Inval,
  Expect,
  Arrive,
  Wait,
  CtaBarrier,
  NamedBarrier,
  ClusterBarrier,
  WarpBarrier, ///< of the threads of a warp
  TurnStart,
  TurnTake,
  TurnPass,
  FenceProxy,
  FenceTensor, ///< before a signal, or with `flag` behind a wait
  TakeTensor,  ///< the first warp takes `value` columns
  LeaveTensor, ///< the first warp gives them back
  Access,      ///< accesses by the warp itself
  Fill,        ///< an asynchronous write that an mbarrier counts
  Issue,       ///< asynchronous accesses of a group; may close it
  Commit,      ///< closes a group
  Await,       ///< waits for groups; args are results that have to be complete
  Product,     ///< accesses of the thread's products, which end in their order
  Signal,      ///< `value` arrivals when these products are complete, or copies
  ReadWord,    ///< dst = a word of shared memory
  Use,         ///< takes registers of loads [first, last) of `usedLoads`
  Publish,     ///< what the warp has stored to global memory has to be there
  RareBegin,   ///< what follows may be left out, up to RareEnd
  RareEnd,
  Exit
};

/// A number that the launch gives.
enum class LaunchNumber : uint8_t { Block, Grid, Rank, Warpgroup, Team };

/// Which tile a Code::Tile takes (`Step::value`): the first, the one behind the
/// last that this warp took, or the one behind the last that was dealt.
inline constexpr int64_t kFirstTile = 0, kNextTile = 1, kDealtTile = 2;
/// What stands for no more tiles where the number itself tells.
inline constexpr int64_t kNoTile = INT32_MAX;

struct Step {
  Code code = Code::Exit;
  Operation *op = nullptr;
  Slot dst = kNoSlot;
  SmallVector<Slot, 3> args;
  uint32_t target = 0;
  /// Of barriers: the array, and the place in it.
  uint32_t array = 0;
  Slot index = kNoSlot;
  /// Bytes, threads, groups left pending; of an election whether it is among
  /// the CTA's warps; which tile.
  int64_t value = 0;
  /// CTAs at whose barriers or buffers it happens, and how many they are. Of
  /// announcements and of regions of a leader: the bits that are clear in the
  /// ranks of those that execute it.
  SignalMask where = SignalMask::own();
  int64_t ctas = 1;
  /// Marks steps by kind. Of branches: at the head of a loop. Of computations:
  /// a counter of trips begins. Of elections and barriers: each warpgroup by
  /// itself. Of issues: the group is closed. Of fills: by all warps of a
  /// partition, in the other CTA. Of waits for stores: only until they have
  /// read. Of initialisations: a fence stands behind them. Of signals: of
  /// copies.
  bool flag = false;
  /// Marks a computation that says where a tile is and not how long it takes:
  /// its outcome has a name, of which is known what it lies between.
  bool isNamed = false;
  /// Both CTAs of a pair take part. Bytes of fills count at its first CTA;
  /// products and columns of tensor memory are of both.
  bool isOfPair = false;
  /// One thread of the warp takes it, the elected one.
  bool isElected = false;
  /// Signals that one warp sends with it.
  int64_t times = 1;
  LaunchNumber launch = LaunchNumber::Block;
  unsigned dim = 0;
  /// Accesses [first, last) of the program.
  uint32_t first = 0, last = 0;
  SmallVector<uint32_t, 4> targets;
  Arithmetic compute;
  /// Rings that may not be turned before this step, which does not go along.
  SmallVector<uint32_t, 1> stopsTurns;
  /// Of a sum of the args and `value`: how often each of them counts.
  SmallVector<int64_t, 2> factors;
  /// Counts, of such a sum, how often each arg was added or subtracted on the
  /// way; may be empty. All of that together has to be less than `bound`, or
  /// sums in the kernel may have wrapped around; then there is no number.
  SmallVector<int64_t, 2> added;
  int64_t bound = 0;
  /// Of a load from global memory that the kernel does not write: where, but
  /// for the args.
  std::string address;

  /// Makes it the step that takes the tile behind the last that was dealt, if
  /// there is one.
  void takeDealt(Slot number) {
    dst = number;
    value = kDealtTile;
    flag = true;
  }
  bool touchesMemory() const {
    return code == Code::Access || code == Code::Fill || code == Code::Issue ||
           code == Code::Product || code == Code::TakeTensor;
  }
  bool usesMbarriers() const {
    return code == Code::Init || code == Code::Inval || code == Code::Expect ||
           code == Code::Arrive || code == Code::Wait || code == Code::Fill ||
           code == Code::Signal;
  }
  /// True if all warps of a partition execute its accesses together.
  bool isCollective() const {
    return (code == Code::Access || code == Code::Issue ||
            (code == Code::Fill && flag)) &&
           args.empty();
  }
  /// Returns whether it goes to the memory or barriers of the CTA of rank `to`,
  /// if that of rank `from` executes it.
  bool reaches(uint32_t from, uint32_t to) const {
    // An exchange is with the other one of two CTAs.
    bool isExchange = code == Code::Fill && flag;
    return isExchange ? to == (from ^ 1u) : where.reaches(from, to);
  }
  /// Returns the CTA whose barrier is signalled by what comes to `cta`.
  uint32_t getBarrierCTA(uint32_t cta) const {
    return code == Code::Fill && isOfPair ? cta & ~1u : cta;
  }
  /// Calls `visit` with each of `ctas` CTAs to which it goes from that of rank
  /// `from`. Returns false if a call does, which is the last one.
  bool forEachTarget(uint32_t from, uint32_t ctas,
                     llvm::function_ref<bool(uint32_t)> visit) const {
    for (uint32_t to = 0; to < ctas; ++to)
      if (reaches(from, to) && !visit(to))
        return false;
    return true;
  }
};

/// A ring's number where there is none.
inline constexpr uint32_t kNoRing = ~0u;

/// A ring that may be turned. One whose slots are found in another way than by
/// its cursors turns by so many positions as it has slots: by its parities.
struct Ring {
  int64_t depth = 1;
  bool keepsSlots = false;
  /// True if each CTA's turns by itself: by parities, which nobody else waits
  /// for.
  bool turnsAlone() const { return depth == 1 || keepsSlots; }
};

/// What a value is to a ring (BarrierRings.cpp). What lies between a cursor and
/// the next one tells how a ring stands, and is compared as it is.
struct RingUse {
  enum Kind : uint8_t { None, Cursor, Index, Parity, Between };
  Kind kind = None;
  uint32_t ring = kNoRing;
  /// The cursor that an index or a parity is of.
  Slot cursor = kNoSlot;
};

/// An access of a step.
struct AccessInfo {
  Footprint footprint;
  /// A warp touches all of its part: nobody else shares that out with it.
  bool isExact = false;
  /// Of the slot, if it goes through one.
  Slot index = kNoSlot;
  /// A load of bytes that are written from other CTAs, or by st.async: it may
  /// happen until an instruction uses what it has read, and neither signals to
  /// other CTAs nor st.async wait for it.
  bool isLate = false;
  /// What a product is added to: always, or where the step's arg says so.
  bool isAddedTo = false;
  /// How many teams further on the buffer is.
  int64_t teamsOn = 0;
  uint32_t ring = kNoRing;
  /// Other rings whose bytes it may touch.
  SmallVector<uint32_t, 1> overlaid;
};

/// A comparison with a constant.
struct Decision {
  /// The op that compares: two of them with the same name are not the same.
  Operation *op = nullptr;
  Arithmetic compute;
  int64_t constant = 0;

  bool decide(int64_t value) const;
  bool operator==(const Decision &other) const { return op == other.op; }
};

/// Returns true if an op only says where something is, so that a run need not
/// go on twice for its outcomes: a number that others are divided and
/// multiplied by, or a choice between a number and its place from the other
/// end.
bool isPlaceOnly(Operation *op);

/// The decision that an op makes of a value, if it does nothing else.
std::optional<Decision> getDecision(Operation *op, Value compared);

/// Names uses of mbarriers: waits, and all others. `Wait` and `Other` are by
/// any threads of a warp, the shared ones by others than the elected one too.
enum class BarrierUse { Wait, SharedWait, Other, SharedOther, End };

/// Bytes of an mbarrier.
inline constexpr int64_t kBarrierBytes = 8;

struct BarrierArray {
  MBarrierAllocOp op;
  /// Bytes from the start of shared memory.
  int64_t offset = 0;
  /// Number of the first barrier among those of a CTA.
  uint32_t first = 0;
  uint32_t count = 0;
  uint32_t ring = kNoRing;
};

struct Program {
  gpu::GPUFuncOp kernel;
  /// What is wrong without a run.
  std::optional<BarrierWitness> wrong;
  std::vector<Step> steps;
  std::vector<AccessInfo> accesses;
  /// Late loads that steps use, as numbers of accesses.
  std::vector<uint32_t> usedLoads;
  bool hasLateLoads = false;
  SmallVector<BarrierArray> arrays;
  uint32_t numBarriers = 0;
  /// Columns of tensor memory up to the end of the last allocation.
  int64_t tensorColumns = 0;
  uint32_t numSlots = 0;
  /// Warps of a CTA, the first of each partition behind each other; without
  /// partitions one entry.
  int64_t warps = 0;
  SmallVector<int64_t> firstWarps;
  /// Teams of one warp each stand here as partitions (BarrierTeams.cpp).
  int64_t teams = 1, teamBytes = 0;
  int64_t cluster = 1;
  std::array<int64_t, 3> grid = {0, 0, 0};
  /// The grid follows from extents that only the launch gives.
  bool isGridOpen = false;
  /// Something depends on what only the launch gives: arguments, a grid that
  /// follows from them, or global memory (BarrierLaunch.cpp).
  bool isOpen = false;
  /// Values that are the same everywhere, which no step sets.
  SmallVector<std::pair<Slot, int64_t>> constants;
  /// Arguments that something depends on, of which no value is known.
  SmallVector<std::pair<Slot, unsigned>> arguments;
  /// For each rank, or for all of them, and each step: the values that steps
  /// from there on may take, but for the constants; the bit behind them says
  /// whether one of these steps takes a next tile, and those behind it whether
  /// one touches the bytes of each ring other than through the ring, or does
  /// something else that does not turn with it; the next one whether one takes
  /// the number of the block, those behind it whether mbarriers of each array
  /// are used (BarrierUse), and the last ones whether one may make an unknown
  /// of each kind.
  std::vector<std::vector<llvm::BitVector>> live;
  const llvm::BitVector &getLive(uint32_t rank, uint32_t step) const {
    return live[live.size() == 1 ? 0 : rank][step];
  }
  size_t getBarrierBit(BarrierUse use, uint32_t array) const {
    return numSlots + 2 + rings.size() + size_t(use) * arrays.size() + array;
  }
  size_t getUnknownBit(size_t kind) const {
    return getBarrierBit(BarrierUse::End, 0) + kind;
  }
  /// The kinds of unknowns that steps may make (Unknowns::getKind).
  std::vector<std::string> unknownKinds;
  /// The depths of rings that may be turned, and what values are to them.
  SmallVector<Ring> rings;
  std::vector<RingUse> ringUses;
  /// Values that matter by these decisions only; none for others.
  std::vector<SmallVector<Decision, 1>> decisions;
  /// Values that grow by a number in each trip of a loop and are only compared
  /// with zero (BarrierDifferences.cpp).
  SmallVector<std::pair<Slot, int64_t>> growths;
  /// Values that say how many trips a loop has left, and those that fall with
  /// it.
  SmallVector<Slot> counters;
  /// Values that are the same in all tiles of a loop over them, or go from one
  /// tile to the next.
  llvm::BitVector acrossTiles;
  /// Values that count trips, which nothing but a comparison with zero takes.
  llvm::BitVector counts;
  /// Values that are numbers of groups.
  llvm::BitVector groupSlots;
  /// Tiles come one by one (Code::Tile): all that there are.
  bool hasTiles = false;
  /// How many there are, or what matters of them, only the launch says.
  bool hasOpenTiles() const { return hasTiles && isOpen; }
  /// Their numbers are not negative.
  bool areTilesCounts = true;
  /// The least and the greatest of their numbers, where the launch says which
  /// there are.
  std::optional<std::pair<int64_t, int64_t>> tileRange;
  /// A loop whose tiles are computed in another way than another partition's,
  /// and, if they differ in some CTA, what both walk there.
  Operation *unlikeLoop = nullptr;
  SmallVector<OpNote, 2> unlikeTiles;
  /// A thread deals them, as a counter says.
  bool dealsTiles = false;
  /// One number for each kind, and how many there are of all kinds.
  NumberList tileNumbers;
  /// Those of all tiles, as CTAs take them one after the other.
  std::vector<int64_t> allTiles;
  int64_t numTiles = 0;
  /// The first CTA of a cluster of each kind.
  std::vector<std::array<int64_t, 3>> blocks;
};

/// Why a kernel whose partitions or CTAs may walk different tiles is not
/// followed.
inline constexpr StringLiteral kUnlikeTiles =
    "its tiles are not computed as those of the other partitions are";
inline constexpr StringLiteral kUnlikeRanks =
    "the CTAs of a cluster walk different tiles";

/// Why a kernel with very many kinds of tiles or blocks is not followed.
inline constexpr StringLiteral kManyKinds =
    "it has more kinds of tiles or blocks than are told apart";

/// Engines whose groups a warp waits for come first.
inline constexpr unsigned kGroupEngines = 5;
/// The one whose groups are each thread's own.
inline constexpr unsigned kCopyEngine = 0;
/// The one whose groups store to global memory.
inline constexpr unsigned kStoreEngine = 2;
/// Those of tensor memory, of which a wait leaves nothing, come last.
inline constexpr unsigned kFirstTensorEngine = 3;
/// The number of an engine whose order is known, else -1.
int getEngineNumber(const AsyncEngine &engine);
/// Whether what an engine writes may come before a load that a signal has
/// followed, within a CTA too: st.async was seen to.
inline bool overtakesLoads(const AsyncEngine *engine) {
  return engine == &kSends;
}

/// Whether an op takes what only the launch gives: integers that are arguments
/// of the kernel or read from global memory, or the size of a grid that follows
/// from them.
bool dependsOnLaunch(const Program &program, Operation *op);

/// The kinds of unknowns that a step may make of unknowns.
SmallVector<std::string, 2> getUnknownKinds(const Program &program,
                                            const Step &step);

/// The address of a load from global memory that the kernel does not write, as
/// text, and the numbers that it is computed from besides. Without text the
/// load is not known to give the same to all.
std::pair<std::string, SmallVector<Value>>
getGlobalAddress(LLVM::LoadOp load, gpu::GPUFuncOp kernel);

/// The same for a result of attn.deal_run: what it is a number of.
std::string getDealtNumber(OpResult result, gpu::GPUFuncOp kernel);

/// Does the same for attn.find_key, whose order all threads know alike.
std::pair<std::string, SmallVector<Value>> getFoundKey(FindKeyOp find,
                                                       gpu::GPUFuncOp kernel);

/// Decides which rings are turned by their slots, which by their parities
/// alone, and which steps do not go along, of values that are placed already.
void findTurns(Program &program);

/// The steps of a kernel, or what is not supported about it.
/// With `isOfOneCluster` it is launched with one cluster, which does all tiles.
/// With `opensTiles` the number of a tile is unknown, where anything is.
std::optional<UnsupportedOp> compileProgram(gpu::GPUFuncOp kernel,
                                            Program &program,
                                            bool isOfOneCluster = false,
                                            bool opensTiles = false);

} // namespace mlir::attn::barriers

#endif // ATTN_LIB_ANALYSIS_BARRIERS_BARRIERPROGRAM_H
