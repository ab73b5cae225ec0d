//===- PhaseChecksTest.cpp - Signals and waits that may miss their phase --===//
//
// Each kernel is wrong in some order of its warps. What is found does not
// depend on the order that a run takes.
//
//===----------------------------------------------------------------------===//

#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

LaunchConfig configOf(uint64_t seed, unsigned ctas, unsigned threads) {
  LaunchConfig config;
  config.block = {threads, 1, 1};
  config.grid = config.cluster = {ctas, 1, 1};
  config.dynamicShared = 1024;
  config.seed = seed;
  config.schedule = seed ? Schedule::Random : Schedule::RoundRobin;
  return config;
}

/// %r1 is shared memory, %p0 the first lane of each warp, %p1 warp 0, %p2 CTA
/// 0; the first barrier has `count`.
std::string start(unsigned count) {
  return "mov.b32 %r1, smem;\nand.b32 %r2, %r0, 31;\n"
         "setp.eq.s32 %p0, %r2, 0;\nsetp.lt.u32 %p1, %r0, 32;\n"
         "mov.u32 %r3, %cluster_ctarank;\nsetp.eq.s32 %p2, %r3, 0;\n"
         "setp.eq.s32 %p3, %r0, 0;\n@%p3 mbarrier.init.shared.b64 [%r1], " +
         std::to_string(count) +
         ";\n@%p3 fence.mbarrier_init.release.cluster;\n"
         "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
         "mov.b32 %r4, 0;\nmapa.shared::cluster.u32 %r5, %r1, %r4;\n";
}
std::string wait(const char *label, int parity, const char *semantics = "") {
  return std::string(label) + ": mbarrier.try_wait.parity" + semantics +
         ".shared::cta.b64 %p5, [%r1], " + std::to_string(parity) +
         ";\n@!%p5 bra " + label + ";\n";
}
/// Gives the others time.
const char *Spin = "mov.u32 %r9, 0;\nS: add.s32 %r9, %r9, 1;\n"
                   "setp.lt.s32 %p6, %r9, 3000;\n@%p6 bra S;\n";

/// Every seed finds the error.
void expectAlways(const std::string &body, unsigned ctas, unsigned threads,
                  FindingKind kind, llvm::StringRef message) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Outcome r = runText(wrapKernel(body), {}, 4, configOf(seed, ctas, threads));
    expectError(r, kind);
    EXPECT_NE(r.text().find(message), std::string::npos) << r.text();
  }
}
void expectNever(const std::string &body, unsigned ctas, unsigned threads) {
  for (uint64_t seed = 0; seed < 8; ++seed)
    expectClean(
        runText(wrapKernel(body), {}, 4, configOf(seed, ctas, threads)));
}

} // namespace

TEST(PhaseChecks, SignalsBelongToAPhase) {
  // Two warps arrive in each of two phases.
  const char *arrive = "@%p0 mbarrier.arrive.shared::cta.b64 _, [%r1];\n";
  expectNever(start(2) + arrive + wait("A", 0) + arrive + wait("B", 1), 1, 64);
  expectAlways(start(2) + arrive + "@!%p1 bra N;\n" + wait("A", 0) + "N:\n" +
                   arrive + wait("B", 1),
               1, 64, FindingKind::MbarrierMisuse, "may be counted there");
}

TEST(PhaseChecks, RelaxedSignalsCarryControl) {
  const char *arrive = "@%p0 mbarrier.arrive.relaxed.cluster.shared::cta.b64 "
                       "_, [%r1];\n";
  const char *relaxed = ".relaxed.cluster";
  expectNever(start(2) + arrive + wait("A", 0, relaxed) + arrive +
                  wait("B", 1, relaxed),
              1, 64);
}

TEST(PhaseChecks, RelaxedSignalsPublishNothingLater) {
  // Warp 0 stores behind a signal that carries no memory. What warp 1 has
  // learnt before the signal does not cover the store.
  const char *store = "@%p0 st.shared.b32 [%r1+64], 7;\n";
  const char *known = "bar.arrive 1, 64;\n";
  auto kernel = [](const std::string &first, const std::string &other) {
    return start(1) + "@!%p1 bra C;\n" + first +
           "bra E;\nC:\nbar.sync 1, 64;\n" + Spin +
           "@%p0 ld.shared.b32 %r6, [%r1+64];\n" + other +
           "E:\nbarrier.cluster.wait;\n";
  };
  std::string arrive = "barrier.cluster.arrive.relaxed;\n";
  for (const std::string &signal :
       {std::string("@%p0 mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, "
                    "[%r1];\n"),
        std::string("@%p0 cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];\n"),
        arrive}) {
    SCOPED_TRACE(signal);
    std::string late = signal == arrive ? "" : arrive;
    expectNever(kernel(store + (known + signal) + late, arrive), 1, 64);
    expectAlways(kernel(known + signal + store + late, arrive), 1, 64,
                 FindingKind::Race, "is not ordered after");
  }
}

TEST(PhaseChecks, OrderThroughAnotherBarrier) {
  const char *arrive = "@%p0 mbarrier.arrive.shared::cta.b64 _, [%r1];\n";
  expectNever(start(2) + arrive + "bar.sync 0;\n" + arrive + "bar.sync 0;\n" +
                  arrive,
              1, 64);
}

TEST(PhaseChecks, WaitsKeepUp) {
  // Warp 1 waits for the first of two phases that warp 0 completes.
  auto kernel = [](const char *between) {
    return start(32) + "@!%p1 bra C;\n" +
           "mbarrier.arrive.shared::cta.b64 _, [%r1];\n" + Spin + between +
           "mbarrier.arrive.shared::cta.b64 _, [%r1];\nbra E;\nC:\n" +
           wait("W", 0) + between + "E:\n";
  };
  expectNever(kernel("bar.sync 1, 64;\n"), 1, 64);
  unsigned slips = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Outcome r = runText(wrapKernel(kernel("")), {}, 4, configOf(seed, 1, 64));
    EXPECT_FALSE(r.report.isClean()) << seed;
    slips += r.report.countErrors(FindingKind::PhaseSlip);
    // When the wait comes too late, its parity is that of a phase to come.
    EXPECT_EQ(r.report.countErrors(FindingKind::PhaseSlip) +
                  r.report.countErrors(FindingKind::Deadlock),
              1u)
        << r.text();
  }
  EXPECT_GE(slips, 1u);
}

TEST(PhaseChecks, ArrivalsBelongToAGeneration) {
  // Warp 0 arrives twice at a barrier where warp 1 waits twice.
  auto kernel = [](const char *back, const char *wait) {
    return start(1) + "@!%p1 bra C;\nbar.arrive 1, 64;\n" + Spin + wait +
           "bar.arrive 1, 64;\nbra E;\nC:\nbar.sync 1, 64;\n" + back +
           "bar.sync 1, 64;\nE:";
  };
  expectNever(kernel("bar.arrive 2, 64;\n", "bar.sync 2, 64;\n"), 1, 64);
  expectAlways(kernel("", ""), 1, 64, FindingKind::BarrierMisuse,
               "an arrival at barrier 1 is not ordered");
}

TEST(PhaseChecks, ClusterArrivalsBelongToAGeneration) {
  const char *arrive = "barrier.cluster.arrive;\n";
  const char *join = "barrier.cluster.wait;\n";
  expectNever(start(1) + arrive + join + arrive, 2, 32);
  // Another barrier tells as well that all have arrived.
  const char *signal = "@%p0 mbarrier.arrive.shared::cluster.b64 _, [%r5];\n"
                       "@!%p2 bra N;\n";
  expectNever(start(2) + arrive + signal + wait("W", 0) + arrive + join +
                  "bra E;\nN:\n" + join + arrive + join + "E:",
              2, 32);
  const char *message = "an arrival at the cluster barrier is not ordered";
  expectAlways(start(1) + arrive + Spin + arrive + join, 2, 32,
               FindingKind::BarrierMisuse, "arriv");
  unsigned proven = 0;
  for (uint64_t seed = 0; seed < 8; ++seed)
    proven += runText(wrapKernel(start(1) + arrive + Spin + arrive + join), {},
                      4, configOf(seed, 2, 32))
                  .text()
                  .find(message) != std::string::npos;
  EXPECT_GE(proven, 1u);
  // One wait for each arrival.
  expectAlways(start(1) + arrive + join + join, 2, 32,
               FindingKind::BarrierMisuse,
               "waits at the cluster barrier before it arrives");
}

// The elected thread comes later than the others of its warp, and the other CTA
// later than both: when that one has come, some lanes go on to the next barrier
// before the others have left the first one.
TEST(PhaseChecks, LanesAreAClusterBarrierApart) {
  std::string barrier = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";
  std::string elected = "mov.u32 %r9, 0;\nT: add.s32 %r9, %r9, 1;\n"
                        "setp.lt.s32 %p6, %r9, 40;\n@%p6 bra T;\n";
  expectNever(start(1) + "@!%p2 bra L;\n" + Spin + "L: @!%p0 bra J;\n" +
                  elected + "J:\n" + barrier + barrier + barrier,
              2, 64);
}

TEST(PhaseChecks, ExitComesAfterRemoteAccesses) {
  auto kernel = [](const char *end) {
    return start(1) +
           "@%p2 bra O;\nld.shared::cluster.b32 %r6, [%r5+64];\n"
           "bra E;\nO:\n" +
           Spin + "E:\n" + end;
  };
  expectNever(kernel("barrier.cluster.arrive;\nbarrier.cluster.wait;"), 2, 32);
  // A relaxed barrier orders the exit as well.
  expectNever(kernel("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;"),
              2, 32);
  expectAlways(kernel(""), 2, 32, FindingKind::ExitInFlight, "exit");
}

TEST(PhaseChecks, ExitComesAfterRemoteSignals) {
  auto kernel = [](const std::string &owner) {
    return start(32) +
           "@%p2 bra O;\nmbarrier.arrive.shared::cluster.b64 _, [%r5];\n"
           "bra E;\nO:\n" +
           owner + "E:";
  };
  expectNever(kernel(wait("W", 0)), 2, 32);
  expectAlways(kernel(Spin), 2, 32, FindingKind::ExitInFlight,
               "a signal to one of its mbarriers");
}

TEST(PhaseChecks, ExitComesAfterCommits) {
  // Of a warp of either CTA to the other one.
  const std::string commit =
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster";
  for (unsigned owner : {0, 1})
    for (bool isMulticast : {false, true})
      for (unsigned threads : {32, 64}) {
        auto kernel = [&](const std::string &end) {
          std::string rank = std::to_string(owner);
          std::string send = isMulticast
                                 ? ".multicast::cluster.b64 [%r1], %h1;\n"
                                 : ".b64 [%r5];\n";
          return start(1) + "mov.b16 %h1, " + std::to_string(1 << owner) +
                 ";\nmov.b32 %r4, " + rank +
                 ";\nmapa.shared::cluster.u32 %r5, %r1, %r4;\n"
                 "setp.eq.s32 %p4, %r3, " +
                 rank + ";\n@%p4 bra O;\n@%p3 " + commit + send +
                 "bra E;\nO:\n" + end + "E:";
        };
        SCOPED_TRACE(kernel(""));
        // The commit arrives before the exit, which nothing promises.
        LaunchConfig config = configOf(0, 2, threads);
        config.asyncWrites = AsyncTiming::Issue;
        expectClean(runText(wrapKernel(kernel(wait("W", 0))), {}, 4, config));
        Outcome bad = runText(wrapKernel(kernel(Spin)), {}, 4, config);
        expectError(bad, FindingKind::ExitInFlight);
        EXPECT_NE(bad.text().find("a signal to one of its mbarriers"),
                  std::string::npos)
            << bad.text();
      }
}

TEST(PhaseChecks, CommitsBelongToTheirIssuer) {
  // CTA 1 sends one more signal than the barrier of CTA 0 takes.
  LaunchConfig config = configOf(0, 2, 32);
  config.asyncWrites = AsyncTiming::Issue;
  Outcome r = runText(
      wrapKernel(start(1) +
                 "@!%p2 bra C;\n@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 "
                 "_, [%r1], 64;\nbra E;\nC:\n" +
                 Spin +
                 "@%p3 tcgen05.commit.cta_group::1.mbarrier::arrive::one."
                 "shared::cluster.b64 [%r5];\nE:\nbarrier.cluster.arrive;\n"
                 "barrier.cluster.wait;\n"),
      {}, 4, config);
  expectError(r, FindingKind::MbarrierMisuse);
  ASSERT_FALSE(r.report.findings.empty());
  const Finding &f = r.report.findings[0];
  EXPECT_NE(f.message.find("arrives 1 times in phase 0"), std::string::npos)
      << r.text();
  ASSERT_TRUE(f.second);
  EXPECT_EQ(f.second->cta[0], 1u);
  EXPECT_NE(f.second->text.find("tcgen05.commit"), std::string::npos);
}

TEST(PhaseChecks, ExitComesAfterCopies) {
  // Whether or not the schedule has finished the copy.
  auto kernel = [](const std::string &end) {
    return start(1) +
           "@!%p3 bra N;\n"
           "mbarrier.arrive.expect_tx.shared::cta.b64 %d5, [%r1], 64;\n"
           "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
           "[%r1+64], [%d0], 64, [%r1];\nN:\n" +
           end;
  };
  for (AsyncTiming timing : {AsyncTiming::Issue, AsyncTiming::Completion}) {
    LaunchConfig config = configOf(0, 1, 32);
    config.asyncWrites = timing;
    std::vector<uint8_t> in(64);
    expectClean(runText(wrapKernel(kernel(wait("W", 0))), in, 4, config));
    expectError(runText(wrapKernel(kernel("")), in, 4, config),
                FindingKind::ExitInFlight);
  }
}

TEST(PhaseChecks, OnlySignalsGoToOtherCtas) {
  auto kernel = [](const char *access) {
    return start(1) + "@%p2 bra E;\n" + access +
           "E:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;";
  };
  expectNever(kernel(""), 2, 32);
  for (const char *access :
       {"@%p3 mbarrier.init.shared.b64 [%r5+64], 1;\n",
        "@%p3 mbarrier.inval.shared.b64 [%r5];\n",
        "mbarrier.test_wait.parity.shared.b64 %p4, [%r5], 1;\n"})
    expectAlways(kernel(access), 2, 32, FindingKind::MbarrierMisuse,
                 "an mbarrier of another CTA");
}

TEST(PhaseChecks, BarriersHoldNothingElse) {
  auto kernel = [](const char *access) {
    return start(1) + "bar.sync 0;\n@!%p3 bra E;\n" + access + "E:";
  };
  expectNever(kernel("st.shared.b32 [%r1+8], 1;\n"), 1, 64);
  expectAlways(kernel("st.shared.b32 [%r1+4], 1;\n"), 1, 64,
               FindingKind::MbarrierMisuse,
               "writes over an mbarrier that is in use");
  expectAlways(kernel("mbarrier.init.shared.b64 [%r1], 1;\n"), 1, 64,
               FindingKind::MbarrierMisuse,
               "initialises an mbarrier that is in use");
  expectNever(kernel("mbarrier.inval.shared.b64 [%r1];\n"
                     "mbarrier.init.shared.b64 [%r1], 1;\n"),
              1, 64);
}

TEST(PhaseChecks, LanesArriveInOnePhase) {
  expectNever(start(32) + "@!%p1 bra E;\n"
                          "mbarrier.arrive.shared.b64 _, [%r1];\nE:",
              1, 64);
  expectAlways(start(31) + "@!%p1 bra E;\n"
                           "mbarrier.arrive.shared.b64 _, [%r1];\nE:",
               1, 64, FindingKind::MbarrierMisuse,
               "lanes of one instruction arrive in phases 0 and 1");
}

TEST(PhaseChecks, ArrivalsThatMustNotComplete) {
  auto kernel = [](const char *count) {
    return start(2) +
           "@%p3 mbarrier.arrive.noComplete.shared.b64 %d5, [%r1], " + count +
           ";";
  };
  expectNever(kernel("1"), 1, 32);
  expectAlways(kernel("2"), 1, 32, FindingKind::MbarrierMisuse,
               "'.noComplete' completes the phase");
}

TEST(PhaseChecks, WaitsThatKnowHowFarTheBarrierIs) {
  // Five phases pass without a wait. Whoever waits for the last one afterwards
  // must not take an earlier one for it.
  auto go = [](const char *first) {
    std::string arrive = "mbarrier.arrive.shared.b64 %d5, [%r1];\n";
    return runBody("mov.b32 %r1, smem;\nsetp.eq.s32 %p0, %r0, 0;\n"
                   "@%p0 mbarrier.init.shared.b64 [%r1], 1;\n"
                   "@%p0 mbarrier.init.shared.b64 [%r1+8], 1;\nbar.sync 0;\n"
                   "setp.eq.s32 %p1, %r0, 32;\n@!%p1 bra C;\n" +
                       arrive + arrive + arrive + arrive + arrive +
                       "mbarrier.arrive.shared.b64 %d5, [%r1+8];\nbra E;\n"
                       "C:\n@!%p0 bra E;\n" +
                       first +
                       "L: mbarrier.try_wait.parity.shared.b64 %p3, [%r1], 0;\n"
                       "@!%p3 bra L;\nE:",
                   {}, 4, 64, 64);
  };
  expectClean(go("M: mbarrier.try_wait.parity.shared.b64 %p2, [%r1+8], 0;\n"
                 "@!%p2 bra M;\n"));
  expectError(go(""), FindingKind::PhaseSlip);
}

TEST(PhaseChecks, WaitsThatMayPassTwoPhasesEarlier) {
  // Warp 0 completes two phases and stores between them. Warp 1 waits for the
  // second one and reads: parity 1 is also that of the phase before the first,
  // so it has to wait for the first one before.
  auto kernel = [](const char *first) {
    return start(1) + "@!%p1 bra C;\n@!%p0 bra E;\n" +
           "mbarrier.arrive.shared::cta.b64 _, [%r1];\n"
           "st.shared.b32 [%r1+16], 7;\n" +
           Spin + "mbarrier.arrive.shared::cta.b64 _, [%r1];\nbra E;\nC:\n" +
           first + wait("W", 1) + "ld.shared.b32 %r6, [%r1+16];\nE:\n";
  };
  auto isPhaseError = [](const Outcome &r) {
    return r.report.countErrors(FindingKind::EarlyWait) +
           r.report.countErrors(FindingKind::Race);
  };
  unsigned early = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Outcome r = runText(wrapKernel(kernel("")), {}, 4, configOf(seed, 1, 64));
    EXPECT_GE(isPhaseError(r), 1u) << seed << r.text();
    early += r.report.countErrors(FindingKind::EarlyWait);
    // What else is wrong with both: nothing keeps the signals behind a wait.
    Outcome good = runText(wrapKernel(kernel(wait("V", 0).c_str())), {}, 4,
                           configOf(seed, 1, 64));
    EXPECT_EQ(isPhaseError(good), 0u) << seed << good.text();
  }
  // Late enough, it passes at the phase that was meant.
  Outcome late =
      runText(wrapKernel(kernel("mov.u32 %r10, 0;\nT: add.s32 %r10, %r10, 1;\n"
                                "setp.lt.s32 %p7, %r10, 9000;\n@%p7 bra T;\n")),
              {}, 4, configOf(0, 1, 64));
  EXPECT_EQ(late.report.countErrors(FindingKind::EarlyWait), 1u) << late.text();
  EXPECT_EQ(late.report.countErrors(FindingKind::Race), 0u) << late.text();
}

TEST(PhaseChecks, WaitsThatKnowAPhaseByItsSignals) {
  // Warp 1 waits for the second phase alone, behind a barrier that all signals
  // of the first one come before.
  auto kernel = [](const char *meet) {
    std::string arrive = "@%p0 mbarrier.arrive.shared::cta.b64 _, [%r1];\n";
    return start(1) + "@!%p1 bra C;\n" + arrive + meet + Spin + arrive +
           "bra E;\nC:\n" + meet + wait("W", 1) + "E:\n";
  };
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Outcome r = runText(wrapKernel(kernel("bar.sync 1, 64;\n")), {}, 4,
                        configOf(seed, 1, 64));
    EXPECT_EQ(r.report.countErrors(FindingKind::EarlyWait), 0u) << r.text();
  }
}
