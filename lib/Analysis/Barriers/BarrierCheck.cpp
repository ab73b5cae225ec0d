//===- BarrierCheck.cpp - Is a kernel's synchronisation right? ------------===//
//
// From each state in which warps wait for a tile, the run goes on with a tile
// of each kind, and with none. Where no new state comes up any more, all tiles
// in all orders have been seen. States that differ only in what is known are
// joined to one in which the least is known; where that is too little for a
// proof, all are told apart. Without tiles the cluster is of any kind of block.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Barriers/BarrierCheck.h"
#include "TripSkipper.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include <deque>

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

namespace {

/// A state to go on from.
struct State {
  Machine machine;
  int64_t tiles;
  /// Of its places, and how often more was joined to them by then.
  size_t number, version;
};

/// The states that have come up.
class KnownStates {
public:
  KnownStates(bool joins, bool forgetsLaunch)
      : joins(joins), forgetsLaunch(forgetsLaunch) {}
  /// Puts a state in `states` unless one that is there stands for it.
  void add(Machine machine, int64_t tiles, std::deque<State> &states);
  /// True if another one stands for it meanwhile.
  bool isReplaced(const State &state) const {
    return summaries[state.number].second != state.version;
  }
  bool hasJoined() const { return anyJoined; }
  Work work;

private:
  bool joins, forgetsLaunch, anyJoined = false;
  /// Of those in the same places; one if they are joined.
  llvm::StringMap<SmallVector<size_t, 1>> numbers;
  /// With how often they have changed.
  std::vector<std::pair<StateSummary, size_t>> summaries;
};

/// The states in which kinds of the last tile take different steps.
class Forks {
public:
  /// True if what comes from this one has been followed from another one.
  /// Within a loop that is so once the rings stand as they did a trip before.
  bool stoodFor(Machine &machine);
  Work work;
  /// What came up since has not been followed to its end.
  void forgetSince(size_t count);
  size_t size() const { return order.size(); }

private:
  llvm::StringMap<std::deque<StateSummary>> known;
  /// Where each of them stands, the first one first.
  std::vector<std::deque<StateSummary> *> order;
};

/// What is proved with unknowns takes up to 90000 steps a warp, and what is not
/// takes all that it may: of the limit a share for each warp.
constexpr int64_t kOpenShare = 32;

/// A state for which another one stands is left where that has taken so few
/// steps, and a part of all: else what is left is followed again too often.
constexpr int64_t kLeavesEarly = 10000;

/// What is learned from a run of so many tiles is how often a word that hands a
/// number over is read before it is overwritten, by the step that writes it:
/// numbers are dealt in rings of one or two slots, so that each is overwritten
/// several times. Nothing rests on it but when states are the same. A word that
/// has been read so often is as one of which nothing is known; if it is read
/// again after all, and somebody goes on by it, nothing is proved, and the
/// check starts anew without what was learned. If it is read less often, its
/// number goes on telling states apart.
constexpr unsigned kTilesToLearn = 8;

class Checker {
public:
  Checker(const Program &program, const BarrierCheckOptions &options)
      : program(program), options(options),
        limit(program.isOpen
                  ? std::min(options.limit, options.limit * program.cluster *
                                                program.warps / kOpenShare)
                  : options.limit),
        forgetsLaunch(program.hasOpenTiles()),
        skipsTrips(!options.followsAllTrips) {}
  BarrierReport run();

private:
  void learnReads();
  void exploreAll(bool joins);
  void explore(Machine start, bool joins);
  bool follow(Machine start, Forks &forks,
              llvm::function_ref<bool(Machine &)> goOn);
  bool addTiles(const State &state, KnownStates &known, Forks &forks,
                std::deque<State> &states);
  void runMachine(Machine &machine);
  void startAnew(bool joins);
  void followAllTrips();
  bool judge(Machine &machine);
  bool spend(int64_t steps);
  bool judgeEnd(Machine &machine);
  bool finish(Machine machine, Forks &forks);
  void confirm(const Machine &found);
  std::string describeLimit() const {
    return llvm::formatv("the limit of {0} steps", limit).str();
  }
  bool hasEnded() const {
    return report.witness || report.unsupported || !report.bound.empty();
  }

  const Program &program;
  const BarrierCheckOptions &options;
  int64_t limit;
  BarrierReport report;
  ReadCounts reads;
  /// True if facts about the launch's numbers that a tile has found are
  /// forgotten before the next tile.
  bool forgetsLaunch;
  /// Trips that are as those before them are left out, and some were.
  bool skipsTrips;
  bool hasSkipped = false;
  /// Some state stood for others that knew more.
  bool hasJoined = false;
  /// A tile of each kind was followed to its end from some state.
  bool hasFollowed = false;
};

} // namespace

void Checker::runMachine(Machine &machine) {
  if (skipsTrips)
    hasSkipped |= TripSkipper(machine).run();
  else
    machine.run();
}

/// Takes over what a run has found; true if it may go on.
bool Checker::judge(Machine &machine) {
  if (machine.isImpossible())
    return true;
  report.steps = machine.getSteps();
  report.unknowns = std::max<int64_t>(report.unknowns, machine.countUnknowns());
  report.assumptions |= machine.getAssumptions();
  if (machine.getUnsupported()) {
    report.unsupported = machine.getUnsupported();
    return false;
  }
  if (machine.getWitness()) {
    report.witness = machine.getWitness();
    if (program.isOpen)
      confirm(machine);
    return false;
  }
  if (machine.isOverLimit())
    report.bound = describeLimit();
  return report.bound.empty();
}

/// Counts steps that no warp took; false if that is over the limit.
bool Checker::spend(int64_t steps) {
  report.steps += steps;
  if (report.steps > limit)
    report.bound = describeLimit();
  return report.bound.empty();
}

/// What is wrong with unknown numbers is looked for again with numbers, since
/// less is known of unknown ones than holds.
void Checker::confirm(const Machine &found) {
  Machine run(program, options);
  run.setLimit(limit);
  std::string numbers;
  // Of a tile it is not known which ones come before it.
  bool isThere = !program.hasOpenTiles() && run.openLaunchAs(found, numbers);
  if (isThere) {
    run.run();
    if (!run.getWitness() && !run.isDone() && !run.wantsChoice())
      run.reportDeadlock();
    else if (run.isDone())
      run.checkExit();
  }
  if (isThere && !run.isImpossible() && run.getWitness()) {
    report.witness = run.getWitness();
    if (!numbers.empty())
      report.witness->notes.push_back(
          {program.kernel, "where " + numbers, BarrierActor()});
    return;
  }
  report.unsupported = UnsupportedOp{
      report.witness->op,
      "with unknown trip counts it is not shown to be right (" +
          stringifyBarrierFault(report.witness->fault).str() + ")"};
  report.witness.reset();
}

/// Runs a state until nobody can go on, twice where a step may go two ways;
/// false if it has ended there.
bool Checker::follow(Machine start, Forks &forks,
                     llvm::function_ref<bool(Machine &)> goOn) {
  // A vector would copy machines as it grows.
  std::deque<Machine> runs;
  runs.push_back(std::move(start));
  while (!runs.empty()) {
    Machine next = std::move(runs.back());
    runs.pop_back();
    next.setSteps(report.steps);
    runMachine(next);
    report.steps = next.getSteps();
    if (next.isImpossible())
      continue;
    if (!judge(next))
      return false;
    if (!next.wantsChoice()) {
      if (!goOn(next))
        return false;
      continue;
    }
    bool isKnown = next.hasMovedSinceSplit() && forks.stoodFor(next);
    if (!spend(forks.work.takeSteps()))
      return false;
    if (isKnown)
      continue;
    Machine other = next.split();
    // Fewer kinds come to the next tile sooner, as a rule: they leave a loop.
    if (next.countChoices() < other.countChoices())
      std::swap(next, other);
    runs.push_back(std::move(next));
    runs.push_back(std::move(other));
  }
  return true;
}

/// Nobody can go on, and there is no tile.
bool Checker::judgeEnd(Machine &machine) {
  if (!machine.isDone())
    machine.reportDeadlock();
  else
    machine.checkExit();
  return judge(machine);
}

/// Runs a state to the end of the kernel.
bool Checker::finish(Machine machine, Forks &forks) {
  machine.endTiles();
  return follow(std::move(machine), forks,
                [&](Machine &end) { return judgeEnd(end); });
}

void KnownStates::add(Machine machine, int64_t tiles,
                      std::deque<State> &states) {
  StateKey key(machine);
  if (forgetsLaunch)
    key.forgetLaunch(work);
  if (machine.isImpossible())
    return;
  StateSummary &summary = key.summarise(work);
  SmallVector<size_t, 1> &alike =
      numbers[joins ? summary.getText() : summary.places];
  if (!joins && llvm::any_of(alike, [&](size_t number) {
        return summaries[number].first.standsFor(summary, work);
      }))
    return;
  if (!joins || alike.empty()) {
    // What this one stands for need not be followed.
    for (size_t number : alike)
      if (summary.standsFor(summaries[number].first, work))
        ++summaries[number].second;
    alike.push_back(summaries.size());
    summaries.push_back({std::move(summary), 0});
  } else {
    auto &[joined, version] = summaries[alike.front()];
    if (!joined.join(summary, work))
      return;
    ++version;
    anyJoined = true;
    key.weaken(joined);
  }
  size_t number = alike.back();
  states.push_back(
      {std::move(machine), tiles, number, summaries[number].second});
}

bool Forks::stoodFor(Machine &machine) {
  StateKey key(machine);
  StateSummary &summary = key.summarise(work);
  std::deque<StateSummary> &others = known[summary.places];
  if (llvm::any_of(others, [&](const StateSummary &other) {
        return other.standsFor(summary, work);
      }))
    return true;
  others.push_back(std::move(summary));
  order.push_back(&others);
  return false;
}

void Forks::forgetSince(size_t count) {
  for (; order.size() > count; order.pop_back())
    order.back()->pop_back();
}

/// Goes on with a tile of each kind, as long as no other state stands for this
/// one. As a rule that is another tile behind it, which comes soon, and what
/// would come of this one has to be followed from that anyway.
bool Checker::addTiles(const State &state, KnownStates &known, Forks &forks,
                       std::deque<State> &states) {
  Machine start = state.machine;
  if (program.hasOpenTiles())
    start.addOpenTile();
  else if (program.tileNumbers.empty())
    return true;
  else
    start.addTile(program.tileNumbers);
  size_t numForks = forks.size();
  int64_t before = report.steps;
  bool isLeft = false;
  bool goesOn = follow(std::move(start), forks, [&](Machine &next) {
    if (!next.wantsTile()) {
      next.reportDeadlock();
      return judge(next);
    }
    for (int64_t index = 0; index < next.countChoices(); ++index) {
      Machine one = next;
      one.choose(index);
      known.add(std::move(one), state.tiles + 1, states);
      if (!spend(known.work.takeSteps()))
        return false;
    }
    if (next.countChoices() == 0)
      known.add(std::move(next), state.tiles + 1, states);
    if (!spend(known.work.takeSteps()))
      return false;
    isLeft = known.isReplaced(state) &&
             report.steps - before < kLeavesEarly + report.steps / 4;
    return !isLeft;
  });
  if (isLeft)
    forks.forgetSince(numForks);
  hasFollowed |= goesOn;
  return goesOn || isLeft;
}

void Checker::explore(Machine start, bool joins) {
  std::deque<State> states;
  KnownStates known(joins, forgetsLaunch);
  // What comes of a state with another tile, and without one.
  Forks forks, ends;
  bool goesOn = follow(std::move(start), forks, [&](Machine &next) {
    if (!next.wantsTile())
      return finish(std::move(next), ends);
    known.add(std::move(next), 0, states);
    return true;
  });
  while (goesOn && !states.empty()) {
    State state = std::move(states.front());
    states.pop_front();
    if (known.isReplaced(state))
      continue;
    ++report.states;
    report.tiles = std::max(report.tiles, state.tiles);
    if (hasFollowed)
      state.machine.setLimit(limit);
    goesOn =
        finish(state.machine, ends) && addTiles(state, known, forks, states);
  }
  hasJoined |= known.hasJoined();
}

/// How often numbers that are dealt are read is known only once they are
/// overwritten. Until then states would differ by them, so a run of some tiles
/// comes first. Whether it is right does not matter.
void Checker::learnReads() {
  Machine run(program, options);
  run.setLimit(limit);
  run.setBlock(program.blocks.front());
  if (program.hasOpenTiles())
    run.openLaunch();
  for (unsigned tile = 0; tile < kTilesToLearn; ++tile)
    if (program.hasOpenTiles())
      run.addOpenTile();
    else
      run.addTile(program.tileNumbers.front());
  run.endTiles();
  runMachine(run);
  // Of unknown tiles those are taken that end soonest, as a rule.
  while (run.wantsChoice() && !run.isImpossible()) {
    Machine other = run.split();
    if (!other.isImpossible())
      run = std::move(other);
    runMachine(run);
  }
  report.steps = run.getSteps();
  reads = run.countReads();
}

void Checker::exploreAll(bool joins) {
  if (!program.hasTiles && (program.isOpen || program.blocks.size() > 1)) {
    Machine start(program, options);
    start.setLimit(limit);
    if (program.isOpen)
      start.openLaunch();
    else
      start.openBlocks();
    report.warps = program.cluster * program.warps;
    Forks forks;
    follow(std::move(start), forks,
           [&](Machine &next) { return judgeEnd(next); });
    return;
  }
  for (std::array<int64_t, 3> block : program.blocks) {
    Machine start(program, options);
    start.setLimit(std::min(limit, options.firstTileLimit));
    start.setSteps(report.steps);
    start.setBlock(block);
    if (program.hasOpenTiles())
      start.openLaunch();
    start.expectReads(reads);
    report.warps = program.cluster * program.warps;
    explore(std::move(start), joins);
    if (hasEnded())
      break;
  }
}

void Checker::startAnew(bool joins) {
  int64_t steps = report.steps;
  report = BarrierReport();
  report.steps = steps;
  exploreAll(joins);
}

/// Trips that were left out are missing in phases that an error names. With
/// unknown numbers a state in which trips are left out knows less of these.
void Checker::followAllTrips() {
  if (!report.witness && !report.unsupported)
    return;
  skipsTrips = false;
  BarrierReport found = report;
  startAnew(/*joins=*/!hasJoined);
  if (report.bound.empty())
    return;
  found.steps = report.steps;
  report = std::move(found);
}

BarrierReport Checker::run() {
  if (program.dealsTiles &&
      (program.hasOpenTiles() || !program.tileNumbers.empty()))
    learnReads();
  exploreAll(/*joins=*/true);
  // Some numbers were read more often than in the first run.
  if (report.unsupported && !reads.empty()) {
    reads.clear();
    startAnew(/*joins=*/true);
  }
  // The proof may need facts that were forgotten.
  if (forgetsLaunch && (report.witness || report.unsupported)) {
    forgetsLaunch = false;
    startAnew(/*joins=*/true);
  }
  // What is wrong in a state that stands for several may be right in each.
  if (hasJoined && (report.witness || report.unsupported))
    startAnew(/*joins=*/false);
  if (hasSkipped && options.namesPhases && (report.witness || program.isOpen))
    followAllTrips();
  report.classes = program.tileNumbers.size();
  report.blocks = program.blocks.size();
  if (report.witness)
    report.verdict = BarrierVerdict::Witness;
  else if (report.unsupported)
    report.verdict = BarrierVerdict::Unsupported;
  else if (!report.bound.empty())
    report.verdict = BarrierVerdict::Bounded;
  else
    report.verdict = BarrierVerdict::Proved;
  return std::move(report);
}

/// Partitions compute their tiles in different ways, so that each kind of CTA
/// has been run by itself. That is a proof only if one cluster that does all
/// tiles is right too, and partitions walk the same ones. Nothing is refused
/// that walks the same ones at the launch.
static void judgeUnlikeTiles(const Program &program,
                             const BarrierCheckOptions &options,
                             BarrierReport &report) {
  if (report.witness) {
    llvm::append_range(report.witness->notes, program.unlikeTiles);
    return;
  }
  if (report.verdict != BarrierVerdict::Proved)
    return;
  Program one;
  bool isSame = program.unlikeTiles.empty();
  if (!compileProgram(program.kernel, one, /*isOfOneCluster=*/true)) {
    BarrierReport ofOne = Checker(one, options).run();
    if (ofOne.verdict == BarrierVerdict::Proved && isSame &&
        one.unlikeTiles.empty())
      return;
    if (ofOne.witness && !isSame) {
      report = std::move(ofOne);
      llvm::append_range(report.witness->notes, one.unlikeTiles);
      return;
    }
  }
  report.verdict = BarrierVerdict::Unsupported;
  report.unsupported = UnsupportedOp{program.unlikeLoop, kUnlikeTiles.str()};
}

/// What cannot be checked because of what the launch gives may be proved with
/// tiles of which nothing is known.
static void checkOpenTiles(gpu::GPUFuncOp kernel,
                           const BarrierCheckOptions &options,
                           BarrierReport &report) {
  Program program;
  if (compileProgram(kernel, program, /*isOfOneCluster=*/false,
                     /*opensTiles=*/true) ||
      !program.hasOpenTiles())
    return;
  report = Checker(program, options).run();
  report.isOfLaunch = true;
}

BarrierReport attn::checkBarriers(gpu::GPUFuncOp kernel,
                                  const BarrierCheckOptions &options) {
  Program program;
  BarrierReport report;
  std::optional<UnsupportedOp> unsupported = compileProgram(kernel, program);
  if (program.wrong) {
    report.verdict = BarrierVerdict::Witness;
    report.witness = std::move(program.wrong);
    return report;
  }
  if (unsupported) {
    report.unsupported = std::move(unsupported);
  } else if (!program.isOpen && !program.arguments.empty()) {
    report.unsupported = UnsupportedOp{
        kernel, llvm::formatv("it depends on the value of argument {0}",
                              program.arguments.front().second)};
    report.isOfLaunch = true;
  } else {
    report = Checker(program, options).run();
    report.isOfLaunch = program.isOpen;
    if (program.unlikeLoop)
      judgeUnlikeTiles(program, options, report);
  }
  if (report.unsupported && !report.isOfLaunch)
    report.isOfLaunch = dependsOnLaunch(program, report.unsupported->op);
  if (report.unsupported && report.isOfLaunch)
    checkOpenTiles(kernel, options, report);
  return report;
}
