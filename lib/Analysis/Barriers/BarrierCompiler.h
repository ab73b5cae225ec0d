//===- BarrierCompiler.h - From a kernel to its steps -----------*- C++ -*-===//

#ifndef ATTN_LIB_ANALYSIS_BARRIERS_BARRIERCOMPILER_H
#define ATTN_LIB_ANALYSIS_BARRIERS_BARRIERCOMPILER_H

#include "BarrierProgram.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::attn::barriers {

class TileSet;
struct WalkedTiles;

/// Which tiles a loop walks in a CTA, and from which bounds.
std::string describeTiles(scf::ForOp loop, const WalkedTiles &tiles,
                          int64_t block);

/// What is asked of the values that another one is computed from.
inline bool isBlockNumber(Value value) {
  return value.getDefiningOp<gpu::BlockIdOp>() != nullptr;
}
inline bool isGridSize(Value value) {
  return value.getDefiningOp<gpu::GridDimOp>() != nullptr;
}
inline bool isNothing(Value) { return false; }
/// True for ops that make warps, CTAs or engines wait for each other, and for
/// fences.
bool isSynchronisation(Operation *op);
/// True for ops that access shared memory.
bool touchesBuffer(Operation *op);
/// True for ops that make the check's events.
bool isEvent(Operation *op);
/// The value that says whether a product is added to what is there; null where
/// it always is, or never.
Value getSumCondition(Operation *op);

class Compiler {
public:
  Compiler(Program &program, bool isOfOneCluster, bool opensTiles)
      : program(program), isOfOneCluster(isOfOneCluster),
        opensTiles(opensTiles) {}
  std::optional<UnsupportedOp> run();

private:
  // Loops (BarrierLoops.cpp).
  Slot emitCount(scf::ForOp op);
  bool emitBefore(Operation *op, Value value);
  void emitFor(scf::ForOp op);
  void emitTileLoop(scf::ForOp op);
  void emitWhile(scf::WhileOp op);

  // Comparisons of a loop's counter (BarrierDifferences.cpp).
  /// A sum of values that are there before the loop is, and of its counter.
  struct Difference {
    Operation *compare = nullptr;
    llvm::MapVector<Value, int64_t> terms;
    int64_t constant = 0;
    /// How often the counter is in it.
    int64_t trips = 0;
    /// How often each of them is added or subtracted on the way, which is how
    /// far the sums of the kernel may be from zero.
    llvm::MapVector<Value, int64_t> added;
    int64_t constantsAdded = 0, tripsAdded = 0;

    bool add(scf::ForOp loop, Value value, int64_t factor);
  };
  std::optional<Difference> findDifference(scf::ForOp op, Operation *compare);
  SmallVector<Difference> findDifferences(scf::ForOp op);
  bool isKeptAsDifference(const Difference &difference) const;
  void emitDifferences(scf::ForOp op);
  void emitNextDifferences(scf::ForOp op);
  bool emitComparison(Operation *op);

  // Counters of which the remainder matters (BarrierPeriods.cpp).
  bool mattersBy(Operation *user, Value value) const;
  bool isPassedOn(Value value) const;
  std::optional<int64_t> getPeriod(Operation *user, Value value,
                                   SmallVectorImpl<Value> &more) const;
  std::optional<int64_t> findPeriod(scf::ForOp loop);

  // What only the launch gives (BarrierLaunch.cpp).
  void findOpenLaunch();

  // Loads that signals to other CTAs may overtake (BarrierUses.cpp).
  using Loads = SmallVector<Operation *, 2>;
  SmallVector<ByteRange> collectRemoteBytes();
  void findLateLoads();
  Loads getCertainLoads(Value value);
  void addChosen(Operation *op, Loads &loads);
  void addLoadsOfResult(OpResult result, Loads &loads);
  bool usesRegister(OpOperand &operand) const;
  void emitUses(Operation *op);

  // Teams (BarrierTeams.cpp).
  void readTeams();
  bool isKnownOfTeams(Operation *op) const;

  // What matters (BarrierCompiler.cpp).
  std::optional<UnsupportedOp> readLaunch();
  /// Bytes of a buffer or of mbarriers.
  struct MemoryRange {
    int64_t begin, end;
    Operation *op;
  };
  std::optional<UnsupportedOp> collectMemory();
  void checkMemory(ArrayRef<MemoryRange> ranges);
  std::optional<UnsupportedOp> findEvents();
  void collectFlow();
  void require(Operation *op);
  void requireControl(Operation *op);
  /// True if both sides of a branch start copies that are the same to slots and
  /// barriers, and do nothing else there, so that it does not matter which one
  /// a warp takes.
  bool hasSidesAlike(scf::IfOp op);
  void demand(Operation *op, Value value);
  void demand(Value value);

  // Steps (BarrierEmit.cpp).
  Step &emit(Code code, Operation *op);
  void emitBlock(Block &block);
  void emitOp(Operation *op);
  void emitIf(scf::IfOp op);
  void emitRare(RareOp op);
  void emitPartitions(WarpSpecializeOp op);
  void emitInSomeThreads(Operation *op, Code code);
  void emitScalar(Operation *op);
  void emitSynchronisation(Operation *op);
  void emitBarrierOp(Operation *op);
  void emitAsync(AsyncOpInterface op);
  void emitFill(AsyncOpInterface op);
  void emitAccesses(Operation *op);
  void emitProduct(Operation *op);
  void emitCommit(CommitOpInterface op);
  void emitTensorMemory(Operation *op);
  void emitTeamTake(TeamTakeOp op);
  void emitTeamShare(TeamShareOp op);
  /// Teams from `first` on and before `last` write the op's buffer, or read
  /// that of the team `readsOn` further on.
  void emitTeamAccess(Operation *op, int64_t first, int64_t last,
                      std::optional<int64_t> readsOn);
  /// With `byEngine` those that the op's engine carries out, or those that its
  /// threads do.
  void addAccesses(Operation *op, Step &step,
                   std::optional<bool> byEngine = std::nullopt);
  void useElement(Operation *op, Value index);
  void copyAll(Operation *op, ValueRange from, ValueRange to);
  uint32_t here() const { return program.steps.size(); }
  void fail(Operation *op, std::string why);
  /// The place of a value; kNoSlot for one that nothing depends on.
  Slot slotOf(Value value);
  Slot newTemporary();
  bool isDemanded(Value value) const { return demanded.contains(value); }
  bool isElected(Operation *op) const;
  int64_t countWarps(Operation *op) const;

  // Tiles (BarrierTiles.cpp).
  void findTileLoops();
  void findTileFor(scf::ForOp loop);
  void findTileWhile(scf::WhileOp loop);
  void findDealer();
  SmallVector<Value> sourcesOf(Value value);
  bool reaches(Value from, llvm::function_ref<bool(Value)> isSource,
               llvm::function_ref<bool(Value)> isStop);
  bool isTile(scf::ForOp loop, Value value);
  std::string textOf(Value value, Value induction);
  /// Whether loops over tiles are of tiles of which nothing is known.
  bool hasOpenLoops() const { return program.isOpen && opensTiles; }
  bool isOfLaunch(Value value, Value tile);
  bool isOfLaunch(scf::ForOp loop);
  bool isCount(Value value, Value count);

  // Which tiles and blocks there are, and their kinds (BarrierKinds.cpp).
  Value findDistinctNumber(scf::ForOp loop);
  void compareTiles();
  void classifyTiles();
  void boundTiles();
  void classifyBlocks();
  void enumerateTiles(Operation *loop, TileSet &tiles);
  void countDealtTiles(scf::WhileOp loop, TileSet &tiles);
  /// A value that tells tiles apart, or what is decided of it.
  struct TileKey {
    Value value;
    std::optional<Decision> decision;
  };
  SmallVector<TileKey> collectKeys(Operation *loop);

  // Values that matter (BarrierDecisions.cpp).
  void computeLiveness();
  void findDecisions();

  // Rings (BarrierRings.cpp).
  void findRings();

  Program &program;
  bool isOfOneCluster, opensTiles;
  WarpSpecializeOp partitions;
  llvm::SmallPtrSet<Operation *, 32> needed;
  llvm::DenseSet<Value> demanded;
  /// Values that another one may be, through control flow.
  llvm::DenseMap<Value, SmallVector<Value, 2>> flow;
  llvm::DenseMap<Value, uint32_t> arrays;
  llvm::DenseMap<Value, Slot> slots;
  /// How many trips each loop has left.
  llvm::DenseMap<Operation *, Slot> trips;
  /// Of a comparison of a loop's counter: where the difference is, and how much
  /// that grows in a trip.
  struct Kept {
    scf::ForOp loop;
    Slot slot = kNoSlot;
    int64_t growth = 0;
  };
  llvm::DenseMap<Operation *, Kept> differences;
  /// Ops whose steps are taken in front of their place.
  llvm::DenseSet<Operation *> emittedBefore;
  /// For each loop over tiles the value that stands for the tile.
  llvm::MapVector<Operation *, Value> tileValues;
  /// Ops of which a result is the number of the next tile for everybody.
  llvm::DenseMap<Operation *, Value> tiles;
  /// Loads that may be late, and their accesses once they have some; what a
  /// value is certainly computed from.
  llvm::MapVector<Operation *, std::pair<uint32_t, uint32_t>> lateLoads;
  llvm::DenseMap<Value, Loads> certainLoads;
  /// Operands that control flow passes on.
  llvm::DenseSet<OpOperand *> passedOn;
  uint32_t temporaries = 0;
  /// What decides: an op that matters, and a value that it takes.
  SmallVector<std::pair<Operation *, Value>> roots;
  /// The text of what makes each tile, to compare partitions.
  std::string tileText;
  /// A loop whose tiles are made in another way than those of the first one.
  scf::ForOp unlikeLoop;
  /// Loops that look like one over tiles are not, since there are several.
  bool hasSeveralLoops = false;
  std::optional<UnsupportedOp> unsupportedOp;
};

} // namespace mlir::attn::barriers

#endif // ATTN_LIB_ANALYSIS_BARRIERS_BARRIERCOMPILER_H
