//===- BarrierMachine.h - The warps of a cluster, step by step --*- C++ -*-===//
//
// A state of the run: where each warp is, what each barrier has counted, which
// events matter and who knows them. It is a value: a copy goes on by itself.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_BARRIERS_BARRIERMACHINE_H
#define ATTN_LIB_ANALYSIS_BARRIERS_BARRIERMACHINE_H

#include "../Knowledge/AccessList.h"
#include "../Knowledge/EventSet.h"
#include "../Knowledge/NumberList.h"
#include "../Knowledge/Unknowns.h"
#include "BarrierProgram.h"
#include "attn/Support/Assumption.h"
#include "attn/Support/ReplayTurn.h"
#include "attn/Support/SyncStep.h"
#include <map>
#include <memory>

namespace mlir::attn {
struct Waiter;
struct WaiterNames;
} // namespace mlir::attn

namespace mlir::attn::barriers {

struct Wait {
  uint32_t event = 0;
  uint32_t step = 0;
  uint16_t warp = 0;
};

/// Barriers of a CTA's warps (PTX ISA, barrier).
inline constexpr uint32_t kWarpBarriers = 16;

/// An mbarrier, or a barrier of warps with a generation in place of a phase.
struct Barrier {
  bool isLive = false;
  /// A fence of initialisations stands behind its own, which copies and
  /// products need.
  bool isFenced = false;
  uint32_t initStep = 0, invalStep = 0;
  uint32_t initEvent = 0;
  int64_t count = 0, pending = 0, tx = 0;
  /// Phases that are complete.
  int64_t phase = 0;
  Knowledge gathering, published;
  /// Completion of the last phase, and of the one before; 0 where there was
  /// none, or where everybody knows of it.
  uint32_t complete[2] = {0, 0};
  /// Signals of the current phase, of the last complete one and of the one
  /// before; `from` says which step and warp the last one was.
  SmallVector<uint32_t, 4> signals[3];
  SmallVector<Wait, 4> waits;
  uint32_t lastStep = 0;
  uint16_t lastWarp = 0;
};

/// An event other than an access.
struct Signal {
  uint32_t event = 0;
  uint32_t step = 0;
  uint16_t warp = 0;
  bool isRemote = false; ///< from another CTA, or by an engine
};

struct Warp {
  enum State : uint8_t { Ready, AtBarrier, AtTile, Done };
  State state = Ready;
  uint32_t pc = 0;
  uint8_t cta = 0;
  uint8_t local = 0; ///< in the CTA
  uint8_t partition = 0;
  uint8_t inPartition = 0;
  /// Of the barrier that it waits at: its number, and the phase it waits for.
  uint32_t barrier = 0;
  int64_t phase = 0;
  /// Values; those that are not known have no bit.
  std::vector<int64_t> values;
  std::vector<bool> known;
  /// Values that differ between the numbers that the last tile may have.
  std::map<Slot, NumberList> varied;
  /// Values that are sums of what only the launch gives.
  std::map<Slot, Affine> unknown;
  WarpKnowledge knows;
  /// What its products come after, those before them included, and what
  /// everybody who knows them to be complete may rely on.
  Knowledge products;
  /// In clusters, the signals behind them that went to each CTA: the next one
  /// there comes after these, and says nothing of those to others.
  std::vector<EventSet> commits;
  /// Values that come from words that were read before anybody had written
  /// them, and the step that read the word.
  std::map<Slot, uint32_t> unwritten;
  /// True while what it has stored to global memory may not be there.
  bool hasOpenStores = false;
  /// True once it has read that there is no other tile.
  bool heardOfNone = false;
  /// True once a signal stands behind its products.
  bool hasSignalled = false;
  /// Of each engine: events of the open group, and of the closed ones that are
  /// not complete, the oldest first.
  SmallVector<uint32_t, 2> open[kGroupEngines];
  std::vector<SmallVector<uint32_t, 2>> groups[kGroupEngines];
  /// Groups that were ever closed.
  int64_t closed[kGroupEngines] = {0, 0, 0, 0, 0};
  uint32_t tiles = 0;
  /// On a path that may be left out: what was known at its start.
  std::vector<WarpKnowledge> rare;
  /// The accesses made since then, and the groups that were pending.
  std::vector<EventSet> rareEvents;
  std::vector<std::vector<SmallVector<uint32_t, 2>>> rareGroups;
};

/// A late load that a signal to another CTA may overtake.
struct Overtaken {
  uint32_t load = 0, signal = 0; ///< events
  uint32_t step = 0;             ///< of the signal
  uint16_t warp = 0;             ///< that signals
};

/// A word of shared memory that hands a number over.
struct Word {
  int64_t value = 0;
  /// In its place, a sum of what only the launch gives.
  std::optional<Affine> sum;
  /// Values that differ between the numbers that the last tile may have.
  NumberList varied;
  /// How often it was read, and how often the one before it was that the same
  /// step wrote; -1: not known yet.
  int64_t reads = 0, expected = -1;
  bool isKnown = true;
  /// The step that wrote it.
  uint32_t step = 0;
};

/// How often what a step writes is read, which is the same in each life.
using ReadCounts = std::map<uint32_t, int64_t>;

/// How often words are read: as a run before has shown, and here.
struct Reads {
  const ReadCounts *expected = nullptr;
  /// Counts the reads of words that were overwritten since.
  ReadCounts counted;
};

/// Where a run stops to be looked at (TripSkipper): at the head of a loop that
/// has many trips left, of one warp.
struct Pauses {
  bool isOn = false, isReached = false;
  /// Not before so many steps.
  int64_t after = 0;
  /// The warp, once it is chosen, and the one to go on with.
  std::optional<uint32_t> of;
  uint32_t last = 0;
  /// Counters of trips, by warp, that a loop has set since this was cleared.
  llvm::DenseSet<std::pair<uint32_t, Slot>> begun;

  bool isDue(const Warp &warp, uint32_t number, const Step &step,
             const Facts &facts) const;
};

/// The columns that a CTA has taken.
struct TensorMemory {
  bool isTaken = false;
  /// In a pair, that the CTA waits until the other one takes its part; that it
  /// has come that far; that the other one has given the columns of both back.
  bool waits = false, isBegun = false, isOver = false;
  /// Cells that somebody has written since.
  llvm::BitVector written;
  int64_t columns = 0;
  uint32_t event = 0;
  uint32_t takeStep = 0, leaveStep = 0;
};

class Machine {
public:
  Machine(const Program &program, const BarrierCheckOptions &options);

  /// Runs all warps until none can go on, or something is wrong.
  void run();
  /// True if warps wait for a tile, and nobody can go on without.
  bool wantsTile() const;
  void addTile(int64_t number) { tiles.push_back(number); }
  /// Adds a tile that may have any of the numbers, as long as they lead to the
  /// same steps.
  void addTile(const NumberList &numbers);
  /// Adds a tile of which only the launch says what it is.
  void addOpenTile();
  /// True if the next step depends on which of them it is.
  bool wantsChoice() const {
    return !parting.kept.empty() || question || impossible;
  }
  /// True if no launch leads here. Of what is wrong it is asked of integers.
  bool isImpossible() const {
    bool isWrong = getWitness() || unsupported;
    return impossible || (isWrong && !facts.haveIntegers());
  }
  /// Goes on with the numbers that lead to one next step; the machine that is
  /// returned with the others.
  Machine split();
  /// True if a step was taken since the last split. A state of which that does
  /// not hold is a part of the one that was split, which was not followed.
  bool hasMovedSinceSplit() const { return parting.hasMoved; }
  /// Goes on with one of the numbers.
  void choose(int64_t index);
  int64_t countChoices() const { return choices.size(); }
  uint32_t countTiles() const { return tiles.size(); }
  void endTiles() { areTilesOver = true; }
  bool isDone() const;
  /// Nobody can go on: says who waits for what.
  void reportDeadlock();
  /// Everybody has exited: is something still on its way?
  void checkExit();
  /// What stands in the way of a verdict.
  const std::optional<BarrierWitness> &getWitness() const {
    return condition ? condition : witness;
  }
  const std::optional<UnsupportedOp> &getUnsupported() const {
    return unsupported;
  }
  int64_t getSteps() const { return steps; }
  /// Keeps a number of steps that another run took too.
  void setSteps(int64_t count) { steps = count; }
  void setLimit(int64_t count) { limit = count; }
  bool isOverLimit() const { return steps > limit; }
  void setBlock(std::array<int64_t, 3> block) { firstBlock = block; }
  /// The cluster may be of any kind of block, as long as they lead to the same
  /// steps.
  void openBlocks();
  /// Sizes and words that only the launch gives are unknown.
  void openLaunch();
  /// The same with numbers for them: what led `other` to where it is, if there
  /// are such numbers. Says which they are.
  bool openLaunchAs(const Machine &other, std::string &text);
  size_t countUnknowns() const { return unknowns ? unknowns->size() : 0; }
  /// Notes down from here on in which order warps go on.
  void record(std::vector<ReplayTurn> &turns) { recorded = &turns; }
  /// Notes down what each warp does from here on.
  void takeNotes(std::vector<std::vector<SyncStep>> &steps) { notes = &steps; }
  void setArgument(Slot slot, int64_t value);
  /// Takes words for read to the end when they have been read so often: one
  /// that is read again after all has no value then.
  void expectReads(const ReadCounts &counts) { reads.expected = &counts; }
  /// How often words that were overwritten had been read, by the step that had
  /// written them.
  const ReadCounts &countReads() const { return reads.counted; }
  /// What the orders seen so far rest on: bit n of assumption n.
  uint32_t getAssumptions() const { return assumptions; }

private:
  friend class StateKey;
  friend class TripSkipper;
  // Steps (BarrierMachine.cpp).
  bool advance(Warp &warp);
  bool execute(Warp &warp, const Step &step);
  bool executeControl(Warp &warp, const Step &step);
  void copyValue(Warp &warp, const Step &step);
  bool getCondition(Warp &warp, const Step &step, int64_t &value);
  void compute(Warp &warp, const Step &step);
  void computeSumOfKnown(Warp &warp, const Step &step);
  void computeVaried(Warp &warp, const Step &step);
  bool agreeOn(Warp &warp, const Step &step);
  bool agree(const NumberList &outcomes, bool isCondition = false);
  void keep(const IndexRanges &kept);
  bool takeTile(Warp &warp, const Step &step);
  bool get(Warp &warp, Slot slot, int64_t &value, const char *what);
  void set(Warp &warp, Slot slot, int64_t value);
  int64_t getLaunchNumber(const Warp &warp, const Step &step) const;
  void takeLaunchNumber(Warp &warp, const Step &step);
  void setBlockNumbers(Warp &warp, const Step &step);
  /// Whether a step that is still to come depends on which of the blocks it is.
  bool asksForBlock() const;

  // Paths that may be left out (BarrierRare.cpp).
  void beginRare(Warp &warp);
  void endRare(Warp &warp);

  // Numbers that only the launch gives (BarrierUnknowns.cpp).
  Affine getBlock(unsigned dim);
  Affine getGrid(unsigned dim);
  bool setOpenLaunchNumber(Warp &warp, const Step &step);
  void setOpen(Warp &warp, Slot slot, const Affine &value);
  std::optional<Affine> getOpen(const Warp &warp, Slot slot) const;
  bool isOpenStep(const Warp &warp, const Step &step) const;
  bool isDecided(const Affine &sum);
  bool answer(Warp &warp, const Step &step);
  void splitAtQuestion(Machine &other);
  Affine divide(const Affine &sum, int64_t by);
  std::optional<Affine> computeCounts(Operation *op, ArrayRef<Affine> args);
  std::optional<Affine> computeSum(Operation *op, ArrayRef<Affine> args);
  std::optional<Affine> readGlobal(const Step &step, ArrayRef<Affine> args);
  std::optional<Affine> computeOpen(const Step &step, ArrayRef<Affine> args);
  void setOpenResult(Warp &warp, const Step &step);

  // Comparisons of a loop's counter (BarrierDifferences.cpp).
  void settleDifferences();

  // Tiles of which nothing is known (BarrierOpenTiles.cpp).
  Affine getOpenTile(size_t index);
  bool isTile(const Warp &warp, Slot slot);
  bool isTaken(uint32_t number) const;
  uint32_t getFreeName(StringRef kind, ArrayRef<int64_t> taken = {});
  void replace(uint32_t number, int64_t times, const Affine &by);
  Affine nameTrips(const Affine &sum);
  void forgetTrips();
  void forgetTotals(const std::map<uint32_t, int64_t> &behind,
                    const Facts &known);
  Affine getArgument(unsigned argument);
  void forget(llvm::function_ref<bool(uint32_t)> isForgotten);

  // Barriers (BarrierPhases.cpp).
  bool getBarrier(Warp &warp, const Step &step, uint32_t &number);
  void init(Warp &warp, const Step &step);
  void inval(Warp &warp, const Step &step);
  bool isUsable(Warp &warp, uint32_t barrier);
  bool knowsCompletion(EventView cause, const Barrier &barrier,
                       unsigned level) const;
  /// Who lets a signal arrive.
  enum class Sender { Warp, Copy, Products };
  /// Returns the signal's event, 0 if something is wrong.
  uint32_t signal(Warp &warp, uint32_t barrier, int64_t arrivals,
                  int64_t announced, int64_t bytes, Sender sender);
  void complete(uint32_t barrier);
  void checkSlip(uint32_t number);
  bool wait(Warp &warp, const Step &step);
  void expectOrArrive(Warp &warp, const Step &step);
  void wake(Warp &warp, Barrier &barrier);
  bool meet(Warp &warp, uint32_t barrier, int64_t warpCount, bool waits);
  bool meetAt(Warp &warp, const Step &step);
  bool takeTurn(Warp &warp, const Step &step);
  std::string nameOf(uint32_t barrier) const {
    return nameOf(barrier, program->cluster > 1);
  }
  std::string nameOf(uint32_t barrier, bool hasCta) const;

  // Who waits for whom (BarrierDeadlock.cpp).
  bool maySignal(const Warp &warp, const Step &step, uint32_t number,
                 bool isForBytes) const;
  bool mayStillSignal(const Warp &warp, uint32_t number, bool isForBytes) const;
  Waiter describeWaiter(const Warp &warp) const;
  WaiterNames nameWaiters() const;

  // Loads that signals to other CTAs may overtake (BarrierLateLoads.cpp).
  void useLoads(Warp &warp, const Step &step);
  void handToOtherCta(const Warp &warp, Barrier &barrier, uint32_t event,
                      Knowledge carried);
  const Overtaken *findOvertaking(const Access &load, const Warp &warp) const;

  // Accesses (BarrierAccesses.cpp).
  uint32_t makeAccess(Warp &warp, uint32_t info, uint8_t cta);
  void checkAccess(Warp &warp, const Access &made);
  void moveTo(Access &access, int64_t base) const;
  bool overlap(const Access &a, const Access &b) const;
  bool isWithin(const Access &a, const Access &b) const;
  bool countsExecutions(const Step &step) const;
  void endExecution(const Warp &warp, const Step &step);
  void accessAll(Warp &warp, const Step &step);
  void fill(Warp &warp, const Step &step);
  void issue(Warp &warp, const Step &step);
  void closeGroup(Warp &warp, unsigned engine);
  void finishAccess(Warp &warp, uint32_t event, unsigned engine);
  /// Reports what a warp that exits has started and not waited for.
  void reportInFlight(const Warp &warp, unsigned engine);
  void await(Warp &warp, const Step &step);
  /// Others are told that what the CTA has stored is in global memory.
  void checkStores(Warp &warp);
  void readWord(Warp &warp, const Step &step);
  void writeWord(const Warp &warp, uint8_t cta, int64_t base, Slot value);
  bool isOfWords(const AccessInfo &info) const;
  void keepUnwritten(Warp &warp, const Step &step);
  void reportUnwritten(const Warp &warp, uint32_t read);
  bool findBase(Warp &warp, const AccessInfo &info, int64_t &base);
  uint16_t getPart(const Warp &warp, const AccessInfo &info) const;
  void forget(uint32_t event);

  // What warps do, in words (BarrierSkeleton.cpp).
  void note(Warp &warp, const Step &step);
  void noteAccesses(Warp &warp, const Step &step);
  void noteFill(Warp &warp, const Step &step);
  void noteMeeting(Warp &warp, const Step &step);
  void noteSignal(Warp &warp, const Step &step);
  void noteGroups(Warp &warp, const Step &step);
  void addNote(const Warp &warp, SyncStep::Kind kind, std::string text,
               int64_t amount = 0);
  std::string placeOf(const Warp &warp, const Step &step) const;

  // Tensor memory (BarrierTensor.cpp).
  void fenceTensor(Warp &warp, bool isBehindWait);
  bool takeTensor(Warp &warp, const Step &step);
  void leaveTensor(Warp &warp, const Step &step);
  bool isTensorUsable(Warp &warp, const AccessInfo &info, uint8_t cta);
  std::optional<int64_t> findUnwritten(const Access &access) const;
  bool agreeOnSum(Warp &warp, const Step &step);
  void readTensor(Warp &warp, const Access &made);
  void writeTensor(Warp &warp, const Access &made);
  void startProduct(Warp &warp, const Step &step);
  void signalProducts(Warp &warp, const Step &step);
  void signalCopies(Warp &warp, const Step &step);
  bool knowsTensor(const Warp &warp, const Access &earlier, const Access &made);

  /// Whether one of its threads may be elected: the first warp of a partition,
  /// of the CTA or of a warpgroup.
  static bool mayBeElected(const Warp &warp) {
    return warp.inPartition % 4 == 0 || warp.local % 4 == 0;
  }
  // Who of a warp's threads knows what, at the step that it is at.
  bool isElected(const Warp &warp) const {
    return program->steps[warp.pc].isElected;
  }
  /// What each thread that takes the step may rely on.
  EventView known(const Warp &warp, EventSet Knowledge::*how) const {
    return EventView(warp.knows.all.*how,
                     isElected(warp) ? &(warp.knows.elected.*how) : nullptr);
  }
  /// What these threads learn: from others, and by what they do themselves.
  Knowledge &learned(Warp &warp) {
    return isElected(warp) ? warp.knows.elected : warp.knows.all;
  }
  Knowledge &done(Warp &warp) {
    return isElected(warp) ? warp.knows.elected : warp.knows.shares;
  }
  /// What a signal of these threads carries.
  void handOn(const Warp &warp, Knowledge &to) const {
    to.receive(warp.knows.all);
    to.receive(warp.knows.elected);
    if (!isElected(warp))
      to.receive(warp.knows.shares);
  }
  /// Adds what they know of one kind to what is known of another one.
  void orderOwn(Warp &warp, EventSet Knowledge::*from, EventSet Knowledge::*to);

  // Events.
  uint32_t newEvent();
  void sweep();
  /// A place in the program, who is there, and the barrier that matters.
  struct Place {
    uint32_t step = 0;
    int64_t warp = -1;
    int64_t barrier = -1;
    int64_t phase = -1;
  };
  Place here(const Warp &warp, int64_t barrier = -1) const;
  BarrierActor actorAt(const Place &place) const;
  void reportCondition(BarrierFault fault, const Place &place, std::string text,
                       SmallVector<OpNote> notes = {});
  void report(BarrierFault fault, const Place &place, std::string text,
              SmallVector<OpNote> notes = {});
  void reportRace(const Access &first, const Access &second,
                  BarrierFault fault);
  void fail(uint32_t step, std::string why);
  std::string nameOf(const Warp &warp) const;
  OpNote noteAt(const Place &place, const Twine &text) const;
  OpNote noteAt(uint32_t step, const Twine &text) const {
    return noteAt(Place{step}, text);
  }
  ReplayTurn describeTurn(const Warp &warp) const;
  std::string whoIs(uint16_t warp) const { return nameOf(warps[warp]); }
  uint32_t stepOf(const Warp &warp) const { return warp.pc; }

  const Program *program;
  OrderProfile profile;
  bool hasClusterScope;
  std::array<int64_t, 3> firstBlock = {0, 0, 0};
  std::vector<Warp> warps;
  /// Of each CTA its mbarriers, then its 16 barriers of warps; at the end the
  /// cluster's.
  std::vector<Barrier> barriers;
  uint32_t perCta = 0;
  AccessList accesses;
  /// Signals that may still be on their way, by event.
  std::vector<Signal> signals;
  void addSignal(const Signal &signal) {
    if (signals.size() <= signal.event)
      signals.resize(signal.event + 1);
    signals[signal.event] = signal;
  }
  /// The first signals that overtook each late load.
  SmallVector<Overtaken, 0> overtaken;
  EventSet freeEvents;
  EventSet dead;
  uint32_t deadEvents = 0;
  /// So many wait for a sweep, which looks at all sets.
  static constexpr uint32_t kMostDead = 128;
  uint32_t numEvents = 1;
  /// Words of shared memory that were handed over.
  std::map<std::pair<uint8_t, int64_t>, Word> words;
  Reads reads;
  Pauses pauses;
  /// How often each warp has taken the steps whose executions are told apart.
  std::map<std::pair<uint32_t, uint16_t>, uint64_t> instances;
  std::vector<Knowledge> exits;
  /// Of each CTA.
  std::vector<TensorMemory> tensors;
  void assume(Assumption a) { assumptions |= 1u << unsigned(a); }
  uint32_t assumptions = 0;
  std::vector<int64_t> tiles;
  /// The numbers that the tile at this place may have, if there are several.
  NumberList choices;
  uint32_t openTile = 0;
  /// They are numbers of the program's blocks, and none of a tile.
  bool areBlocksOpen = false;
  /// Those of them that the next step is the same for, and whether a step was
  /// taken since others were left.
  struct {
    IndexRanges kept;
    bool hasMoved = false;
  } parting;
  uint32_t dealt = 1;
  /// What only the launch gives, if that is followed; what is known of it; a
  /// sum of which the next step asks whether it is negative.
  std::shared_ptr<Unknowns> unknowns;
  Facts facts;
  std::optional<Affine> question;
  /// What led here, other than `facts` never less.
  Facts path;
  /// No launch leads here.
  bool impossible = false;
  /// With `isAlways` it holds whichever way the run went. That is kept of
  /// numbers of the launch that are computed before the first tile.
  void learn(const Affine &sum, bool isAlways = false) {
    facts.add(sum);
    if (isAlways && tiles.empty() &&
        llvm::all_of(sum.terms, [&](const auto &term) {
          return unknowns->isOfLaunch(term.first);
        }))
      unknowns->ofEachLaunch.add(sum);
    // Unknowns of tiles are given again.
    if (!program->hasOpenTiles())
      path.add(sum);
  }
  bool areTilesOver = false;
  std::vector<ReplayTurn> *recorded = nullptr;
  std::vector<std::vector<SyncStep>> *notes = nullptr;
  int64_t steps = 0;
  int64_t limit = 0;
  /// What the last steps took besides, less than a step.
  Work work;
  /// A condition that later verdicts rest on; the first thing else.
  std::optional<BarrierWitness> condition, witness;
  std::optional<UnsupportedOp> unsupported;
};

} // namespace mlir::attn::barriers

#endif // ATTN_LIB_ANALYSIS_BARRIERS_BARRIERMACHINE_H
