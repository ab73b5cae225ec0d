//===- LoopWatchTest.cpp - Loops that cannot end --------------------------===//

#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

LaunchConfig configOf(unsigned threads, unsigned ctas = 1,
                      unsigned cluster = 1) {
  LaunchConfig config;
  config.block = {threads, 1, 1};
  config.grid = {ctas, 1, 1};
  config.cluster = {cluster, 1, 1};
  config.dynamicShared = 1024;
  // Far beyond what the loops take to be found.
  config.stepLimit = 20000000;
  return config;
}

/// Every schedule finds that the kernel does not end.
void expectEndless(llvm::StringRef body, LaunchConfig config = configOf(33),
                   llvm::StringRef lines = "") {
  for (Schedule schedule : {Schedule::RoundRobin, Schedule::Random}) {
    config.schedule = schedule;
    config.adversarial = schedule == Schedule::Random;
    Outcome r =
        runText(wrapKernel(body), std::vector<uint8_t>(1024), 1024, config);
    EXPECT_TRUE(r.error.empty()) << r.error;
    EXPECT_EQ(r.report.countErrors(FindingKind::EndlessLoop), 1u)
        << body.str() << r.text();
    EXPECT_NE(r.text().find(lines), std::string::npos) << r.text();
    EXPECT_LT(r.report.counters.warpInstructions, 2000000u) << body.str();
  }
}

/// No schedule takes the kernel for one that does not end.
void expectEnds(llvm::StringRef body, LaunchConfig config = configOf(33)) {
  for (Schedule schedule : {Schedule::RoundRobin, Schedule::Random})
    for (AsyncTiming timing : {AsyncTiming::Completion, AsyncTiming::Random}) {
      if (timing == AsyncTiming::Random && schedule == Schedule::RoundRobin)
        continue;
      config.schedule = schedule;
      config.adversarial = schedule == Schedule::Random;
      config.asyncWrites = timing;
      Outcome r =
          runText(wrapKernel(body), std::vector<uint8_t>(1024), 1024, config);
      EXPECT_TRUE(r.error.empty() && r.report.completed)
          << body.str() << r.text();
    }
}

} // namespace

TEST(LoopWatch, FindsLoopsWithoutAnEnd) {
  expectEndless("L: bra L;", configOf(33),
                "2 warps repeat line 14 without an "
                "end");
  // A state of several turns of the loop.
  expectEndless("mov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1;\n"
                "rem.u32 %r1, %r1, 37;\nbra L;");
  // Nobody stores what it waits for, in each space.
  expectEndless("L: ld.volatile.global.b32 %r1, [%d0];\n"
                "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;",
                configOf(33), "lines 14 to 16");
  expectEndless("mov.u32 %r1, smem;\nst.shared.b32 [%r1], 0;\n"
                "L: ld.volatile.shared.b32 %r2, [%r1];\nnanosleep.u32 20;\n"
                "setp.eq.u32 %p1, %r2, 0;\n@%p1 bra L;");
  // A lock that is never given back: what is stored is what was there.
  expectEndless("L: atom.global.cas.b32 %r1, [%d0], 1, 1;\n"
                "setp.ne.u32 %p1, %r1, 1;\n@%p1 bra L;");
  expectEndless("L: st.volatile.global.b32 [%d0], 0;\n"
                "fence.acq_rel.gpu;\nbra L;");
  // Some lanes, one warp of several, while others wait or have ended.
  expectEndless("setp.lt.u32 %p1, %r0, 7;\nL: @%p1 bra L;");
  expectEndless("setp.lt.u32 %p1, %r0, 32;\n@%p1 exit;\nL: bra L;");
  expectEndless("setp.lt.u32 %p1, %r0, 32;\n@%p1 bra B;\nL: bra L;\n"
                "B: bar.sync 0;",
                configOf(33), ", and 1 warps wait");
  expectEndless("L: bar.sync 0;\nbra L;");
  expectEndless("mov.u32 %r1, smem;\nsetp.eq.u32 %p1, %r0, 0;\n"
                "@%p1 mbarrier.init.shared.b64 [%r1], 1;\nbar.sync 0;\n"
                "setp.lt.u32 %p2, %r0, 32;\n@%p2 bra W;\nL: bra L;\n"
                "W: mbarrier.try_wait.parity.shared.b64 %p3, [%r1], 0;\n"
                "@!%p3 bra W;");
  // CTAs that wait for each other, and clusters.
  expectEndless("L: ld.acquire.gpu.global.b32 %r1, [%d0];\n"
                "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;",
                configOf(1, 4, 2));
}

TEST(LoopWatch, LetsLoopsEnd) {
  // Counters, of any width, and clocks.
  expectEnds("mov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1;\n"
             "setp.lt.u32 %p1, %r1, 60000;\n@%p1 bra L;",
             configOf(1));
  expectEnds("mov.u32 %r2, %clock;\nL: mov.u32 %r1, %clock;\n"
             "sub.u32 %r1, %r1, %r2;\nsetp.lt.u32 %p1, %r1, 60000;\n"
             "mov.u32 %r1, 0;\n@%p1 bra L;",
             configOf(1));
  // A counter in memory, with registers that are the same each time.
  expectEnds("setp.eq.u32 %p2, %r0, 0;\n@!%p2 exit;\n"
             "L: ld.global.b32 %r1, [%d0];\nadd.u32 %r1, %r1, 1;\n"
             "st.global.b32 [%d0], %r1;\nsetp.lt.u32 %p1, %r1, 20000;\n"
             "mov.u32 %r1, 0;\n@%p1 bra L;",
             configOf(1));
  expectEnds("L: atom.global.add.u32 %r1, [%d0], 1;\n"
             "setp.lt.u32 %p1, %r1, 200000;\nmov.u32 %r1, 0;\n@%p1 bra L;",
             configOf(1));
  // Another warp, another CTA or other lanes store at last.
  std::string waits = "L: ld.volatile.global.b32 %r1, [%d0];\n"
                      "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\nexit;\n"
                      "B: mov.u32 %r2, 0;\nC: add.u32 %r2, %r2, 1;\n"
                      "setp.lt.u32 %p2, %r2, 40000;\n@%p2 bra C;\n"
                      "st.volatile.global.b32 [%d0], 1;\n";
  expectEnds("setp.lt.u32 %p1, %r0, 32;\n@%p1 bra B;\n" + waits);
  expectEnds("setp.lt.u32 %p1, %r0, 3;\n@%p1 bra B;\n" + waits, configOf(8));
  expectEnds("mov.u32 %r3, %ctaid.x;\nsetp.eq.u32 %p1, %r3, 1;\n"
             "@%p1 bra B;\n" +
                 waits,
             configOf(1, 2));
  // Of three groups of lanes only the one in the middle ends the wait.
  expectEnds("setp.lt.u32 %p3, %r0, 3;\n@%p3 bra A;\n"
             "setp.lt.u32 %p4, %r0, 6;\n@%p4 bra B;\n" +
                 waits +
                 "exit;\nA: ld.volatile.global.b32 %r4, [%d0];\n"
                 "setp.eq.u32 %p5, %r4, 0;\n@%p5 bra A;\n",
             configOf(8));
}

TEST(LoopWatch, CompletesWhatIsInFlight) {
  // Threads that look at the data and not at the mbarrier: wrong, but the copy
  // comes.
  std::string poll = "L: ld.volatile.shared.b32 %r3, [%r1+64];\n"
                     "setp.eq.u32 %p3, %r3, 0;\n@%p3 bra L;";
  std::string start = "mov.u32 %r1, smem;\nsetp.eq.u32 %p1, %r0, 0;\n"
                      "st.global.v4.b32 [%d0], {7, 7, 7, 7};\n"
                      "st.shared.b32 [%r1+64], 0;\n"
                      "@%p1 mbarrier.init.shared.b64 [%r1], 1;\nbar.sync 0;\n"
                      "fence.proxy.async;\n";
  expectEnds(start +
                 "@%p1 mbarrier.arrive.expect_tx.shared.b64 %d5, [%r1], 16;\n"
                 "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::"
                 "bytes [%r1+64], [%d0], 16, [%r1];\n" +
                 poll,
             configOf(1));
  expectEnds(start + "cp.async.ca.shared.global [%r1+64], [%d0], 16;\n" + poll,
             configOf(1));
}
