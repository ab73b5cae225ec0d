//===- BarrierOracleTest.cpp - One run against all interleavings ----------===//
//
// The check of barriers runs a kernel once and says what holds of every order.
// Here small kernels are executed in every order: each warp's next op or any
// copy that is on its way may be next. The check has to prove exactly those in
// which no order goes wrong, and in which each signal counts, and each wait
// ends, in the same phase always.
//
// Other kernels go around a ring as often as an argument says: the check has to
// prove those that are right with each number of trips that is tried. So do
// others for each tile of a row, with a number of trips of its own. Rings of
// which slot, parity and word need not come of one cursor are proved where they
// are right until the ring stands as it did at first, and only there.
//
// ATTN_ORACLE_KERNELS and ATTN_ORACLE_SEED say how many kernels, and which.
//
//===----------------------------------------------------------------------===//

#include "LoopOracle.h"
#include "OracleNumbers.h"
#include "RingOracle.h"
#include "attn/Analysis/Barriers/BarrierCheck.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <numeric>

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::oracle;

namespace {

class BarrierOracle : public ::testing::Test {
protected:
  BarrierOracle() {
    DialectRegistry registry;
    registerAttnDialect(registry);
    registry.insert<gpu::GPUDialect, scf::SCFDialect, arith::ArithDialect,
                    NVVM::NVVMDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  BarrierReport check(const std::string &text,
                      int64_t limit = BarrierCheckOptions().limit,
                      bool followsAllTrips = false) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return BarrierReport();
    auto kernels = *module->getOps<gpu::GPUModuleOp>().begin();
    BarrierCheckOptions options;
    options.profile = OrderProfile::Hw;
    options.limit = limit;
    options.followsAllTrips = followsAllTrips;
    options.namesPhases = false;
    return checkBarriers(*kernels.getOps<gpu::GPUFuncOp>().begin(), options);
  }

  void compare(bool lanes);

  MLIRContext context;
};

} // namespace

/// Kernels among which each kind of fault comes up: the rarest one is in one of
/// some hundreds.
static constexpr unsigned kMostDrawn = 20000;

void BarrierOracle::compare(bool lanes) {
  unsigned count = getNumber("ATTN_ORACLE_KERNELS", lanes ? 300 : 500);
  std::mt19937 rng(getNumber("ATTN_ORACLE_SEED", 1));
  unsigned drawn = 0, proved = 0, skipped = 0, differences = 0;
  std::map<BarrierFault, unsigned> refused;
  const BarrierFault faults[] = {
      BarrierFault::Attribution, BarrierFault::Count,    BarrierFault::Slip,
      BarrierFault::EarlyWait,   BarrierFault::Deadlock, BarrierFault::Race,
      BarrierFault::Exit};
  // All that can be wrong here has to be put to the test: more are drawn where
  // these did not have a rare fault. Threads of a warp add races to them.
  auto isMissing = [&](BarrierFault fault) {
    return (!lanes || fault == BarrierFault::Race) && refused[fault] == 0;
  };
  for (unsigned i = 0;
       i < count || (i < kMostDrawn && llvm::any_of(faults, isMissing)); ++i) {
    ++drawn;
    SmallKernel kernel = makeKernel(rng, lanes);
    std::optional<std::string> wrong;
    if (!explore(kernel, wrong)) {
      ++skipped;
      continue;
    }
    std::string text = print(kernel);
    BarrierReport report = check(text);
    bool isProved = report.verdict == BarrierVerdict::Proved;
    ASSERT_TRUE(isProved || report.verdict == BarrierVerdict::Witness)
        << text << (report.unsupported ? report.unsupported->text : "");
    if (isProved)
      ++proved;
    else
      ++refused[report.witness->fault];
    if (isProved == !wrong)
      continue;
    // The first few say enough.
    if (++differences <= 3)
      ADD_FAILURE()
          << "kernel " << i << ": check: "
          << (isProved ? "proved"
                       : stringifyBarrierFault(report.witness->fault).str() +
                             ": " + report.witness->text)
          << "; all interleavings: " << wrong.value_or("right") << "\n"
          << text;
  }
  EXPECT_EQ(differences, 0u);
  EXPECT_GT(proved, drawn / 10);
  EXPECT_LT(skipped, drawn / 10 + 1);
  llvm::outs() << proved << " proved, " << skipped << " with too many states, "
               << differences << " differences";
  for (BarrierFault fault : faults) {
    EXPECT_FALSE(isMissing(fault)) << stringifyBarrierFault(fault).str();
    llvm::outs() << ", " << refused[fault] << " "
                 << stringifyBarrierFault(fault);
  }
  llvm::outs() << "\n";
}

TEST_F(BarrierOracle, AgreesWithAllInterleavings) { compare(/*lanes=*/false); }

TEST_F(BarrierOracle, AgreesOnThreadsOfAWarp) { compare(/*lanes=*/true); }

static SmallOp makeOp(SmallOp::Kind kind, unsigned barrier,
                      unsigned parity = 0) {
  SmallOp op;
  op.kind = kind;
  op.barrier = barrier;
  op.parity = parity;
  return op;
}

/// Kinds of bugs that few kernels made at random have.
TEST_F(BarrierOracle, AgreesOnRareKinds) {
  auto wait = [](unsigned barrier, unsigned parity) {
    return makeOp(SmallOp::Wait, barrier, parity);
  };
  auto arrive = [](unsigned barrier) {
    return makeOp(SmallOp::Arrive, barrier);
  };
  const SmallOp expect = makeOp(SmallOp::Expect, 0),
                send = makeOp(SmallOp::Send, 0);
  using Actors = std::vector<std::vector<SmallOp>>;
  std::tuple<const char *, Actors, std::optional<BarrierFault>> rows[] = {
      {"two copies of a warp in two phases, the second one behind the first",
       {{expect, send, wait(1, 0), expect, send},
        {wait(0, 0), arrive(1), wait(0, 1)}},
       std::nullopt},
      {"the second one does not wait for the first",
       {{expect, send, wait(1, 0), expect, send},
        {arrive(1), wait(0, 0), wait(0, 1)}},
       BarrierFault::Attribution},
      {"a warp waits for a phase twice, and says so after the last time",
       {{wait(0, 0), wait(0, 0), arrive(1)},
        {arrive(0), wait(1, 0), arrive(0)}},
       std::nullopt},
      {"it says so after the first time",
       {{wait(0, 0), arrive(1), wait(0, 0)},
        {arrive(0), wait(1, 0), arrive(0)}},
       BarrierFault::Slip},
  };
  for (auto &[name, actors, fault] : rows) {
    SmallKernel kernel{actors, /*counts=*/{1, 1}};
    std::optional<std::string> wrong;
    ASSERT_TRUE(explore(kernel, wrong)) << name;
    EXPECT_EQ(wrong.has_value(), fault.has_value()) << name;
    BarrierReport report = check(print(kernel));
    EXPECT_EQ(report.verdict,
              fault ? BarrierVerdict::Witness : BarrierVerdict::Proved)
        << name;
    if (fault && report.witness)
      EXPECT_EQ(report.witness->fault, *fault) << name;
  }
}

/// More trips than rings have slots and barriers have parities.
static constexpr unsigned kMostTrips = 4;

/// The trips with which a witness goes wrong; the last note says so where they
/// matter.
static unsigned getTrips(const BarrierWitness &witness) {
  unsigned trips = 0;
  if (!witness.notes.empty()) {
    StringRef note = witness.notes.back().text;
    if (note.consume_front("where argument 0 is "))
      note.consumeInteger(10, trips);
  }
  return trips;
}

TEST_F(BarrierOracle, AgreesOnUnknownTrips) {
  unsigned count = getNumber("ATTN_ORACLE_KERNELS", 200);
  std::mt19937 rng(getNumber("ATTN_ORACLE_SEED", 1));
  unsigned proved = 0, refused = 0, undecided = 0, skipped = 0, late = 0;
  for (unsigned i = 0; i < count; ++i) {
    LoopKernel kernel = makeLoopKernel(rng);
    std::optional<std::string> wrong;
    bool isWhole = true;
    unsigned trips = 0;
    for (; isWhole && !wrong && trips <= kMostTrips; ++trips)
      isWhole = explore(unroll(kernel, {{trips}}), wrong);
    if (!isWhole) {
      ++skipped;
      continue;
    }
    std::string text = print(kernel);
    BarrierReport report = check(text);
    ASSERT_NE(report.verdict, BarrierVerdict::Bounded) << text;
    if (report.verdict == BarrierVerdict::Unsupported) {
      ASSERT_TRUE(report.unsupported);
      EXPECT_TRUE(
          StringRef(report.unsupported->text).contains("not shown to be right"))
          << report.unsupported->text << text;
      ++undecided;
      EXPECT_TRUE(wrong) << "kernel " << i << ": right, " << text
                         << report.unsupported->text;
      continue;
    }
    bool isProved = report.verdict == BarrierVerdict::Proved;
    ++(isProved ? proved : refused);
    // What goes wrong with more trips than were tried is tried with these.
    if (!isProved && !wrong && getTrips(*report.witness) > kMostTrips) {
      ++late;
      if (!explore(unroll(kernel, {{getTrips(*report.witness)}}), wrong))
        continue;
    }
    EXPECT_EQ(isProved, !wrong)
        << "kernel " << i
        << ": check: " << (isProved ? "proved" : report.witness->text)
        << "; all interleavings: " << wrong.value_or("right") << " with "
        << trips - 1 << " trips\n"
        << text;
    if (HasFailure())
      return;
  }
  EXPECT_GT(proved, count / 10);
  EXPECT_GT(refused, count / 10);
  EXPECT_LT(skipped, count / 10 + 1);
  llvm::outs() << proved << " proved, " << refused << " refused (" << late
               << " with more trips), " << undecided << " not shown, "
               << skipped << " with too many states\n";
}

/// Trips of the tiles of a CTA. What is told from what there was in all is told
/// so behind some trips.
static constexpr unsigned kFirsts = 5;
/// What is proved takes few steps; what is not takes all, of few warps with
/// many questions.
static constexpr int64_t kStepsOfTiles = 400000;
static const std::vector<unsigned> kTiles[] = {
    {},     {1},     {2},    {3},    {5},       {0, 1},
    {1, 1}, {2, 1},  {1, 3}, {3, 2}, {1, 0, 2}, {2, 2, 1},
    {9},    {10, 1}, {1, 8}, {17},   {4, 4},    {16, 0, 2}};

/// A row of them with first parts: none, half, one, all but one and all, by
/// turns, so that each tile has each of them.
static std::vector<TileTrips> takeParts(llvm::ArrayRef<unsigned> tiles,
                                        unsigned turn) {
  std::vector<TileTrips> result;
  for (unsigned all : tiles) {
    unsigned firsts[] = {0, all / 2, std::min(all, 1u), all - std::min(all, 1u),
                         all};
    result.push_back({all, firsts[turn++ % kFirsts]});
  }
  return result;
}

TEST_F(BarrierOracle, AgreesOnUnknownTiles) {
  unsigned count = getNumber("ATTN_ORACLE_KERNELS", 60);
  std::mt19937 rng(getNumber("ATTN_ORACLE_SEED", 1));
  unsigned proved = 0, wrongOnes = 0, undecided = 0, skipped = 0;
  for (unsigned i = 0; i < count; ++i) {
    LoopKernel kernel = makeLoopKernel(rng, /*walksTiles=*/true);
    std::optional<std::string> wrong;
    bool isWhole = true;
    bool hasParts = llvm::any_of(kernel.actors, [](const LoopActor &actor) {
      return actor.parts != std::vector<Part>{Part::All};
    });
    for (const std::vector<unsigned> &tiles : kTiles)
      for (unsigned turn = 0; turn < (hasParts ? kFirsts : 1) && !wrong; ++turn)
        isWhole =
            isWhole && explore(unroll(kernel, takeParts(tiles, turn)), wrong);
    if (!isWhole) {
      ++skipped;
      continue;
    }
    std::string text = print(kernel);
    BarrierReport report = check(text, kStepsOfTiles);
    ASSERT_NE(report.verdict, BarrierVerdict::Witness) << text;
    bool isProved = report.verdict == BarrierVerdict::Proved;
    ASSERT_TRUE(!isProved || !wrong)
        << "kernel " << i
        << ": proved; all interleavings: " << wrong.value_or("right") << "\n"
        << text;
    proved += isProved;
    wrongOnes += wrong.has_value();
    undecided += !isProved && !wrong;
    if (!isProved && !wrong && std::getenv("ATTN_ORACLE_SHOW"))
      llvm::outs() << (report.unsupported ? report.unsupported->text
                                          : report.bound)
                   << "\n"
                   << text;
  }
  EXPECT_GT(proved, count / 20);
  EXPECT_GT(wrongOnes, count / 10);
  // Long rows of tiles take too many states where much goes its own way.
  EXPECT_LT(skipped, count / 3 + 1);
  llvm::outs() << proved << " proved, " << wrongOnes << " wrong, " << undecided
               << " right and not shown, " << skipped
               << " with too many states\n";
}

/// Loops with many trips have the same verdict, and the same is wrong, where
/// trips that repeat are left out.
TEST_F(BarrierOracle, LeavesOutTripsThatRepeat) {
  unsigned count = getNumber("ATTN_ORACLE_KERNELS", 120);
  std::mt19937 rng(getNumber("ATTN_ORACLE_SEED", 1));
  unsigned proved = 0, refused = 0;
  int64_t steps = 0, allSteps = 0;
  for (unsigned i = 0; i < count; ++i) {
    unsigned trips = 12 + rng() % 60;
    std::string text;
    if (i % 2) {
      RingKernel kernel = makeRingKernel(rng);
      kernel.trips = trips;
      text = print(kernel);
    } else {
      text = print(makeLoopKernel(rng));
    }
    std::string argument = "(%n: i32) kernel {\n";
    if (size_t place = text.find(argument); place != std::string::npos)
      text.replace(place, argument.size(),
                   "() kernel {\n%n = arith.constant " + std::to_string(trips) +
                       " : i32\n");
    BarrierReport report = check(text);
    BarrierReport whole = check(text, BarrierCheckOptions().limit,
                                /*followsAllTrips=*/true);
    ASSERT_EQ(report.verdict, whole.verdict) << text;
    if (report.witness)
      ASSERT_EQ(report.witness->fault, whole.witness->fault) << text;
    proved += report.verdict == BarrierVerdict::Proved;
    refused += report.verdict == BarrierVerdict::Witness;
    steps += report.steps;
    allSteps += whole.steps;
  }
  EXPECT_GT(proved, count / 10);
  EXPECT_GT(refused, count / 10);
  EXPECT_LT(steps, allSteps / 2);
  llvm::outs() << proved << " proved, " << refused << " refused, " << steps
               << " steps in place of " << allSteps << "\n";
}

/// Positions that are tried at most: every order of more takes too long.
static constexpr unsigned kMostTried = 80;

/// After so many tiles, or trips, a ring stands as it did at first, and what
/// comes then has come before.
static unsigned countUntilRecurrence(const RingKernel &kernel) {
  unsigned count = 1, trips = kernel.walksTiles ? kernel.trips : 1;
  for (const RingActor &actor : kernel.actors)
    for (const RingCursor &cursor : actor.cursors) {
      unsigned laps = 2 * kernel.depth, each = trips * cursor.advance;
      count = std::lcm(count, laps / std::gcd(laps, each));
    }
  return count + 2;
}

/// What goes wrong only in a later tile, in a state that is the first one with
/// the ring turned.
TEST_F(BarrierOracle, TurnsNoRingWhoseStepsStay) {
  auto isWrong = [&](const RingKernel &kernel) {
    std::optional<std::string> wrong;
    for (unsigned tiles = 0; tiles < 5 && !wrong; ++tiles) {
      SmallKernel small = unroll(kernel, tiles, wrong);
      if (!wrong)
        EXPECT_TRUE(explore(small, wrong));
    }
    return wrong.has_value();
  };
  auto isProved = [&](const RingKernel &kernel) {
    return check(print(kernel)).verdict == BarrierVerdict::Proved;
  };
  const unsigned wait = 0, load = 1;
  RingKernel right = makeRing(/*depth=*/5, /*positions=*/2, /*trips=*/2, true);
  EXPECT_TRUE(isProved(right));
  auto change = [&](unsigned op, auto write) {
    RingKernel kernel = right;
    write(kernel.actors[1], kernel.actors[1].body[op]);
    return kernel;
  };
  RingKernel otherParity =
      change(3 + wait, [](auto &actor, auto &op) { op.parity.ahead = 0; });
  // A product, a sum and a constant.
  std::vector<RingKernel> wrong;
  for (unsigned added : {1, 2, 3})
    wrong.push_back(
        change(wait, [&](auto &actor, auto &op) { op.slot.added = added; }));
  RingKernel otherWord =
      change(load, [](auto &actor, auto &op) { op.word.ahead = 1; });
  wrong.insert(wrong.end(), {otherParity, otherWord});
  for (const RingKernel &kernel : wrong) {
    EXPECT_TRUE(isWrong(kernel));
    EXPECT_FALSE(isProved(kernel)) << print(kernel);
  }
  // One that goes along is as good, though that is not seen.
  RingKernel twoCursors = change(wait, [](auto &actor, auto &op) {
    actor.cursors.push_back(actor.cursors[0]);
    op.parity.cursor = 1;
  });
  EXPECT_FALSE(isWrong(twoCursors));
  EXPECT_TRUE(isProved(twoCursors));
  // All slots are used once in a tile, and wait for the first lap each time.
  RingKernel anew = makeRing(/*depth=*/3, /*positions=*/1, /*trips=*/3, true);
  EXPECT_TRUE(isProved(anew));
  anew.actors[1].cursors[0].startsAnew = true;
  EXPECT_TRUE(isWrong(anew));
  EXPECT_FALSE(isProved(anew)) << print(anew);
  // Where the ring stands decides how often something happens.
  std::string text =
      print(makeRing(/*depth=*/4, /*positions=*/1, /*trips=*/1, true));
  size_t place = text.find("attn.mbarrier.arrive %empty");
  ASSERT_NE(place, std::string::npos);
  for (const char *head :
       {"scf.for %z = %c0 to %k0 step %lap : i32 {", "scf.if %s0_1c {",
        "%z = arith.cmpi eq, %k0i, %c3 : i32\nscf.if %z {"}) {
    std::string changed = text;
    changed.insert(place, std::string(head) +
                              "\nattn.mbarrier.arrive %empty[%k0i] : "
                              "!attn.mbarriers<4>\n}\n");
    EXPECT_EQ(check(changed).verdict, BarrierVerdict::Witness) << changed;
  }
}

TEST_F(BarrierOracle, AgreesOnRings) {
  unsigned count = getNumber("ATTN_ORACLE_KERNELS", 100);
  std::mt19937 rng(getNumber("ATTN_ORACLE_SEED", 1));
  unsigned proved = 0, refused = 0, undecided = 0, late = 0, skipped = 0;
  unsigned early = 0;
  for (unsigned i = 0; i < count; ++i) {
    RingKernel kernel = makeRingKernel(rng);
    unsigned most = 1, last = countUntilRecurrence(kernel);
    for (const RingActor &actor : kernel.actors)
      for (const RingOp &op : actor.body)
        most = std::max(most, op.slot.ahead + 1);
    most *= kernel.walksTiles ? kernel.trips : 1;
    unsigned tried = std::min(last, kMostTried / most);
    std::optional<std::string> wrong;
    bool isWhole = true;
    for (unsigned number : {0u, 1u, 2u, tried}) {
      if (!isWhole || wrong)
        break;
      SmallKernel small = unroll(kernel, number, wrong);
      if (!wrong)
        isWhole = explore(small, wrong);
    }
    if (!isWhole) {
      ++skipped;
      continue;
    }
    std::string text = print(kernel);
    BarrierReport report = check(text);
    ASSERT_NE(report.verdict, BarrierVerdict::Bounded) << text;
    bool isProved = report.verdict == BarrierVerdict::Proved;
    // What goes wrong behind all that were tried is not known to.
    if (!isProved && !wrong && tried < last) {
      ++late;
      continue;
    }
    // A wait that the phase before the last one satisfies too is refused,
    // though a kernel may happen to be right with it.
    if (!wrong && report.witness &&
        report.witness->fault == BarrierFault::EarlyWait) {
      ++early;
      continue;
    }
    ++(isProved                                        ? proved
       : report.verdict == BarrierVerdict::Unsupported ? undecided
                                                       : refused);
    EXPECT_EQ(isProved, !wrong)
        << "kernel " << i << ": check: "
        << (isProved         ? "proved"
            : report.witness ? report.witness->text
                             : report.unsupported->text)
        << "; all interleavings: " << wrong.value_or("right") << "\n"
        << text;
    if (HasFailure())
      return;
  }
  EXPECT_GT(proved, count / 5);
  EXPECT_GT(refused, count / 5);
  EXPECT_LT(skipped, count / 10 + 1);
  llvm::outs() << proved << " proved, " << refused << " refused, " << undecided
               << " not shown, " << late << " wrong behind what was tried, "
               << early << " right with an early wait, " << skipped
               << " with too many states\n";
}
